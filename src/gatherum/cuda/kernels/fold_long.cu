// Folds the longer runs in row-major order of the indices: a warp or a block a run and a stretch of its rows.
//
//   D[e] as in fold.cu, for every run of more than `above` entries and at most `longest` (0: no limit)
//
// GROUP threads fetch the updates of the next entries, in no order, into shared memory, where all their loads
// wait side by side. FOLDERS of them fold those that lie there, one thread a part of the row (LANES items),
// in order. So the chain of dependent additions waits for shared memory, not for the device's. In a block the
// first warp folds while the others fetch what comes next; in a warp all fetch, then those fold that have a
// part. A block takes rows of more parts than FOLDERS in stretches of so many; a warp has no such rows, for
// of these the neighbouring threads of fold.cu load a whole stretch at once.
//
// A run with more than `above` entries holds a multiple of `above`; the first such entry stands for it, and
// its thread finds where the run begins and ends. No list of long runs is kept anywhere.
//
// The plan guarantees: as in fold.cu; blocks of THREADS, which are one group, or groups of one warp each.
// Cost: as in fold.cu, and one read of every `above`-th key.
//
// Waiting for a measurement on a device: kTile, `above` and `longest`.
#include "folding.cuh"

namespace gatherum {

struct Arguments {
  char* data;
  const char* other;
  const Record* guard;
  int64 total;  // candidates, which are the entries at multiples of `above`, times the stretches
  int64 above;
  int64 longest;
  int64 include_self;
  Sorted sorted;
  Divisor stretches;  // of a row
};

static_assert(GROUP == THREADS || GROUP == 32, "a group is a block or a warp");

// Updates that lie in shared memory for a group, twice: 64 bytes a thread, and one for each folder at least.
inline constexpr int kUpdates = 64 * GROUP / static_cast<int>(sizeof(Sums));
inline constexpr int kTile = kUpdates < FOLDERS ? FOLDERS : kUpdates;
using Tiles = Sums[2][kTile];
// The first thread of a group that fetches.
inline constexpr int kFetcher = GROUP > FOLDERS ? FOLDERS : 0;

__device__ __forceinline__ void wait_for_group() {
  if constexpr (GROUP == THREADS)
    __syncthreads();
  else
    __syncwarp();
}

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
  Offset begin, end;  // end 0: no run of this kernel's
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
  const Offset stretch = number - candidate * static_cast<Offset>(call.stretches.extent);
  const Offset first = stretch * FOLDERS, left = static_cast<Offset>(sorted.each.extent) - first;
  const int parts = left < FOLDERS ? static_cast<int>(left) : FOLDERS;
  return {begin, end_of(sorted, begin + above), first, parts};
}

// Fetches the updates of entries [begin, end), as far as the tile goes; `lane` numbers the group's threads.
__device__ __forceinline__ void fetch(const Arguments& call, const Run& run, Offset begin, int lane,
                                      Sums* tile) {
  constexpr int fetchers = GROUP - kFetcher;
  const int rows = kTile / run.parts;
  const Offset left = run.end - begin;
  const int n = (left < rows ? static_cast<int>(left) : rows) * run.parts;
  for (int base = lane - kFetcher; base < n; base += kAhead * fetchers) {
    Items u[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int i = base + k * fetchers, row = i / run.parts;
      if (i >= n) continue;
      const Place p = place_of(call.sorted.row, run.first + i - row * run.parts);
      u[k] = update_of(call.sorted, call.other, begin + row, p.other);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (base + k * fetchers >= n) continue;
      const Sums sums = widen(u[k]);
      tile[base + k * fetchers] = sums;  // in two steps: ThreadSanitizer does not see what a call stores
    }
  }
}

// Every thread of the group comes here with the same run.
__device__ void fold_run(const Arguments& call, const Run& run, int lane, Tiles& tiles) {
  const int rows = kTile / run.parts;
  const bool self = call.include_self != 0, fetches = lane >= kFetcher, folds = lane < run.parts;
  const Place p = place_of(call.sorted.row, run.first + (folds ? lane : 0));
  char* const at = call.data + call.sorted.destination(call.sorted.keys[run.begin]) + p.data;
  Sums a = {};
  if (folds && self) a = widen(load_items(at));
  // Each time the entries from `next` on are fetched, and those before them are folded.
  int current = 0;
  for (Offset next = run.begin, begin = next; begin < run.end; current ^= 1) {
    if (fetches && next < run.end) fetch(call, run, next, lane, tiles[current]);
    if (folds && next > begin) {
      const int n = next < run.end ? rows : static_cast<int>(run.end - begin);
      const Sums* column = tiles[current ^ 1] + lane;
      int r = 0;
      if (!self && begin == run.begin) a = column[r++ * run.parts];
#pragma unroll 8
      for (; r < n; ++r) fold_into(a, column[r * run.parts]);
    }
    wait_for_group();
    begin = next;
    next += rows;
  }
  if (folds) finish(at, a, run.end - run.begin, self);
}

}  // namespace gatherum

extern "C" __global__ void fold_long(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ Tiles tiles[THREADS / GROUP];
  __shared__ Run runs[THREADS];
  if (is_stopped(call.guard)) return;
  const int t = static_cast<int>(threadIdx.x), lane = t % GROUP;
  Run* const found = runs + (t - lane);
  const Offset total = static_cast<Offset>(call.total);
  const Offset first = static_cast<Offset>(blockIdx.x) * THREADS + (t - lane);
  const Offset grid = static_cast<Offset>(gridDim.x) * THREADS;
  for (Offset base = first; base < total; base += grid) {
    const int n = total - base < GROUP ? static_cast<int>(total - base) : GROUP;
    if (lane < n) {
      const Run run = run_at(call, base + lane);
      found[lane] = run;
    }
    wait_for_group();
    for (int i = 0; i < n; ++i)
      if (found[i].end > 0) fold_run(call, found[i], lane, tiles[t / GROUP]);
    wait_for_group();
  }
}
