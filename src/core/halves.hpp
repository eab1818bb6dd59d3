// float16 and bfloat16: there and back to float32.
//
// Exact on the way up, round to nearest even on the way down; a NaN keeps its sign, its quiet bit and the
// payload bits that fit. On bits, so that a value that is only copied keeps them all, on every processor.
#pragma once

#include <bit>
#include <type_traits>

#include "platform.hpp"

namespace gatherum::GATHERUM_LEVEL {

struct Half {
  using Stored = uint16_t;
};
struct Bfloat16 {
  using Stored = uint16_t;
};
template <class V>
inline constexpr bool kIsHalf = std::is_same_v<V, Half> || std::is_same_v<V, Bfloat16>;

// By masks: of `c ? a : b` compilers make a branch where `a` or `b` takes floating-point arithmetic, and then
// no vectors (rows of 64 float16 in cache: 2.2 ns an element instead of 0.5).
template <class T>
GATHERUM_INLINE T select(bool c, T a, T b) {
  const T mask = T{0} - static_cast<T>(c);
  return (a & mask) | (b & ~mask);
}

// kBranches: what is rare costs a branch, where elements come one by one; else all cases are computed and one
// selected, where they come side by side in vectors.
template <bool kBranches>
GATHERUM_INLINE float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(h & 0x7FFFu) << 13;
  constexpr uint32_t infinity = 0x7C00u << 13;
  // In place the exponent is 112 too small, that of infinity and NaN 224. One exact multiplication mends it,
  // and normalises subnormals on the way.
  const auto finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  if constexpr (kBranches) {
    if (magnitude >= infinity) [[unlikely]]
      return std::bit_cast<float>(sign | (magnitude + 0x70000000u));
    return std::bit_cast<float>(sign | finite);
  }
  return std::bit_cast<float>(sign | select(magnitude < infinity, finite, magnitude + 0x70000000u));
}

template <bool kBranches>
GATHERUM_INLINE uint16_t float_to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t nan = 0x7C00u | (magnitude >> 13 & 0x3FFu);
  // Below 2^-14: adding 1/2 makes the processor round at the bit that float16's subnormals end at.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  const uint32_t large = (magnitude + 0xFFFu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  if constexpr (kBranches)
    if (magnitude - 0x38800000u < 0x0EEFF000u) [[likely]]
      return static_cast<uint16_t>(large | (bits >> 16 & 0x8000u));
  const uint32_t finite = select(magnitude < 0x38800000u, small, large);
  const uint32_t number = select(magnitude < 0x477FF000u, finite, 0x7C00u);  // from 65520 on infinity
  return static_cast<uint16_t>(select(magnitude > 0x7F800000u, nan, number) | (bits >> 16 & 0x8000u));
}

GATHERUM_INLINE float bfloat16_to_float(uint16_t b) {
  return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}

// A NaN must have zeros in its lower half, as the canonical one and those of bfloat16_to_float have: rounding
// then leaves it as it is.
GATHERUM_INLINE uint16_t float_to_bfloat16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace gatherum::GATHERUM_LEVEL
