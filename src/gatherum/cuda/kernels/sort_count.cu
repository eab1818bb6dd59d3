// Counts the digits of the keys of each tile: the first launch of a pass of radix.cuh.
//
// The plan guarantees: a block of THREADS for each tile; `tile_counts` has digits * tiles entries. Cost: the
// keys read once, an atomic in shared memory per key.
#include "radix.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    sort_count(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ uint32 counts[DIGIT_VALUES];
  const int first = static_cast<int>(threadIdx.x), digits = static_cast<int>(call.digits);
  const int tile = static_cast<int>(blockIdx.x), length = static_cast<int>(call.length);
  for (int d = first; d < digits; d += THREADS) counts[d] = 0;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const int j = tile * kTilePairs + k * THREADS + first;
    if (j < length) atomicAdd(&counts[digit_of(call, call.keys[j])], uint32{1});
  }
  __syncthreads();
  for (int d = first; d < digits; d += THREADS) call.tile_counts[d * call.tiles + tile] = counts[d];
}
