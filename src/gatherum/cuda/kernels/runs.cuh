// Runs of sorted updates: the arguments of the kernels that fold them, and the search for longer runs.
//
// A run with more than `above` entries contains a multiple of `above`. The thread of the first such entry
// finds where the run begins and ends, so no list of long runs is needed.
#pragma once

#include "sorted.cuh"

namespace gatherum {

#ifndef GROUP

// A thread folds a run and a part of the row.
struct Arguments {
  char* data;
  const char* moved;
  const Record* guard;
  int64 total;  // entries times the parts of a row
  int64 longest;
  int64 include_self;  // 1 if the old value takes part
  Sorted sorted;
#if WEIGHTED != 0
  Weights weights;
#endif
};

#else

// A warp or a block folds a run and a stretch of its rows.
struct Arguments {
  char* data;
  const char* moved;
  const Record* guard;
  int64 total;  // candidates (entries at multiples of `above`) times the stretches
  int64 above;
  int64 longest;
  int64 include_self;
  int64 stretch;  // parts of a row that a group folds, at most FOLDERS
  int64 each;     // candidates that a group tests at a time, at most GROUP
  Sorted sorted;
  Divisor stretches;  // of a row
#if WEIGHTED != 0
  Weights weights;
#endif
};

static_assert(GROUP == THREADS || GROUP == 32, "a group is a block or a warp");

__device__ __forceinline__ void wait_for_group() {
  if constexpr (GROUP == THREADS)
    __syncthreads();
  else
    __syncwarp();
}

// Returns the first entry in (low, high] with the key of entry high.
__device__ __forceinline__ Offset begin_of(const Sorted& sorted, Offset low, Offset high) {
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
__device__ __forceinline__ Offset end_of(const Sorted& sorted, Offset inside) {
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

struct Run {
  Offset begin, end;  // end 0: not a run for this kernel
  Offset first;       // the stretch of the row
  int parts;
};

__device__ __forceinline__ Run run_at(const Arguments& call, Offset number) {
  const Sorted& sorted = call.sorted;
  const Offset candidate = call.stretches.divide(number);
  const Offset above = static_cast<Offset>(call.above), longest = static_cast<Offset>(call.longest);
  const Offset j = candidate * above;
  const Key key = sorted.keys[j];
  if (!sorted.is_destination(key)) return {0, 0, 0, 0};
  if (j > 0 && sorted.keys[j - above] == key) return {0, 0, 0, 0};
  const Offset begin = begin_of(sorted, j > 0 ? j - above : -1, j);
  if (!sorted.has(begin + above, key)) return {0, 0, 0, 0};
  if (longest > 0 && sorted.has(begin + longest, key)) return {0, 0, 0, 0};
  const Offset most = static_cast<Offset>(call.stretch);
  const Offset first = (number - candidate * static_cast<Offset>(call.stretches.extent)) * most;
  const Offset left = static_cast<Offset>(sorted.each.extent) - first;
  const int parts = static_cast<int>(left < most ? left : most);
  return {begin, end_of(sorted, begin + above), first, parts};
}

// Every group finds the runs of its candidates and processes them in order: all threads of a group call
// work(run, lane, group) together. The launch chooses `each` so that the candidates are spread over all
// processors.
template <class Work>
__device__ __forceinline__ void each_long_run(const Arguments& call, Run* found, const Work& work) {
  const int t = static_cast<int>(threadIdx.x), lane = t % GROUP;
  found += t - lane;
  const Offset total = static_cast<Offset>(call.total);
  const Offset each = static_cast<Offset>(call.each), groups = THREADS / GROUP;
  const Offset first = (static_cast<Offset>(blockIdx.x) * groups + t / GROUP) * each;
  const Offset grid = static_cast<Offset>(gridDim.x) * groups * each;
  for (Offset base = first; base < total; base += grid) {
    const int n = static_cast<int>(total - base < each ? total - base : each);
    if (lane < n) {
      const Run run = run_at(call, base + lane);
      found[lane] = run;
    }
    wait_for_group();
    for (int i = 0; i < n; ++i)
      if (found[i].end > 0) work(found[i], lane, t / GROUP);
    wait_for_group();
  }
}

#endif

}  // namespace gatherum
