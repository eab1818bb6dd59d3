// Reads, resolves and checks indices. No other file of the device code reads them.
//
//   offset = sum over components c of check(X[x + x_c], n_c) * d_c
//
// Every pass reads each component once and checks it before any arithmetic. Writes by another stream can
// change the result, but every offset stays inside the data.
#pragma once

#include "modes.cuh"
#include "nest.cuh"

namespace gatherum {

struct Component {
  int64 size, stride, offset;
  int64 destination;  // the step from one destination to the next, for scatters
  int64 from_end;     // added to a negative index: the size, or 0 if negative indices are invalid
};

struct Tuple {
  int64 count;
  Component component[COMPONENTS];
};

inline constexpr bool kSignedIndex = static_cast<INDEX>(-1) < 0;

// Returns the index as an int64; a uint64 of 2^63 or more keeps its bits.
__device__ __forceinline__ int64 load_index(const char* address) {
  if constexpr (INDEX_SWAPPED) {
    using Bits = typename Word<sizeof(INDEX)>::Type;
    Bits bits = 0;
    for (int i = 0; i < static_cast<int>(sizeof(INDEX)); ++i)
      bits = static_cast<Bits>(static_cast<uint64>(bits) << 8 | static_cast<uint8>(address[i]));
    return static_cast<int64>(static_cast<INDEX>(bits));
  }
  return static_cast<int64>(load_constant<INDEX, INDEX_ALIGN>(address));
}

struct Resolved {
  int64 value;
  bool valid;
};

template <Mode M>
__device__ __forceinline__ Resolved resolve(int64 v, const Component& c) {
  constexpr bool huge = !kSignedIndex && sizeof(INDEX) == 8;  // values of 2^63 or more would be negative
  if constexpr (M == mode_wrap) {
    if constexpr (huge) {
      v = static_cast<int64>(static_cast<uint64>(v) % static_cast<uint64>(c.size));
    } else {
      v %= c.size;
      v += v < 0 ? c.size : 0;
    }
    return {v, true};
  } else if constexpr (M == mode_clip) {
    if (huge && v < 0) v = c.size - 1;
    if (v < 0 && v >= -c.from_end) v += c.from_end;
    return {v < 0 ? 0 : v >= c.size ? c.size - 1 : v, true};
  } else if constexpr (M == mode_raise || M == mode_drop) {
    v += v < 0 ? c.from_end : 0;
    return {v, static_cast<uint64>(v) < static_cast<uint64>(c.size)};
  } else {
    static_assert(!kIsUnhandled<M>, "resolve: a mode has no rule for an invalid index");
  }
}

struct Target {
  Offset data, destination;
  bool valid;
};

// Returns the position of a tuple in the data. A tuple without components has offset 0.
template <Mode M>
__device__ __forceinline__ Target target_of(const Tuple& tuple, const char* address) {
  Target t = {0, 0, true};
  for (int i = 0; i < static_cast<int>(tuple.count); ++i) {
    const Component& c = tuple.component[i];
    const Resolved r = resolve<M>(load_index(address + c.offset), c);
    const Offset value = r.valid ? static_cast<Offset>(r.value) : 0;
    t.valid = t.valid && r.valid;
    t.data += value * static_cast<Offset>(c.stride);
    t.destination += value * static_cast<Offset>(c.destination);
  }
  return t;
}

}  // namespace gatherum
