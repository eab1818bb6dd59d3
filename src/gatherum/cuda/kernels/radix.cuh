// A stable sort of pairs by radix: the arguments of its kernels, and the sum of preceding values.
//
// The sort makes a pass for each digit of the keys, from the lowest digit to the highest. A pass has three
// launches. A tile is THREADS * EACH consecutive pairs.
//
//   sort_count    count[d][t] = number of keys of tile t with digit d
//   sort_offsets  count[d][t] = number of keys of the tiles before t with digit d;  total[d] = of all tiles
//   sort_move     moves a pair of tile t with digit d to the place
//                 sum over e < d of total[e]  +  count[d][t]  +  number of earlier pairs of the tile with
//                 digit d
//
// The place of a pair is the number of pairs with a smaller digit, or with the same digit before it. So
// places are distinct, and the sort is stable.
#pragma once

#include "platform.cuh"

namespace gatherum {

using Key = typename Word<KEY_WIDTH>::Type;
using Payload = typename Word<PAYLOAD_WIDTH>::Type;

inline constexpr int kTile = THREADS * EACH;

struct Arguments {
  const Key* keys;
  const Payload* payload;
  Key* sorted_keys;
  Payload* sorted_payload;
  uint32* count;
  uint32* total;
  int64 length;  // of keys, below 2^31 - kTile
  int64 tiles;
  int64 shift;   // of the digit in a key, in bits
  int64 digits;  // values of a digit: a power of 2, at most DIGITS
};

__device__ __forceinline__ int digit_of(const Arguments& call, Key key) {
  return static_cast<int>(key >> call.shift) & (static_cast<int>(call.digits) - 1);
}

// Returns the sum of the values of the preceding threads of the block. All threads call this; sums[THREADS -
// 1] is then the sum of all values.
__device__ __forceinline__ uint32 sum_before(uint32 value, uint32 (&sums)[THREADS]) {
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
