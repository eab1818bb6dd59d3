// The functions of the compiled kernels that the rest of the core calls: one table for each instruction-set
// level, all from the same source.
#pragma once

#include <atomic>
#include <cstdint>

#include "model/nest.hpp"

namespace gatherum {

struct Operands {
  char* data = nullptr;         // D: read by gathers, written by scatters
  const char* index = nullptr;  // X
  char* other = nullptr;        // U: written by gathers, read by scatters
  const char* fill = nullptr;   // for gathers in drop mode: a whole block if one value holds it, else an item
};

// A range of units: each unit is one point of the leading `units` loops times one chunk of the line.
// Units are independent of each other; inside one, points are visited in order.
struct Range {
  int64_t chunk, begin, end;
};

// The offsets, or numbers of destinations, [low, high) whose tuples a scatter writes. By default all that are
// valid: no offset is that far.
struct Owned {
  int64_t low = -(int64_t{1} << 62), high = int64_t{1} << 62;
  GATHERUM_INLINE bool all() const { return low == Owned{}.low; }
};

// The first invalid index: its linear position in the index space, its component, and its value. Position -1:
// all are valid.
struct Invalid {
  int64_t position = -1;
  int64_t value = 0;
  int component = 0;
};

// A scatter through accumulators in cache (scatter_slabs.hpp). Task t is range t % ranges of unit
// t / ranges.
struct SlabScatter {
  const Nest* ids;       // the nest, with a component stride that numbers the destinations of a unit
  int units;             // as in Range
  int64_t chunk;         // columns of a unit, where the line moves the data
  int64_t destinations;  // of one unit
  int64_t step;          // bytes from one destination to the next
  int64_t ranges, range_size;
  const char* source;  // read instead of the output; null: the output itself
  Combine combine;
  bool direct;   // the output may be written before all indices are known to be valid
  bool streams;  // a slab is written past the cache
};

// What the pieces of a scatter with keys have met: a first update of a destination that was a NaN, and one
// that they cannot keep, at which all give up.
struct MetNaN {
  std::atomic<bool> alone{false}, lost{false};
};

// A scatter whose order of folding cannot matter into accumulators, a set of them for each piece of the
// updates (scatter_private.hpp, scatter_keyed.hpp); where `range_size` is not 0, into one set, of which each
// task has a range of that many destinations (scatter_uncounted.hpp).
struct PrivateScatter {
  const Nest* ids;
  int64_t chunk, piece_units;  // a piece is this many units of `chunk` tuples of the line
  int64_t units, pieces;
  int64_t destinations, step;
  int64_t range_size;
  char* slabs;  // one after the other
  int64_t slab_bytes;
  const char* source;
  Combine combine;
  bool streams;        // as in SlabScatter
  bool tables;         // of exact sums, as slabs
  MetNaN* met;         // of a scatter with keys
  int64_t* positions;  // of extremes, where they are wanted: contiguous
  int64_t none;        // as in Extremes
};

// What a piece took: all updates, all but those with an invalid index, or nothing that counts.
enum class Took : uint8_t { all, valid, nothing };

// A scatter whose updates are first sorted, stably, into blocks of destinations
// (scatter_partition.hpp). Pieces are stretches of updates, in order; every piece has a list for every
// block, a chain of runs of memory.
struct PartitionScatter {
  static constexpr int64_t kLocalBytes = sizeof(uint32_t);  // an entry: which destination of a block, an item
  // Where a list goes on, and where its last run ends; null for a list without runs.
  struct Cursor {
    char* place;
    char* limit;
  };

  const Nest* ids;
  int64_t chunk, piece_units;  // a piece is this many units of `chunk` tuples of the line
  int64_t units, pieces;
  int shift;  // a block has 2^shift destinations
  int64_t blocks, destinations, step;
  Cursor* cursors;  // [pieces][blocks]
  int64_t* first;   // [pieces][blocks]: the first run of a list
  char* entries;    // run after run
  int64_t run_bytes;
  int64_t* next;                // [runs]: the run that goes on with the list
  std::atomic<int64_t>* taken;  // how many runs are in use
  const char* source;
  Combine combine;
};

// A scatter whose updates are put in order of their destination first (scatter_grouped.hpp).
struct GroupedScatter {
  const Nest* nest;
  const Nest* ids;                // as in SlabScatter
  int units;                      // as in Range
  int64_t updates, destinations;  // of one unit
  bool counted;                   // updates are counted out to their destinations; else sorted
  int64_t pieces;                 // that they are counted out in
  bool fetches;                   // updates are fetched ahead
  Combine combine;
};

// A share of the groups of a unit, whose `kept` updates are in order in the scratch.
struct GroupShare {
  int64_t unit, kept, share, shares;
  char* scratch;
};

// What the gradients of a scatter are made from (scatter_gradients.hpp). `updates` and `of_updates` lie as
// the program says of updates, all others as it says of the output.
struct Gradients {
  const char* data = nullptr;  // read where the fold includes it
  const char* updates = nullptr;
  const char* result = nullptr;  // read for max and min
  const char* gradient = nullptr;
  char* of_data = nullptr;     // null: not wanted
  char* of_updates = nullptr;  // null: not wanted
};

// What a scatter of extremes writes with their positions (scatter_extremes.hpp). `updates` lie as the program
// says; the result, which holds the old values, and the positions are contiguous.
struct Extremes {
  const char* updates = nullptr;
  char* result = nullptr;  // null: not wanted, and the fold leaves the old values out
  int64_t* positions = nullptr;
  int64_t none = 0;  // the position where no update is the extreme
};

// Edges put in order of their destination (row_lists.hpp): each goes from a row of a table to a destination.
// Pieces are stretches of edges, in order. Numbers have 32 bits, or 64 where `wide`; all ones stand for none.
struct ListStage {
  // The lists of a piece's first and last edge, and whether they ascend and all edges are valid.
  struct Course {
    int64_t first, last;
    bool ascends;
  };

  const Nest* targets;
  const Nest* sources;         // of the same loops; null: an edge's row has its own number
  int64_t chunk, piece_units;  // a piece is this many units of `chunk` edges of the line
  int64_t first, units;        // these units; edges are numbered from the first of them on
  int64_t pieces;
  int64_t destinations;  // or blocks of them, where a list is one of a block
  int64_t block;         // destinations of a block; with one, or none: of a list
  bool wide;
  char* went;       // [edges]: the destination of each, or its block
  char* came;       // [edges]: its row, or the place of the destination in its block; null without either
  char* counts;     // [pieces][destinations]: how many edges; then where the next one goes
  char* rows;       // [edges]: the rows of all lists
  char* edges;      // [edges]: the numbers of their edges; null: not wanted
  Course* courses;  // [pieces]: null: not wanted
  bool in_order;    // the edges are in order already
};

// Updates whose numbers differ in 16 bits alone.
inline constexpr int64_t kStretch = int64_t{1} << 16;

// Lists of rows, each folded into its destination. `rows` has the loops of one row: its strides in the table
// (data) and in the result (other), which are also those of `start`.
struct ListFold {
  Combine combine;
  const Nest* rows;
  bool wide;
  const char *starts, *numbers, *edges;
  int64_t kept;
  // Of lists of blocks: `numbers` are places in the block, of 16 bits where it has no more (`narrow`), else
  // of 32; `edges` are 16 bits, the numbers of the updates in their stretch of kStretch; `bounds`, [lists]
  // [stretches + 1], are where the stretches of a list begin, and the last one ends.
  int64_t destinations, block, stretches;
  bool narrow;
  const int64_t* bounds;
  const char* table;
  int64_t table_step;
  bool far;           // the table does not lie in a core's own cache: its rows are fetched
  const char* start;  // null: `fill`, and a destination starts from its first row
  char fill[kWidestBlock];
  char* out;
  int64_t out_step;
  const char* weights;       // null: none
  const Nest* weight_loops;  // the edges' loops, with the strides of the weights (other)
};

// Rows of a table folded by a pointer (fold_pointed.hpp): edges starts[d] up to starts[d + 1] go to
// destination d. `fold` has no lists, and the weights as they lie. Groups have about so many edges, and one
// destination at the least: `capacity` for the most.
inline constexpr int64_t kPointedGroup = 4096;
struct PointedFold {
  ListFold fold;
  const Nest* sources;  // one loop
  const char* indices;
  const int64_t* starts;
  int64_t capacity;

  // The scratch of a worker.
  int64_t scratch() const {
    const int64_t width = fold.wide ? 8 : 4, weight = fold.weights == nullptr ? 0 : fold.rows->item;
    return times(capacity, width + weight) + (kPointedGroup + 1) * width;
  }
};

// A gather along an axis that is not the last: columns are packed into scratch first
// (gather_packed.hpp).
struct PackedGather {
  const Nest* nest;
  int units;
  int64_t chunk, destinations, step;
  bool streams;
};

// What a fold keeps between batches (accumulate.hpp): an accumulator and a count for each element of the
// data.
struct Accumulators {
  char* sums;
  int64_t* counts;
};

// n elements side by side that become a result. `data` only where the order does not matter.
struct Finish {
  const char* data;
  const char* sums;
  const int64_t* counts;
  char* out;
  int64_t n;
};

// n accumulators side by side, and those of another fold.
struct Merge {
  Accumulators to;
  const char* other_sums;
  const int64_t* other_counts;
  int64_t n;
};

// A function of each item, and whether it has a kernel for a value type.
enum class Elementary { exp, log };
inline bool has_elementary(Value value) {
  return value == Value::float16 || value == Value::bfloat16 || value == Value::float32 ||
         value == Value::float64;
}

// What quantized values are: integers or small floats, of so many bits; packed ones lie 8 / bits in a byte.
enum class CodeType : uint8_t { uint8, int8, float8_e4m3fn, float8_e5m2 };
enum class ScaleType : uint8_t { float32, float16, bfloat16, float8_e8m0fnu };
constexpr const char* name_of(CodeType t) {
  return name_among({"uint8", "int8", "float8_e4m3fn", "float8_e5m2"}, t);
}
constexpr const char* name_of(ScaleType t) {
  return name_among({"float32", "float16", "bfloat16", "float8_e8m0fnu"}, t);
}
constexpr int64_t bytes_of(ScaleType t) {
  return t == ScaleType::float32 ? 4 : t == ScaleType::float8_e8m0fnu ? 1 : 2;
}
struct Codes {
  CodeType type;
  int bits;
  bool packed;
  int64_t in_byte() const { return packed ? 8 / bits : 1; }
};

// A gather of quantized rows (dequantize.hpp). A dimension before the rows, they themselves, or `quantized`
// is cut into blocks that share a scale; the blocks of the other two have one item.
struct QuantizedGather {
  const char* data;
  const char* scales;
  const char* zeros;  // null: all are `zero`
  float zero;
  Codes codes;
  ScaleType scale;
  Value result;
  char* out;
  const int64_t* numbers;  // of the rows, `count` of them
  int64_t count, rows, row_block;
  int64_t outer, outer_quantized, outer_behind, outer_block;  // the dimensions before the rows
  int64_t inner, quantized, behind, block;                    // a row: x, y and z
  int64_t scale_line;                                         // the last dimension of the scales

  // The number of scales' rows before those of `a`, a place in the dimensions before the rows.
  int64_t scale_outer(int64_t a) const {
    if (outer_block == 1) return a;
    const int64_t z = a % outer_behind, y = a / outer_behind % outer_quantized;
    const int64_t blocks = (outer_quantized + outer_block - 1) / outer_block;
    return (a / outer_behind / outer_quantized * blocks + y / outer_block) * outer_behind + z;
  }
};

struct Kernels {
  const char* level;
  // Returns false when a raise-mode index was invalid; the output is then unfinished. `streams`: rows, which
  // are whole aligned cache lines of the output, are written past the cache.
  bool (*gather)(const Nest&, int units, const Operands&, const Range&, bool streams);
  // As gather, for whole lines whose data are a short stretch each (gather_stretches.hpp).
  bool (*gather_stretches)(const Nest&, const Operands&, int64_t begin, int64_t end, int64_t* scratch,
                           bool streams);
  bool (*gather_packed)(const PackedGather&, const Operands&, int64_t begin, int64_t end, char* scratch);
  void (*copy)(char* to, const char* from, int64_t bytes);
  Invalid (*first_invalid)(const Nest&, const char* index, const Range&);
  // Scatters skip invalid tuples; all return false when they met one.
  bool (*scatter)(const Nest&, int units, const Operands&, const Range&, const Combine&, const Owned&);
  int64_t (*slab_bytes)(const Combine&, int64_t item, int64_t slots);
  // Whether a thread finds the updates of its range of destinations at little cost.
  bool (*chooses_slots)(const Nest&, int64_t destinations);
  // Folds the updates of one task into a slab in scratch; writes the slab to the output.
  bool (*slab_take)(const SlabScatter&, const Operands&, int64_t task, char* scratch);
  void (*slab_write)(const SlabScatter&, const Operands&, int64_t task, char* scratch);
  // A scatter into one set of accumulators for each piece of the updates, so many bytes each: 0 where the
  // order may matter, which the other two are then not called for. `take` folds a piece; `write` folds and
  // writes the destinations [begin, end) of all sets.
  int64_t (*private_bytes)(const Combine&, int64_t slots, bool tables);
  Took (*private_take)(const PrivateScatter&, const Operands&, int64_t piece);
  void (*private_write)(const PrivateScatter&, const Operands&, int64_t begin, int64_t end);
  // A fold without the old values into accumulators without counters, so many bytes: 0 where there are none.
  // `suits`, before anything is taken, says of destinations [begin, end) whether their old values allow it;
  // `take` is one task, and returns false when it met an invalid index; `merge` folds the sets, and returns
  // whether it is clear what [begin, end) become; where it is not, `plain` says whether the updates of a
  // piece make it so; only then is anything written.
  int64_t (*uncounted_bytes)(const Combine&, int64_t slots);
  bool (*uncounted_in_any_order)(const Combine&);
  bool (*uncounted_suits)(const PrivateScatter&, const Operands&, int64_t begin, int64_t end);
  bool (*uncounted_take)(const PrivateScatter&, const Operands&, int64_t task);
  bool (*uncounted_merge)(const PrivateScatter&, const Operands&, int64_t begin, int64_t end);
  bool (*uncounted_plain)(const PrivateScatter&, const Operands&, int64_t piece);
  void (*uncounted_write)(const PrivateScatter&, const Operands&, int64_t begin, int64_t end);
  // The same for the positions of extremes, in any type: a piece counts its updates, fewer than 2^32 - 1.
  int64_t (*located_bytes)(const Combine&, int64_t slots);
  Took (*located_take)(const PrivateScatter&, const Operands&, int64_t piece);
  void (*located_write)(const PrivateScatter&, int64_t begin, int64_t end);
  // The two passes of a partition; `spread` returns false when it met an invalid index.
  bool (*partition_spread)(const PartitionScatter&, const Operands&, int64_t piece);
  void (*partition_apply)(const PartitionScatter&, const Operands&, int64_t block, char* scratch);
  // The two passes of a scatter by groups, of one unit, in `grouped_bytes` of scratch. `sort_updates` puts
  // its updates in order where they are not counted out (order_edges() does that), and returns how many there
  // are to fold, invalid ones left out; `fold_groups` folds a share of the groups.
  int64_t (*grouped_bytes)(const GroupedScatter&);
  int64_t (*sort_updates)(const GroupedScatter&, const Operands&, int64_t unit, char* scratch);
  void (*fold_groups)(const GroupedScatter&, const Operands&, const GroupShare&);
  // As fold_groups: the gradients of a share of the groups. Only where has_gradients().
  void (*group_gradients)(const GroupedScatter&, const Gradients&, const GroupShare&);
  // As fold_groups, of maxima and minima: the result of a share of the groups, with the positions.
  void (*group_extremes)(const GroupedScatter&, const Extremes&, const GroupShare&);
  // n items of float16, bfloat16, float32 or float64; `to` may be `from`.
  void (*elementary)(Elementary, Value, const char* from, char* to, int64_t n);
  // Runs [begin, end) of a gather of quantized rows: `inner` of them for each number and place before it.
  void (*dequantize)(const QuantizedGather&, int64_t begin, int64_t end);
  // Lists of rows: `stage` numbers the ends of the edges of a piece and counts them, and returns false when
  // it met an invalid index; `place` puts them in their lists; `weights` puts [begin, end) of the weights in
  // their order; `fold` folds the lists of destinations [begin, end), with weights in that order; `items`
  // folds the list of a block, in so much scratch as a slab of its destinations takes.
  bool (*list_stage)(const ListStage&, const char* targets, const char* sources, int64_t piece);
  void (*list_place)(const ListStage&, int64_t piece);
  void (*list_weights)(const ListFold&, char* to, int64_t begin, int64_t end);
  void (*list_fold)(const ListFold&, int64_t begin, int64_t end);
  void (*list_items)(const ListFold&, int64_t list, char* scratch);
  // Folds by a pointer: `read` reads entries [begin, end) of one, and returns the greatest step between them,
  // or -1 where they do not ascend; `fold` folds destinations [begin, end), leaves edges out whose index is
  // invalid, and returns false when it met one.
  int64_t (*pointed_read)(const Nest&, const char* entries, int64_t begin, int64_t end, int64_t* starts);
  bool (*pointed_fold)(const PointedFold&, int64_t begin, int64_t end, char* scratch);
  // Writes the number of the destination of every tuple of the nest, -1 where invalid; returns how many are.
  int64_t (*number)(const Nest& ids, const char* index, int64_t* numbers);
  // A fold in batches. The first is as scatter; its operand `data` is not used.
  bool (*accumulate)(const Nest&, int units, const Operands&, const Range&, const Combine&,
                     const Accumulators&, const Owned&);
  // Of folds with a reduction; `begin_sums` where the order matters, `merge_sums` where it does not.
  void (*begin_sums)(const Combine&, const char* data, char* sums, int64_t n);
  void (*finish_sums)(const Combine&, const Finish&);
  void (*merge_sums)(const Combine&, const Merge&);
};

const Kernels& kernels_portable();
// Of x86-64's levels, those that the build has.
const Kernels& kernels_v3();
const Kernels& kernels_v4();

}  // namespace gatherum
