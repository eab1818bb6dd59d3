// A stable radix sort of pairs: the arguments of the sort's kernels, and the sum of preceding values.
//
// The sort makes a pass for each digit of the keys, from the lowest digit to the highest. A pass has three
// launches. A tile is THREADS * PER_THREAD consecutive pairs.
//
//   sort_count    tile_counts[d][t] = number of keys of tile t with digit d
//   sort_offsets  tile_counts[d][t] = number of keys of the tiles before t with digit d
//                 digit_totals[d] = number of keys of all tiles with digit d
//   sort_move     moves a pair of tile t with digit d to the position
//                 sum over e < d of digit_totals[e]  +  tile_counts[d][t]  +  number of earlier pairs of the
//                 tile with digit d
//
// The position of a pair is the number of pairs that have a smaller digit, or precede it and have the same
// digit. So positions are distinct, and the sort is stable.
#pragma once

#include "platform.cuh"

namespace gatherum {

using Key = typename Word<KEY_BYTES>::Type;
using Payload = typename Word<PAYLOAD_BYTES>::Type;

inline constexpr int kTilePairs = THREADS * PER_THREAD;

struct Arguments {
  const Key* keys;
  const Payload* payload;
  Key* sorted_keys;
  Payload* sorted_payload;
  uint32* tile_counts;
  uint32* digit_totals;
  int64 length;  // of keys, below 2^31 - kTilePairs
  int64 tiles;
  int64 shift;   // of the digit in a key, in bits
  int64 digits;  // values of a digit: a power of 2, at most DIGIT_VALUES
};

__device__ __forceinline__ int digit_of(const Arguments& call, Key key) {
  return static_cast<int>(key >> call.shift) & (static_cast<int>(call.digits) - 1);
}

// Returns the sum of the values of the preceding threads of the block. All threads call this function.
// Afterwards, `sums[THREADS - 1]` is the sum of all values.
__device__ __forceinline__ uint32 sum_of_preceding(uint32 value, uint32 (&sums)[THREADS]) {
  const int t = static_cast<int>(threadIdx.x);
  sums[t] = value;
  __syncthreads();
  for (int step = 1; step < THREADS; step *= 2) {
    const uint32 other = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += other;
    __syncthreads();
  }
  return sums[t] - value;
}

}  // namespace gatherum
