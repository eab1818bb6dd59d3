// Segments of sorted updates: the arguments of the kernels that fold them, and the search for longer ones.
//
// A segment with more than `more_than` entries contains an entry whose number is a multiple of `more_than`.
// The thread of the first such entry, a candidate, finds where the segment begins and ends. So no list of
// long segments is needed.
#pragma once

#include "sorted.cuh"

namespace gatherum {

#ifndef GROUP_THREADS

// A thread folds a segment and a chunk of the row.
struct Arguments {
  char* data;
  const char* moved;
  const Record* guard;
  int64 total;         // entries times the chunks of a row
  int64 at_most;       // longer segments are folded by fold_long.cu
  int64 include_self;  // 1 if the old value takes part
  Sorted sorted;
#if ROW_NUMBER_BYTES != 0
  Weights weights;
#endif
};

#else

// A group of threads, a warp or a block, folds a segment and a stretch of its rows: consecutive chunks.
struct Arguments {
  char* data;
  const char* moved;
  const Record* guard;
  int64 total;  // candidates (entries at multiples of `more_than`) times the stretches
  int64 more_than;
  int64 at_most;
  int64 include_self;
  int64 stretch_chunks;        // chunks of a row that a group folds, at most FOLDING_THREADS
  int64 candidates_per_group;  // tested at a time, at most GROUP_THREADS
  Sorted sorted;
  Divisor stretches_per_row;
#if ROW_NUMBER_BYTES != 0
  Weights weights;
#endif
};

static_assert(GROUP_THREADS == THREADS || GROUP_THREADS == kWarpThreads, "a group is a block or a warp");

__device__ __forceinline__ void wait_for_group() {
  if constexpr (GROUP_THREADS == THREADS)
    __syncthreads();
  else
    __syncwarp();
}

// Returns the first entry in (low, high] with the key of entry high.
__device__ __forceinline__ Offset segment_begin(const Sorted& sorted, Offset low, Offset high) {
  const Key key = sorted.keys[high];
  while (high - low > 1) {
    const Offset middle = low + (high - low) / 2;
    if (sorted.keys[middle] == key)
      high = middle;
    else
      low = middle;
  }
  return high;
}

// Returns one past the last entry with the key of entry `inside`.
__device__ __forceinline__ Offset segment_end(const Sorted& sorted, Offset inside) {
  const Key key = sorted.keys[inside];
  const Offset count = static_cast<Offset>(sorted.count);
  Offset reach = 1;
  while (reach < count - inside && sorted.keys[inside + reach] == key) {
    inside += reach;
    reach = reach < count / 2 ? 2 * reach : reach;
  }
  Offset high = reach < count - inside ? inside + reach : count;
  while (high - inside > 1) {
    const Offset middle = inside + (high - inside) / 2;
    if (sorted.keys[middle] == key)
      inside = middle;
    else
      high = middle;
  }
  return high;
}

struct Segment {
  Offset begin, end;   // end 0: not a segment for this launch
  Offset first_chunk;  // of the stretch of the row
  int chunks;          // of the stretch
};

// Returns the stretch of the segment that a candidate finds, for the flat number of candidate and stretch.
__device__ __forceinline__ Segment segment_at(const Arguments& call, Offset number) {
  const Sorted& sorted = call.sorted;
  const Offset candidate = call.stretches_per_row.divide(number);
  const Offset more_than = static_cast<Offset>(call.more_than), at_most = static_cast<Offset>(call.at_most);
  const Offset j = candidate * more_than;
  const Key key = sorted.keys[j];
  if (!sorted.is_destination(key)) return {0, 0, 0, 0};
  if (j > 0 && sorted.keys[j - more_than] == key) return {0, 0, 0, 0};
  const Offset begin = segment_begin(sorted, j > 0 ? j - more_than : -1, j);
  if (!sorted.has_key(begin + more_than, key)) return {0, 0, 0, 0};
  if (at_most > 0 && sorted.has_key(begin + at_most, key)) return {0, 0, 0, 0};
  const Offset most = static_cast<Offset>(call.stretch_chunks);
  const Offset first_chunk = (number - candidate * static_cast<Offset>(call.stretches_per_row.value)) * most;
  const Offset left = static_cast<Offset>(sorted.row_chunks.value) - first_chunk;
  const int chunks = static_cast<int>(left < most ? left : most);
  return {begin, segment_end(sorted, begin + more_than), first_chunk, chunks};
}

// Every group finds the segments of its candidates and folds them in order: all threads of a group call
// `fold(segment, lane, group)` together. The launch chooses `candidates_per_group` so that the candidates are
// spread over all processors.
template <class Fold>
__device__ __forceinline__ void for_each_segment(const Arguments& call, Segment* segments, const Fold& fold) {
  const int t = static_cast<int>(threadIdx.x), lane = t % GROUP_THREADS;
  segments += t - lane;
  const Offset total = static_cast<Offset>(call.total);
  const Offset per_group = static_cast<Offset>(call.candidates_per_group), groups = THREADS / GROUP_THREADS;
  const Offset first = (static_cast<Offset>(blockIdx.x) * groups + t / GROUP_THREADS) * per_group;
  const Offset grid = static_cast<Offset>(gridDim.x) * groups * per_group;
  for (Offset base = first; base < total; base += grid) {
    const int count = static_cast<int>(total - base < per_group ? total - base : per_group);
    if (lane < count) {
      const Segment segment = segment_at(call, base + lane);
      segments[lane] = segment;
    }
    wait_for_group();
    for (int i = 0; i < count; ++i)
      if (segments[i].end > 0) fold(segments[i], lane, t / GROUP_THREADS);
    wait_for_group();
  }
}

#endif

}  // namespace gatherum
