// Folds the longer runs in row-major order of the indices: a warp or a block per run and stretch of its rows.
//
//   D[e] as in fold.cu, for every run of more than `above` entries and at most `longest` (0: no limit)
//
// GROUP threads fetch the updates of the next entries into shared memory in any order, so that their loads
// overlap. FOLDERS of the threads fold the fetched updates in order, one thread per part of the row (LANES
// items). So the chain of dependent additions waits for shared memory, not for device memory. In a block, the
// first warp folds while the other threads fetch the next updates. In a warp, all threads fetch, then those
// with a part fold. A block handles longer rows in stretches of at most FOLDERS parts. A warp has no such
// rows, because for these the neighbouring threads of fold.cu load a whole stretch in one transaction. The
// group waits for the loads of each tile. Tiles of short stretches have more entries, so a run has fewer
// tiles.
//
// The plan guarantees: as in fold.cu; blocks of THREADS, which are one group, or groups of one warp each.
// Cost: as in fold.cu, plus one read of every `above`-th key. cuda/folds.py names the measurements of
// `above`, `longest` and THREADS; the size of a tile is not measured.
#include "folding.cuh"
#include "runs.cuh"

namespace gatherum {

// The first thread of a group that fetches, and the updates of a group that are fetched at a time.
inline constexpr int kFetcher = GROUP > FOLDERS ? FOLDERS : 0;
inline constexpr int kRound = kAhead * (GROUP - kFetcher);
// Updates of a group in shared memory, double-buffered: up to 64 bytes per thread, and at least one per
// folder. A tile is filled in whole rounds: a partial one would take as long.
inline constexpr int kUpdates = 64 * GROUP / static_cast<int>(sizeof(Sums));
inline constexpr int kRounded = kUpdates > kRound ? kUpdates / kRound * kRound : kUpdates;
inline constexpr int kTile = kRounded < FOLDERS ? FOLDERS : kRounded;
using Tiles = Sums[2][kTile];
// Additions of the chain per iteration of its loop. On an H100 (2026-11-26), 2^24 float32 into one
// destination took 91 ms with 8 and 58 ms with 32. For rows of 16-byte parts, 32 took 1 % longer than 8.
inline constexpr int kUnrolled = sizeof(Sums) <= 8 ? 32 : 8;

// The parts of a stretch. A sort that carries updates carries one item, so the row has one part.
__device__ __forceinline__ int parts_of(const Run& run) { return CARRIED != 0 ? 1 : run.parts; }

// Fetches the updates of entries [begin, end) that fit the tile; `lane` numbers the group's threads.
__device__ __forceinline__ void fetch(const Arguments& call, const Run& run, Offset begin, int lane,
                                      Sums* tile) {
  constexpr int fetchers = GROUP - kFetcher;
  const int parts = parts_of(run), rows = kTile / parts;
  const Offset left = run.end - begin;
  const int n = (left < rows ? static_cast<int>(left) : rows) * parts;
  for (int base = lane - kFetcher; base < n; base += kAhead * fetchers) {
    Items u[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int i = base + k * fetchers, row = i / parts;
      if (i >= n) continue;
      const Place p = place_of(call.sorted.row, run.first + i - row * parts);
      u[k] = update_of(call, begin + row, p.moved);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (base + k * fetchers >= n) continue;
      const Sums sums = widen(u[k]);
      tile[base + k * fetchers] = sums;  // in two steps: ThreadSanitizer does not see stores by a call
    }
  }
}

// All threads of the group call this with the same run, of which each keeps a copy in registers.
__device__ void fold_run(const Arguments& call, const Run run, int lane, Tiles& tiles) {
  const int parts = parts_of(run), rows = kTile / parts;
  const bool self = call.include_self != 0, fetches = lane >= kFetcher, folds = lane < parts;
  const Place p = place_of(call.sorted.row, run.first + (folds ? lane : 0));
  char* const at = call.data + call.sorted.destination(call.sorted.keys[run.begin]) + p.data;
  Sums a = {};
  if (folds && self) a = widen(load_items(at));
  // Each iteration fetches the entries from `next` on and folds the entries before them.
  int current = 0;
  for (Offset next = run.begin, begin = next; begin < run.end; current ^= 1) {
    if (fetches && next < run.end) fetch(call, run, next, lane, tiles[current]);
    if (folds && next > begin) {
      const int n = next < run.end ? rows : static_cast<int>(run.end - begin);
      const Sums* column = tiles[current ^ 1] + lane;
      int r = 0;
      if (!self && begin == run.begin) a = column[r++ * parts];
#pragma unroll kUnrolled
      for (; r < n; ++r) fold_into(a, column[r * parts]);
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
  __shared__ Run found[THREADS];
  if (is_stopped(call.guard)) return;
  each_long_run(call, found,
                [&](const Run& run, int lane, int group) { fold_run(call, run, lane, tiles[group]); });
}
