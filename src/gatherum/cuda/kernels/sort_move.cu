// Moves the pairs of each tile to their positions: the third launch of a pass of radix.cuh.
//
// A warp ranks kWarpThreads * PER_THREAD consecutive pairs, kWarpThreads at a time: the lanes with the same
// digit find each other, and the first of them adds their number to the warp's count of the digit. The counts
// of all warps are then replaced by the positions of the warps' first pairs.
//
// The plan guarantees: a block of THREADS for each tile; the results do not overlap the pairs. Cost:
// the pairs read and written once, the counts of the tile and all totals read once.
#include "radix.cuh"

namespace gatherum {

inline constexpr int kWarps = THREADS / kWarpThreads;
using Ranks = uint32[kWarps][DIGIT_VALUES];

// Adds the position of a tile's first pair of each digit, and the counts of the preceding warps, to the
// ranks.
__device__ __forceinline__ void add_positions(const Arguments& call, Ranks& ranks, uint32 (&sums)[THREADS]) {
  const int digits = static_cast<int>(call.digits), digits_per_thread = (digits + THREADS - 1) / THREADS;
  const int first = static_cast<int>(threadIdx.x) * digits_per_thread;
  const int end = first + digits_per_thread < digits ? first + digits_per_thread : digits;
  uint32 sum = 0;
  for (int d = first; d < end; ++d) sum += call.digit_totals[d];
  uint32 position = sum_of_preceding(sum, sums);
  for (int d = first; d < end; ++d) {
    uint32 rank = position + call.tile_counts[d * call.tiles + blockIdx.x];
    for (int w = 0; w < kWarps; ++w) {
      const uint32 pairs = ranks[w][d];
      ranks[w][d] = rank;
      rank += pairs;
    }
    position += call.digit_totals[d];
  }
}

}  // namespace gatherum

extern "C" __global__ void __launch_bounds__(THREADS)
    sort_move(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ Ranks ranks;
  __shared__ uint32 sums[THREADS];
  const int t = static_cast<int>(threadIdx.x), lane = t % kWarpThreads, warp = t / kWarpThreads;
  const int digits = static_cast<int>(call.digits), length = static_cast<int>(call.length);
  const int begin = static_cast<int>(blockIdx.x) * kTilePairs + warp * kWarpThreads * PER_THREAD + lane;
  for (int i = lane; i < digits; i += kWarpThreads) ranks[warp][i] = 0;
  __syncwarp();
  Key keys[PER_THREAD];
  uint32 rank[PER_THREAD];
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k)
    keys[k] = begin + kWarpThreads * k < length ? call.keys[begin + kWarpThreads * k] : 0;
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const bool is_pair = begin + kWarpThreads * k < length;
    const int digit = is_pair ? digit_of(call, keys[k]) : DIGIT_VALUES;
    const uint32 same = __match_any_sync(~uint32{0}, digit);
    const uint32 before = static_cast<uint32>(__popc(same & ((uint32{1} << lane) - 1)));
    const uint32 count = is_pair ? ranks[warp][digit] : 0;
    __syncwarp();
    if (is_pair && before == 0) ranks[warp][digit] = count + static_cast<uint32>(__popc(same));
    __syncwarp();
    rank[k] = count + before;
  }
  __syncthreads();
  add_positions(call, ranks, sums);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const int j = begin + kWarpThreads * k;
    if (j >= length) continue;
    const uint32 position = ranks[warp][digit_of(call, keys[k])] + rank[k];
    call.sorted_keys[position] = keys[k];
    call.sorted_payload[position] = call.payload[j];
  }
}
