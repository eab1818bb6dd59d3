// Folds the longer segments in row-major order of the indices: a warp or a block per segment and stretch of
// its rows.
//
//   D[e] as in fold.cu, for every segment of more than `more_than` entries and at most `at_most` (0: no
//   limit)
//
// GROUP_THREADS threads fetch the updates of the next entries into shared memory in any order, so that their
// loads overlap. FOLDING_THREADS of the threads fold the fetched updates in order, one thread per chunk of
// the row (CHUNK_ITEMS items). So the chain of dependent additions waits for shared memory, not for device
// memory. In a block, the first warp folds while the other threads fetch the next updates. In a warp, all
// threads fetch, then those with a chunk fold. A block handles longer rows in stretches of at most
// FOLDING_THREADS chunks. A warp handles no such rows, because in fold.cu neighbouring threads load a whole
// stretch of these rows in one transaction. The group waits for the loads of each tile. Tiles of short
// stretches have more entries, so a segment has fewer tiles.
//
// The plan guarantees: as in fold.cu; blocks of THREADS threads; a block is one group, or each of its warps
// is a group. Cost: as in fold.cu, plus one read of every `more_than`-th key. The measurements of
// `more_than`, `at_most` and THREADS are in cuda/folds.py; the size of a tile is not measured.
#include "folding.cuh"
#include "segments.cuh"

namespace gatherum {

// The first thread of a group that fetches updates, and the number of updates that a group fetches at a time.
inline constexpr int kFirstFetcher = GROUP_THREADS > FOLDING_THREADS ? FOLDING_THREADS : 0;
inline constexpr int kFetchedTogether = kUpdatesInFlight * (GROUP_THREADS - kFirstFetcher);
// Updates of a group in shared memory, double-buffered: up to 64 bytes per thread, and at least one update
// per thread that folds. A tile is filled by whole fetches, because a partial fetch would take as long.
inline constexpr int kBufferedUpdates = 64 * GROUP_THREADS / static_cast<int>(sizeof(Sums));
inline constexpr int kWholeFetches = kBufferedUpdates > kFetchedTogether
                                         ? kBufferedUpdates / kFetchedTogether * kFetchedTogether
                                         : kBufferedUpdates;
inline constexpr int kTileUpdates = kWholeFetches < FOLDING_THREADS ? FOLDING_THREADS : kWholeFetches;
using Tiles = Sums[2][kTileUpdates];
// The number of additions of the chain in each iteration of the loop. On an H100 (2026-11-26), 2^24 float32
// into one destination took 91 ms with 8 and 58 ms with 32. For rows of 16-byte chunks, 32 took 1 % longer
// than 8.
inline constexpr int kUnrolled = sizeof(Sums) <= 8 ? 32 : 8;

// The chunks of a stretch. A sort that carries updates carries one item, so the row has one chunk.
__device__ __forceinline__ int chunks_of(const Segment& segment) {
  return CARRIED_BYTES != 0 ? 1 : segment.chunks;
}

// Fetches the updates of entries [begin, end) that fit the tile; `lane` numbers the group's threads.
__device__ __forceinline__ void fetch(const Arguments& call, const Segment& segment, Offset begin, int lane,
                                      Sums* tile) {
  constexpr int fetchers = GROUP_THREADS - kFirstFetcher;
  const int chunks = chunks_of(segment), rows = kTileUpdates / chunks;
  const Offset left = segment.end - begin;
  const int count = (left < rows ? static_cast<int>(left) : rows) * chunks;
  for (int base = lane - kFirstFetcher; base < count; base += kUpdatesInFlight * fetchers) {
    Items updates[kUpdatesInFlight];
#pragma unroll
    for (int k = 0; k < kUpdatesInFlight; ++k) {
      const int i = base + k * fetchers, row = i / chunks;
      if (i >= count) continue;
      const Point p = point_of(call.sorted.row_loops, segment.first_chunk + i - row * chunks);
      updates[k] = update_of(call, begin + row, p.moved);
    }
#pragma unroll
    for (int k = 0; k < kUpdatesInFlight; ++k) {
      if (base + k * fetchers >= count) continue;
      const Sums sums = widen(updates[k]);
      tile[base + k * fetchers] = sums;  // in two steps: ThreadSanitizer does not see stores by a call
    }
  }
}

// All threads of the group call this with the same segment, of which each keeps a copy in registers.
__device__ void fold_segment(const Arguments& call, const Segment segment, int lane, Tiles& tiles) {
  const int chunks = chunks_of(segment), rows = kTileUpdates / chunks;
  const bool include_self = call.include_self != 0, fetches = lane >= kFirstFetcher, folds = lane < chunks;
  const Point p = point_of(call.sorted.row_loops, segment.first_chunk + (folds ? lane : 0));
  char* const destination =
      call.data + call.sorted.destination_offset(call.sorted.keys[segment.begin]) + p.data;
  Sums sums = {};
  if (folds && include_self) sums = widen(load_items(destination));
  // Each iteration fetches the entries from `next` on and folds the entries before them.
  int current = 0;
  for (Offset next = segment.begin, begin = next; begin < segment.end; current ^= 1) {
    if (fetches && next < segment.end) fetch(call, segment, next, lane, tiles[current]);
    if (folds && next > begin) {
      const int count = next < segment.end ? rows : static_cast<int>(segment.end - begin);
      const Sums* column = tiles[current ^ 1] + lane;
      int row = 0;
      if (!include_self && begin == segment.begin) sums = column[row++ * chunks];
#pragma unroll kUnrolled
      for (; row < count; ++row) fold_into(sums, column[row * chunks]);
    }
    wait_for_group();
    begin = next;
    next += rows;
  }
  if (folds) finish(destination, sums, segment.end - segment.begin, include_self);
}

}  // namespace gatherum

extern "C" __global__ void fold_long(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ Tiles tiles[THREADS / GROUP_THREADS];
  __shared__ Segment segments[THREADS];
  if (is_stopped(call.guard)) return;
  for_each_segment(call, segments, [&](const Segment& segment, int lane, int group) {
    fold_segment(call, segment, lane, tiles[group]);
  });
}
