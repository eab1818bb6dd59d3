// Adds up the counts of each digit over the tiles: the second launch of a pass of radix.cuh.
//
// The plan guarantees: a block of THREADS for each digit. Cost: the counts read and written once.
#include "radix.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    sort_offsets(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ uint32 sums[THREADS];
  const int first = static_cast<int>(threadIdx.x), tiles = static_cast<int>(call.tiles);
  uint32* const counts = call.tile_counts + blockIdx.x * call.tiles;
  uint32 sum = 0;
  for (int base = 0; base < tiles; base += THREADS) {
    const int t = base + first;
    const uint32 before = sum_of_preceding(t < tiles ? counts[t] : 0, sums);
    if (t < tiles) counts[t] = sum + before;
    sum += sums[THREADS - 1];
    __syncthreads();
  }
  if (first == 0) call.digit_totals[blockIdx.x] = sum;
}
