// A sort of up to MOST_TUPLES tuples by destination, in the shared memory of one block.
//
// The bitonic network compares entries as `key * 2^32 + f`, where `f` is the number of the tuple, and `key`
// is the number of its destination. All entries differ, so the order is the stable order by key: each
// destination's updates remain in row-major order of the indices, with invalid tuples last.
#pragma once

#include "indices.cuh"

namespace gatherum {

// In a pass of this stride or less, each warp exchanges entries only within a range of twice its threads.
inline constexpr int kWithinWarp = kWarpThreads;

__device__ __forceinline__ uint32 key_of(uint64 entry) { return static_cast<uint32>(entry >> 32); }
__device__ __forceinline__ Offset tuple_of(uint64 entry) {
  return static_cast<Offset>(entry & (~uint64{0} >> 32));
}

// Writes the entries of the tuples of a call, and entries with greater keys up to the number `padded`. Adds
// the number of invalid tuples to `invalid`, unless it is null. All threads of the block call this function.
template <class Call>
__device__ __forceinline__ void write_entries(const Call& call, uint64* entries, uint32* invalid) {
  const int total = static_cast<int>(call.total), padded = static_cast<int>(call.padded);
  for (int f = static_cast<int>(threadIdx.x); f < padded; f += static_cast<int>(blockDim.x)) {
    uint64 key = ~uint64{0} >> 32;  // after all keys
    if (f < total) {
      const Point p = point_of(call.loops, f);
      const Target t = target_of<MODE>(call.tuple, call.index + p.index);
      key = static_cast<uint64>(t.valid ? static_cast<int64>(p.destination + t.destination)
                                        : call.destinations);
      if (!t.valid && invalid != nullptr) atomicAdd(invalid, 1u);
    }
    entries[f] = key << 32 | static_cast<uint64>(f);
  }
  __syncthreads();
}

// Sorts entries, whose number is a power of 2. All threads of the block call this function.
__device__ __forceinline__ void sort_entries(uint64* entries, int padded) {
  const int first = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int size = 2; size <= padded; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      for (int t = first; t < padded / 2; t += threads) {
        const int i = 2 * t - (t & (stride - 1));
        const uint64 a = entries[i], b = entries[i + stride];
        const bool ascends = (i & size) == 0;
        entries[i] = (a > b) == ascends ? b : a;
        entries[i + stride] = (a > b) == ascends ? a : b;
      }
      const int next = stride > 1 ? stride / 2 : size;
      if (stride > kWithinWarp || next > kWithinWarp)
        __syncthreads();
      else
        __syncwarp();
    }
  }
  __syncthreads();
}

}  // namespace gatherum
