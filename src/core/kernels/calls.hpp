// The arguments of the kernels: one struct for each kind of call.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>

#include "model/dtypes.hpp"
#include "model/nest.hpp"

namespace gatherum {

struct Operands {
  char* data = nullptr;         // D: read by gathers, written by scatters
  const char* index = nullptr;  // X
  char* moved = nullptr;        // U: written by gathers, read by scatters
  const char* fill = nullptr;   // for gathers in drop mode: a whole block if one value holds it, else an item
};

// A range of units: a unit is one point of the leading `unit_loops` loops times one chunk of the line. Points
// inside a unit are visited in order. The units of a scatter are independent batches, unless a piece of units
// writes to memory of its own.
struct Range {
  int64_t chunk, begin, end;
};

// The destinations that a scatter writes: a range [low, high) of their offsets or of their numbers. The
// default range contains every valid offset.
struct DestinationRange {
  int64_t low = -(int64_t{1} << 62), high = int64_t{1} << 62;
  GATHERUM_INLINE bool all() const { return low == DestinationRange{}.low; }
};

// The first invalid index: its linear position in the index space, its component, and its value. The position
// is -1 if all indices are valid.
struct Invalid {
  int64_t position = -1;
  int64_t value = 0;
  int component = 0;
};

// If an accumulator has at least this many updates, two more passes over the accumulators cost nothing: one
// checks for NaN before the updates, and one makes NaN canonical after them. (With fewer updates, as in lines
// of *_elements, they take 1.5 times as long.)
inline constexpr int64_t kFewestUpdatesToSettle = 16;

// The updates of a scatter with one unit in pieces, if few pieces have destinations in several of the ranges
// [cuts[i], cuts[i + 1]). A piece without valid updates has a highest destination below its lowest one.
struct NearUpdates {
  int64_t chunk, units, piece_units, pieces;  // as in PrivateScatter
  const int32_t *lowest, *highest;            // [pieces]
  const int32_t* cuts;
};

// A scatter through accumulators in cache (scatter_slabs.hpp). Task `t` processes range `t % ranges` of unit
// `t / ranges`.
struct SlabScatter {
  const Nest* numbering;  // the nest, with a component stride that numbers the destinations of a unit
  int unit_loops;         // as in Range
  int64_t chunk;          // columns of a unit, if the line moves the data
  int64_t destinations;   // of one unit
  int64_t step;           // bytes from one destination to the next
  int64_t ranges, range_size;
  const char* source;  // read instead of the output; null: the output itself
  FoldRule fold_rule;
  bool direct;                        // the output may be written before all indices are known to be valid
  bool streams;                       // a slab is written with streaming stores
  const NearUpdates* near = nullptr;  // the ranges, and the updates that they read; else all updates
};

// The NaN that the pieces of a scatter with keys have found. `any_lone` is true if a NaN was the first update
// of a destination. `any_lost` is true if keys cannot represent such a NaN; all pieces then abort.
struct FoundNaNs {
  std::atomic<bool> any_lone{false}, any_lost{false};
};

// A scatter that does not depend on the order of folding, with one set of accumulators for each piece of the
// updates (scatter_private.hpp, scatter_keyed.hpp). If `range_size` is not 0, all tasks share one set of
// accumulators, and each task has a range of `range_size` destinations (scatter_uncounted.hpp).
struct PrivateScatter {
  const Nest* numbering;
  int64_t chunk, piece_units;  // a piece is this many units of `chunk` tuples of the line
  int64_t units, pieces;
  int64_t destinations, step;
  int64_t range_size;
  char* slabs;  // contiguous
  int64_t slab_bytes;
  const char* source;
  FoldRule fold_rule;
  bool streams;        // as in SlabScatter
  bool tables;         // of exact sums, as slabs
  FoundNaNs* nans;     // of a scatter with keys
  int64_t* positions;  // of extremes, if requested: contiguous
  int64_t none;        // as in Extremes
};

// The updates that a piece has folded: all updates, only updates with valid indices, or none (its result is
// discarded).
enum class FoldedUpdates : uint8_t { all, valid, none };

// A scatter whose updates are first sorted, stably, into buckets of neighbouring destinations
// (scatter_partition.hpp). Pieces are consecutive ranges of updates. Every piece has a list for every bucket.
// A list is a chain of runs of memory.
struct PartitionScatter {
  // The size in bytes of a pair's destination, which is stored as its number in the bucket. The item follows.
  static constexpr int64_t kLocalBytes = sizeof(uint32_t);

  // The write position of a list, and the end of its last run. Both are null for a list without runs.
  struct Cursor {
    char* next;
    char* limit;
  };

  const Nest* numbering;
  int64_t chunk, piece_units;  // a piece is this many units of `chunk` tuples of the line
  int64_t units, pieces;
  int shift;  // a bucket has 2^shift destinations
  int64_t buckets, destinations, step;
  Cursor* cursors;  // [pieces][buckets]
  int64_t* first;   // [pieces][buckets]: the first run of a list
  char* runs;       // contiguous
  int64_t run_bytes;
  int64_t* next;                // [runs]: the next run of the list
  std::atomic<int64_t>* taken;  // the number of runs in use
  const char* source;
  FoldRule fold_rule;
};

// A scatter in rounds (scatter_rounds.hpp). In each round, the threads sort pieces of consecutive updates
// into lists by destination. The lists of one round are folded in the next round, so there are two sets of
// lists, which the rounds use alternately.
//
// Destination i is number i >> shift of the list i mod 2^shift. A heavy destination also has a list of its
// own after these lists, with all its updates.
struct RoundScatter {
  // The pairs of a list are stored in runs of this size, which are aligned. A run begins with the address of
  // the next run.
  static constexpr int64_t kRunBytes = 1024;
  static constexpr int64_t kMostShared = 64, kMostHeavy = 4, kMostLists = kMostShared + kMostHeavy;
  // The bytes of a pair: the number of a destination in its list, and an item of at most 8 bytes. In a pair
  // of 4 bytes, the number has 16 bits.
  static constexpr int64_t pair_bytes(int64_t item) { return item <= 2 ? 4 : item <= 4 ? 8 : 12; }
  static constexpr int64_t kMostOfShortPairs = int64_t{1} << 16;
  // The accumulators of a list are a multiple of this number, so no two lists share a cache line.
  static constexpr int64_t kBlock = 64;
  static constexpr int kSamples = 1024;

  struct List {
    char* end;
    int64_t pairs;
  };

  int64_t shared() const { return int64_t{1} << shift; }
  int64_t lists() const { return shared() + heavies; }
  // The position of a destination's accumulator in the slab.
  int64_t slot(int64_t destination) const {
    return (destination & (shared() - 1)) * slots + (destination >> shift);
  }

  const Nest* numbering;
  int64_t chunk, piece_units;  // a piece is this many units of `chunk` tuples of the line
  int64_t units, pieces;       // `pieces` of each round
  int shift, heavies;
  uint32_t heavy[kMostHeavy];
  int64_t slots;  // the accumulators of a list
  int64_t destinations, step;
  char* runs;  // [2][pieces] areas of `area_bytes`, each for the runs of a piece
  int64_t area_bytes;
  List* ends;  // [2][pieces][kMostLists]
  char* slab;
  const char* source;
  FoldRule fold_rule;
  bool settles;  // NaN accumulators are made canonical at the end
};

// A scatter of rows that writes each destination once, with its last update (scatter_last.hpp).
struct LastUpdates {
  const Nest* numbering;
  int64_t chunk, piece_units;  // a piece is this many units of `chunk` tuples of the line
  int64_t units, pieces;
  int64_t step;
  std::atomic<uint32_t>* last;  // [destinations]: 1 + the number of the last update; 0: no update
  const char* source;
  bool streams;  // rows are written with streaming stores
};

// A scatter whose updates are first sorted by destination (scatter_grouped.hpp).
struct GroupedScatter {
  const Nest* nest;
  const Nest* numbering;          // as in SlabScatter
  int unit_loops;                 // as in Range
  int64_t updates, destinations;  // of one unit
  bool counted;                   // a counting sort; else a sort by comparison
  int64_t pieces;                 // of the counting sort
  bool prefetches;                // updates are prefetched
  FoldRule fold_rule;
};

// A share of the groups of a unit, whose `kept_updates` sorted updates are in the scratch.
struct GroupShare {
  int64_t unit, kept_updates, share, shares;
  char* scratch;
};

// The operands of the gradients of a scatter (scatter_gradients.hpp). `updates` and `of_updates` have the
// program's layout of the updates; the other arrays have its layout of the output.
struct Gradients {
  const char* data = nullptr;  // read if the fold includes it
  const char* updates = nullptr;
  const char* result = nullptr;  // read for max and min
  const char* gradient = nullptr;
  char* of_data = nullptr;     // null: not requested
  char* of_updates = nullptr;  // null: not requested
};

// The operands of a scatter of maxima or minima with argmax or argmin (scatter_extremes.hpp). `updates` has
// the program's layout. The positions and the result, which initially holds the old values, are contiguous.
struct Extremes {
  const char* updates = nullptr;
  char* result = nullptr;  // null: not requested, and the fold excludes the old values
  int64_t* positions = nullptr;
  int64_t none = 0;  // the position if no update is the extreme
};

// The results of a scatter of squared distances from exact means (scatter_spreads.hpp): contiguous arrays
// with an item for each destination.
struct Spreads {
  double* squares;  // null: only the numbers of rows are counted
  int64_t* counts;
};
// Returns true if there is a kernel for squared distances of these values.
constexpr bool has_spreads(Value value) { return is_real_float(value); }

// The lists of the first and last edge of a piece. `ascends` is true if the list numbers of its edges ascend
// and all edges are valid.
struct EdgeOrder {
  int64_t first, last;
  bool ascends;
};

// Edges sorted by destination (row_lists.hpp). An edge connects a row of a table to a destination. Pieces are
// consecutive ranges of edges. Numbers have 32 bits, or 64 if `wide`. A number with all bits set means none.
struct ListStage {
  const Nest* numbering;       // as in SlabScatter
  const Nest* sources;         // of the same loops; null: the row of an edge is its number
  int64_t chunk, piece_units;  // a piece is this many units of `chunk` edges of the line
  int64_t first, units;        // the range of units; its first edge has number 0
  int64_t pieces;
  int64_t destinations;  // or the number of buckets, if each bucket has a list
  int64_t bucket_size;   // destinations per bucket; 0 or 1: a list per destination
  bool wide;
  char* edge_destination;  // [edges]: the destination of each, or its bucket
  char* edge_row;  // [edges]: its row, or its destination's number in the bucket; null if neither is needed
  char* counts;    // [pieces][destinations]: the number of edges; then the position of the next one
  char* rows;      // [edges]: the rows of all lists
  char* edges;     // [edges]: the numbers of their edges; null: not requested
  EdgeOrder* orders;  // [pieces]; null: not requested
  bool in_order;      // the edges are sorted already
};

// The number of updates in a stretch. The numbers of these updates differ only in the last 16 bits.
inline constexpr int64_t kUpdatesPerStretch = int64_t{1} << 16;

// Lists of rows. The rows of each list are folded into one destination. `rows` contains the loops of one row.
// Their `data` strides apply to the table, and their `moved` strides to the result and `start`.
struct ListFold {
  FoldRule fold_rule;
  const Nest* rows;
  bool wide;
  const char *starts, *numbers, *edges;
  int64_t kept_edges;  // of all lists
  // For lists of buckets. `numbers` are positions in the bucket: 16-bit integers if the bucket is small
  // enough (`narrow`), otherwise 32-bit integers. `edges` are the 16-bit numbers of the updates within their
  // stretch of kUpdatesPerStretch updates. `bounds`, [lists][stretches + 1], are the starts of the stretches
  // of a list, and the end of the last stretch.
  int64_t destinations, bucket_size, stretches;
  bool narrow;
  const int64_t* bounds;
  const char* table;
  int64_t table_step;
  bool far;           // the table exceeds a core's private cache, so its rows are prefetched
  const char* start;  // null: use `fill`, and a destination starts from its first row
  char fill[kWidestBlock];
  char* out;
  int64_t out_step;
  const char* weights;       // null: none
  const Nest* weight_loops;  // the edges' loops, with the strides of the weights (moved)
};

// A reduction of table rows by a CSR pointer array (fold_pointed.hpp): destination d has the edges from
// `starts[d]` up to, but not including, `starts[d + 1]`. `fold` has no lists, and its weights are unsorted.
// Portions have about kPointedPortion edges and at least one destination. `capacity` is the maximum number of
// edges in a portion.
inline constexpr int64_t kPointedPortion = 4096;
struct PointedFold {
  ListFold fold;
  const Nest* sources;  // one loop
  const char* indices;
  const int64_t* starts;
  int64_t capacity;

  // The size of a worker's scratch in bytes.
  int64_t scratch() const {
    const int64_t width = fold.wide ? 8 : 4, weight = fold.weights == nullptr ? 0 : fold.rows->item;
    return limited_product(capacity, width + weight) + (kPointedPortion + 1) * width;
  }
};

// A gather along an axis that is not the last: columns are packed into scratch first (gather_packed.hpp).
struct PackedGather {
  const Nest* nest;
  int unit_loops;
  int64_t chunk, destinations, step;
  bool streams;
};

// The state of an accumulator between batches (accumulate.hpp): a sum and a count for each element of the
// data.
struct Accumulators {
  char* sums;
  int64_t* counts;
};

// n contiguous elements to be finished. `data` is used only if the order does not matter.
struct FinishCall {
  const char* data;
  const char* sums;
  const int64_t* counts;
  char* out;
  int64_t n;
};

// n contiguous accumulators, and n accumulators to merge into them.
struct MergeCall {
  Accumulators to;
  const char* other_sums;
  const int64_t* other_counts;
  int64_t n;
};

// An elementwise function, and whether it has a kernel for a value type.
enum class Elementary { exp, log };
inline bool has_elementary(Value value) {
  return value == Value::float16 || value == Value::bfloat16 || value == Value::float32 ||
         value == Value::float64;
}

// Quantized values: integers or small floats of `bits` bits. If packed, a byte holds 8 / bits values.
enum class CodeType : uint8_t { uint8, int8, float8_e4m3fn, float8_e5m2 };
enum class ScaleType : uint8_t { float32, float16, bfloat16, float8_e8m0fnu };
inline constexpr DType kCodeTypes[] = {DType::uint8, DType::int8, DType::float8_e4m3fn, DType::float8_e5m2};
inline constexpr DType kScaleTypes[] = {DType::float32, DType::float16, DType::bfloat16,
                                        DType::float8_e8m0fnu};
constexpr const char* name_of(CodeType t) { return name_among(kCodeTypes, t); }
constexpr const char* name_of(ScaleType t) { return name_among(kScaleTypes, t); }
constexpr int64_t bytes_of(ScaleType t) {
  // The table is local, because kernels must not refer to data that the linker shares among levels.
  constexpr auto bytes = [] {
    std::array<int64_t, std::size(kScaleTypes)> of{};
    for (size_t i = 0; i < of.size(); ++i) of[i] = bytes_of(kScaleTypes[i]);
    return of;
  }();
  return bytes[static_cast<size_t>(t)];
}
struct Codes {
  CodeType type;
  int bits;
  bool packed;
  int64_t in_byte() const { return packed ? 8 / bits : 1; }
};

// A gather of quantized rows (dequantize.hpp). One dimension is divided into blocks that share a scale: a
// dimension before the rows, the dimension of the rows, or `quantized`. In the other two of these dimensions,
// each block has one item.
struct QuantizedGather {
  const char* data;
  const char* scales;
  const char* zeros;  // null: all are `zero`
  float zero;
  Codes codes;
  ScaleType scale;
  Value result;
  char* out;
  const int64_t* row_numbers;  // `count` of them
  int64_t count, rows, row_block;
  int64_t outer, outer_quantized, outer_after, outer_block;  // the dimensions before the rows
  int64_t inner, quantized, after, block;                    // a row: x, y and z
  int64_t scale_line;                                        // the last dimension of the scales

  // Returns the number of rows of scales before `a`, a linear position in the dimensions before the rows.
  int64_t scale_outer(int64_t a) const {
    if (outer_block == 1) return a;
    const int64_t z = a % outer_after, y = a / outer_after % outer_quantized;
    const int64_t blocks = (outer_quantized + outer_block - 1) / outer_block;
    return (a / outer_after / outer_quantized * blocks + y / outer_block) * outer_after + z;
  }
};

}  // namespace gatherum
