// exp and log. They are implemented here because the results of C libraries differ between systems. The
// formulas use only operations whose results IEEE 754 defines exactly. The results therefore have the same
// bits on every instruction-set level, with and without vectors, on every processor, and on CUDA devices,
// whose kernels use the same formulas. Errors are below 1 ulp, and at most 0.51 ulp for float
// (benchmarks/elementary_errors.py measures them).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "fold/halves.hpp"

namespace gatherum::GATHERUM_LEVEL {

using uint64 = uint64_t;

GATHERUM_INLINE uint64 bits_of(double x) { return std::bit_cast<uint64>(x); }
GATHERUM_INLINE double of_bits(uint64 bits) { return std::bit_cast<double>(bits); }

// Returns `c ? a : b`. (See select() in halves.hpp.)
GATHERUM_INLINE double choose(bool c, double a, double b) {
  return of_bits(select(c, bits_of(a), bits_of(b)));
}

#define GATHERUM_FORMULA GATHERUM_INLINE
#include "../gatherum/cuda/kernels/exp_log.cuh"
#undef GATHERUM_FORMULA

// Applies a function to a value of type float or double.
template <class F, class V>
GATHERUM_INLINE V value_of(V x) {
  return static_cast<V>(F::template of<std::is_same_v<V, float>>(x));
}

// to[i] = F(from[i]) for n items. The two arrays may be the same. Half-precision items are converted to float
// first.
template <class V, class F>
void map_items(const char* from, char* to, int64_t n) {
  const auto* in = reinterpret_cast<const V*>(from);
  auto* out = reinterpret_cast<V*>(to);
  for (int64_t i = 0; i < n; ++i) out[i] = value_of<F>(in[i]);
}

template <class F, float (*widen)(uint16_t), uint16_t (*narrow)(float)>
void map_halves(const char* from, char* to, int64_t n) {
  const auto* in = reinterpret_cast<const uint16_t*>(from);
  auto* out = reinterpret_cast<uint16_t*>(to);
  for (int64_t i = 0; i < n; ++i) out[i] = narrow(value_of<F>(widen(in[i])));
}

}  // namespace gatherum::GATHERUM_LEVEL
