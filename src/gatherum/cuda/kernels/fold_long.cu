// Folds the long runs in row-major order of the indices: one block a run and a stretch of its rows.
//
// The last three warps fetch the updates of the next few hundred entries, in no order, into shared memory;
// the first warp folds those that lie there, one thread a part of the row (LANES items), in order. So the
// chain of dependent additions waits for shared memory, not for the device's. Rows of more than 32 parts are
// done in stretches of 32. `longest` as in fold.cu.
//
// A run with more than `longest` entries holds a multiple of `longest`; the first such entry stands for it,
// and its thread finds where the run begins and ends. No list of long runs is kept anywhere.
//
// The plan guarantees: as in fold.cu; blocks of THREADS. Cost: as in fold.cu, and one look at every
// `longest`-th key.
//
// Waiting for a measurement on a device: kTile and `longest`.
#include "folding.cuh"

namespace gatherum {

struct Arguments {
  char* data;
  const char* other;
  const Record* guard;
  int64 total;  // candidates, which are the entries at multiples of `longest`, times the stretches
  int64 longest;
  int64 include_self;
  Sorted sorted;
  Divisor stretches;  // of a row
};

inline constexpr int kTile = 8192 / sizeof(Sums);

// The first entry in (low, high] of the key of entry high.
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

// One past the last entry of the key of entry `inside`.
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
  Offset begin, end;  // end 0: no long run
  Offset first;       // the stretch of the row
  int parts;
};

__device__ __forceinline__ Run run_at(const Arguments& call, Offset number) {
  const Sorted& sorted = call.sorted;
  const Offset candidate = call.stretches.divide(number);
  const Offset longest = static_cast<Offset>(call.longest), j = candidate * longest;
  const Key key = sorted.keys[j];
  if (!sorted.is_destination(key)) return {0, 0, 0, 0};
  if (j > 0 && sorted.keys[j - longest] == key) return {0, 0, 0, 0};
  const Offset begin = begin_of(sorted, j > 0 ? j - longest : -1, j);
  if (!sorted.has(begin + longest, key)) return {0, 0, 0, 0};
  const Offset stretch = number - candidate * static_cast<Offset>(call.stretches.extent);
  const Offset first = stretch * FOLDERS, left = static_cast<Offset>(sorted.each.extent) - first;
  const int parts = left < FOLDERS ? static_cast<int>(left) : FOLDERS;
  return {begin, end_of(sorted, begin + longest), first, parts};
}

// Fetches the updates of entries [begin, end), as far as the tile goes, by all threads but the folders.
__device__ __forceinline__ void fetch(const Arguments& call, const Run& run, Offset begin, Sums* tile) {
  const int rows = kTile / run.parts;
  const Offset left = run.end - begin;
  const int n = (left < rows ? static_cast<int>(left) : rows) * run.parts;
  for (int i = static_cast<int>(threadIdx.x) - FOLDERS; i < n; i += THREADS - FOLDERS) {
    const int row = i / run.parts;
    const Place p = place_of(call.sorted.row, run.first + i - row * run.parts);
    const Sums sums = widen(update_of(call.sorted, call.other, begin + row, p.other));
    tile[i] = sums;  // in two steps: ThreadSanitizer does not see what a call stores
  }
}

// Every thread of the block comes here with the same run.
__device__ void fold_run(const Arguments& call, const Run& run, Sums (&tiles)[2][kTile]) {
  const int rows = kTile / run.parts, t = static_cast<int>(threadIdx.x);
  const bool self = call.include_self != 0, fetches = t >= FOLDERS, folds = t < run.parts;
  const Place p = place_of(call.sorted.row, run.first + (folds ? t : 0));
  char* const at = call.data + call.sorted.destination(call.sorted.keys[run.begin]) + p.data;
  Sums a = {};
  if (folds && self) a = widen(load_items(at));
  if (fetches) fetch(call, run, run.begin, tiles[0]);
  __syncthreads();
  int current = 0;
  for (Offset begin = run.begin; begin < run.end; begin += rows, current ^= 1) {
    const Offset next = begin + rows;
    if (fetches && next < run.end) fetch(call, run, next, tiles[current ^ 1]);
    if (folds) {
      const int n = next < run.end ? rows : static_cast<int>(run.end - begin);
      const Sums* column = tiles[current] + t;
      int r = 0;
      if (!self && begin == run.begin) a = column[r++ * run.parts];
#pragma unroll 8
      for (; r < n; ++r) fold_into(a, column[r * run.parts]);
    }
    __syncthreads();
  }
  if (folds) finish(at, a, run.end - run.begin, self);
}

}  // namespace gatherum

extern "C" __global__ void fold_long(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ Sums tiles[2][kTile];
  __shared__ Run runs[THREADS];
  if (is_stopped(call.guard)) return;
  const Offset total = static_cast<Offset>(call.total);
  const Offset grid = static_cast<Offset>(gridDim.x) * THREADS;
  for (Offset base = static_cast<Offset>(blockIdx.x) * THREADS; base < total; base += grid) {
    const int n = total - base < THREADS ? static_cast<int>(total - base) : THREADS;
    const int t = static_cast<int>(threadIdx.x);
    if (t < n) {
      const Run run = run_at(call, base + t);
      runs[t] = run;
    }
    __syncthreads();
    for (int i = 0; i < n; ++i)
      if (runs[i].end > 0) fold_run(call, runs[i], tiles);
    __syncthreads();
  }
}
