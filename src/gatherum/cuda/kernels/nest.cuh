// Tables of loops, which map a flat number to a point of the nest.
//
//   point(f) = sum over loops l of digit_l(f) * (data_l, index_l, moved_l, destination_l, position_l)
//
// The first three fields of a point are offsets in bytes. The radices of the digits of f are the extents of
// the loops, and the digit of the last loop varies fastest. `destination` numbers the destinations of a
// scatter from 0. `position` numbers the updates of a destination in row-major order of the indices. Digits
// are computed by multiplication: m = floor(2^(N-1+s) / d) + 1 with s = ceil(log2 d) gives floor(n / d) =
// high(2n * m) >> s for every n below 2^(N-1), in words of N bits.
#pragma once

#include "platform.cuh"

namespace gatherum {

#if OFFSET_BITS == 32
using Offset = int32;
using Unsigned = uint32;
__device__ __forceinline__ Unsigned high_product(Unsigned a, Unsigned b) { return __umulhi(a, b); }
#else
using Offset = int64;
using Unsigned = uint64;
__device__ __forceinline__ Unsigned high_product(Unsigned a, Unsigned b) { return __umul64hi(a, b); }
#endif

// A number to divide by, and the constants m and s that replace the division.
struct Divisor {
  int64 value;
  uint64 magic;
  int64 shift;

  __device__ __forceinline__ Offset divide(Offset n) const {
    const Unsigned twice = static_cast<Unsigned>(n) << 1;
    return static_cast<Offset>(high_product(twice, static_cast<Unsigned>(magic)) >> shift);
  }
};

struct Loop {
  Divisor extent;
  int64 data, index, moved, destination, position;  // the increments of a step
};

struct Loops {
  int64 rank;
  Loop loop[LOOPS];
};

struct Point {
  Offset data, index, moved, destination, position;
};

__device__ __forceinline__ void advance(Point& p, const Loop& loop, Offset steps) {
  p.data += steps * static_cast<Offset>(loop.data);
  p.index += steps * static_cast<Offset>(loop.index);
  p.moved += steps * static_cast<Offset>(loop.moved);
  p.destination += steps * static_cast<Offset>(loop.destination);
  p.position += steps * static_cast<Offset>(loop.position);
}

// Unused fields of the point cost nothing: the compiler removes them.
__device__ __forceinline__ Point point_of(const Loops& loops, Offset flat) {
  Point p = {0, 0, 0, 0, 0};
  for (int i = static_cast<int>(loops.rank) - 1; i > 0; --i) {
    const Loop& loop = loops.loop[i];
    const Offset rest = loop.extent.divide(flat);
    advance(p, loop, flat - rest * static_cast<Offset>(loop.extent.value));
    flat = rest;
  }
  if (loops.rank > 0) advance(p, loops.loop[0], flat);
  return p;
}

// Flat numbers are assigned so that neighbouring threads have neighbouring numbers. Thread t of block b
// starts at `b * threads * per_thread + t`, takes `per_thread` numbers that are `threads` apart, and then
// advances by the whole grid.
__device__ __forceinline__ Offset first_of_thread(int per_thread) {
  return static_cast<Offset>(blockIdx.x) * static_cast<Offset>(blockDim.x) * per_thread +
         static_cast<Offset>(threadIdx.x);
}
__device__ __forceinline__ Offset grid_stride(int per_thread) {
  return static_cast<Offset>(gridDim.x) * static_cast<Offset>(blockDim.x) * per_thread;
}

// The record of invalid tuples; all zeros if there are none. small.cuh only counts them.
struct Record {
  uint64 invalid_tuples;
  uint64 inverse_position;  // maximum of ~position, which gives the first position
  uint64 found;             // 1 if kernel `first` found the tuple again and set the next two fields
  uint64 component;         // the invalid component of the tuple
  int64 value;              // its value; an unsigned value keeps its bits
};

// Returns whether a launch must not write, because an index was invalid.
__device__ __forceinline__ bool is_stopped(const Record* guard) {
  return guard != nullptr && guard->invalid_tuples != 0;
}

}  // namespace gatherum
