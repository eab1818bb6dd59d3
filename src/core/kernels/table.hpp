// The table of kernel functions that the rest of the core calls. Each instruction-set level has one table,
// compiled from the same source. calls.hpp defines the arguments of the functions.
#pragma once

#include "kernels/calls.hpp"

namespace gatherum {

struct Kernels {
  const char* level;
  // Returns false if an index is invalid in mode raise; the output is then incomplete. If `streams`, rows use
  // streaming stores, and must be whole aligned cache lines of the output.
  bool (*gather)(const Nest&, int unit_loops, const Operands&, const Range&, bool streams);
  // Like gather, for whole lines that each read a short stretch of the data (gather_stretches.hpp).
  bool (*gather_stretches)(const Nest&, const Operands&, int64_t begin, int64_t end, int64_t* scratch,
                           bool streams);
  bool (*gather_packed)(const PackedGather&, const Operands&, int64_t begin, int64_t end, char* scratch);
  void (*copy)(char* to, const char* from, int64_t bytes);
  Invalid (*first_invalid)(const Nest&, const char* index, const Range&);
  // Scatters skip invalid tuples, and return false if they found an invalid tuple.
  bool (*scatter)(const Nest&, int unit_loops, const Operands&, const Range&, const FoldRule&,
                  const DestinationRange&);
  int64_t (*slab_bytes)(const FoldRule&, int64_t item, int64_t slots);
  // Returns true if a thread can cheaply select the updates of its range of destinations.
  bool (*chooses_slots)(const Nest&, int64_t destinations);
  // Writes the lowest and the highest destination of a range of units; if there are none, the highest is -1.
  // Returns false if it found an invalid index. There are fewer than 2^31 destinations.
  bool (*find_lowest_and_highest)(const Nest& numbering, const char* index, const Range&,
                                  int64_t destinations, int32_t* lowest, int32_t* highest);
  // slab_take folds the updates of one task into a slab in scratch. slab_write writes the slab to the output.
  bool (*slab_take)(const SlabScatter&, const Operands&, int64_t task, char* scratch);
  void (*slab_write)(const SlabScatter&, const Operands&, int64_t task, char* scratch);
  // A scatter with one set of accumulators for each piece of the updates. `bytes` returns the size of a set,
  // or 0 if the order may matter; `take` and `write` are then not supported. `take` folds a piece. `write`
  // merges the destinations [begin, end) of all sets and writes them.
  int64_t (*private_bytes)(const FoldRule&, int64_t slots, bool tables);
  FoldedUpdates (*private_take)(const PrivateScatter&, const Operands&, int64_t piece);
  void (*private_write)(const PrivateScatter&, const Operands&, int64_t begin, int64_t end);
  // A fold without the old values, in accumulators without counters. `bytes` returns the size of the
  // accumulators, or 0 if the fold is not supported. `is_suitable` is called first, and returns true if the
  // old values of destinations [begin, end) allow it. `take` runs one task, and returns false if it found an
  // invalid index. `merge` merges the sets, and returns true if the results of [begin, end) are unambiguous.
  // If they are ambiguous, `is_unambiguous` returns true if the updates of a piece resolve the ambiguity.
  // `write` is called only if no ambiguity remains.
  int64_t (*uncounted_bytes)(const FoldRule&, int64_t slots);
  bool (*uncounted_is_any_order)(const FoldRule&);
  bool (*uncounted_is_suitable)(const PrivateScatter&, const Operands&, int64_t begin, int64_t end);
  bool (*uncounted_take)(const PrivateScatter&, const Operands&, int64_t task);
  bool (*uncounted_merge)(const PrivateScatter&, const Operands&, int64_t begin, int64_t end);
  bool (*uncounted_is_unambiguous)(const PrivateScatter&, const Operands&, int64_t piece);
  void (*uncounted_write)(const PrivateScatter&, const Operands&, int64_t begin, int64_t end);
  // The same for argmax and argmin, in any type. A piece has fewer than 2^32 - 1 updates and assigns a number
  // to each.
  int64_t (*located_bytes)(const FoldRule&, int64_t slots);
  FoldedUpdates (*located_take)(const PrivateScatter&, const Operands&, int64_t piece);
  void (*located_write)(const PrivateScatter&, int64_t begin, int64_t end);
  // The steps of a scatter in rounds. `sample` writes the destinations of up to kSamples updates, and returns
  // their number. `read` and `write` convert the blocks [begin, end) of all lists' destinations to
  // accumulators and back. `read` returns true if no accumulator is a NaN. `distribute` sorts a piece into
  // the lists of an area; it returns false if it found an invalid index. `fold` folds the lists [begin, end)
  // of all pieces of a set.
  int (*rounds_sample)(const RoundScatter&, const Operands&, uint32_t* destinations);
  bool (*rounds_read)(const RoundScatter&, const Operands&, int64_t begin, int64_t end);
  bool (*rounds_distribute)(const RoundScatter&, const Operands&, int64_t piece, int64_t area);
  void (*rounds_fold)(const RoundScatter&, const Operands&, int64_t set, int64_t begin, int64_t end);
  void (*rounds_write)(const RoundScatter&, const Operands&, int64_t begin, int64_t end);
  // The two passes of a partition. `distribute` returns false if it found an invalid index.
  bool (*partition_distribute)(const PartitionScatter&, const Operands&, int64_t piece);
  void (*partition_apply)(const PartitionScatter&, const Operands&, int64_t bucket, char* scratch);
  // The two steps of a scatter that writes the last update of each destination. `find` returns false if it
  // found an invalid index. `write` writes the destinations [begin, end).
  bool (*last_find)(const LastUpdates&, const Operands&, int64_t piece);
  void (*last_write)(const LastUpdates&, const Operands&, int64_t begin, int64_t end);
  // The two passes of a scatter by groups, for one unit, in `grouped_bytes` of scratch. `sort_updates` sorts
  // the updates by comparison, and returns the number of valid updates. (For a counting sort, order_edges()
  // is used instead.) `fold_groups` folds a share of the groups.
  int64_t (*grouped_bytes)(const GroupedScatter&);
  int64_t (*sort_updates)(const GroupedScatter&, const Operands&, int64_t unit, char* scratch);
  void (*fold_groups)(const GroupedScatter&, const Operands&, const GroupShare&);
  // Like fold_groups, for the gradients of a share of the groups. Requires has_gradients().
  void (*group_gradients)(const GroupedScatter&, const Gradients&, const GroupShare&);
  // Like fold_groups, for maxima and minima: writes the results of a share of the groups, and their argmax or
  // argmin.
  void (*group_extremes)(const GroupedScatter&, const Extremes&, const GroupShare&);
  // n items of float16, bfloat16, float32 or float64; `to` may be `from`.
  void (*elementary)(Elementary, Value, const char* from, char* to, int64_t n);
  // Runs [begin, end) of a gather of quantized rows. Each pair of a row number and a position in the
  // dimensions before it has `inner` runs.
  void (*dequantize)(const QuantizedGather&, int64_t begin, int64_t end);
  // Lists of rows. `stage` checks, numbers and counts the edges of a piece, and returns false if it found an
  // invalid index. `place` writes the edges to their lists. `weights` copies the weights [begin, end) in the
  // order of the lists. `fold` folds the lists of destinations [begin, end), with weights in this order.
  // `items` folds the list of a bucket. Its scratch is as large as a slab for the bucket's destinations.
  bool (*list_stage)(const ListStage&, const char* targets, const char* sources, int64_t piece);
  void (*list_place)(const ListStage&, int64_t piece);
  void (*list_weights)(const ListFold&, char* to, int64_t begin, int64_t end);
  void (*list_fold)(const ListFold&, int64_t begin, int64_t end);
  void (*list_items)(const ListFold&, int64_t list, char* scratch);
  // Folds by a CSR pointer array. `make` reads the targets of edges [begin, end), and writes the entries
  // between the lowest and the highest target if the targets are valid and ascend. `read` reads entries
  // [begin, end), and returns the greatest difference between adjacent entries, or -1 if an entry is invalid
  // or the entries do not ascend. `fold` folds destinations [begin, end), skips edges with invalid indices,
  // and returns false if it skipped an edge.
  EdgeOrder (*pointed_make)(const Nest&, const char* targets, int64_t begin, int64_t end, int64_t* starts);
  int64_t (*pointed_read)(const Nest&, const char* entries, int64_t begin, int64_t end, int64_t* starts);
  bool (*pointed_fold)(const PointedFold&, int64_t begin, int64_t end, char* scratch);
  // Writes the destination number of every tuple of the nest, or -1 if the tuple is invalid. Returns the
  // number of invalid tuples.
  int64_t (*write_numbers)(const Nest& numbering, const char* index, int64_t* numbers);
  // A scatter in batches. `accumulate` is like scatter, but does not use the operand `data`.
  bool (*accumulate)(const Nest&, int unit_loops, const Operands&, const Range&, const FoldRule&,
                     const Accumulators&, const DestinationRange&);
  // For folds with a reduction: `begin_sums` if the order matters, `merge_sums` if it does not.
  void (*begin_sums)(const FoldRule&, const char* data, char* sums, int64_t n);
  void (*finish_sums)(const FoldRule&, const FinishCall&);
  void (*merge_sums)(const FoldRule&, const MergeCall&);
  // Squared distances from means, in `spread_bytes` of scratch for the destinations of a task. `spread_take`
  // runs one task, and returns false if it found an invalid index.
  // `group_spreads` is like group_extremes.
  int64_t (*spread_bytes)(Value, int64_t slots);
  bool (*spread_take)(const SlabScatter&, const Operands&, const Spreads&, int64_t task, char* scratch);
  void (*group_spreads)(const GroupedScatter&, const Operands&, const Spreads&, const GroupShare&);
};

const Kernels& kernels_portable();
// The levels of x86-64 that the build includes.
const Kernels& kernels_v3();
const Kernels& kernels_v4();

}  // namespace gatherum
