// Conversions of half-precision values (float16 and bfloat16) to float32 and back.
//
// The conversion to float32 is exact. The conversion back rounds to nearest, ties to even. A NaN keeps its
// sign, its quiet bit and the payload bits that fit. Conversions work on bits, so a value that is only copied
// keeps all its bits on every processor.
#pragma once

#include <bit>
#include <type_traits>

#include "platform/processor.hpp"

namespace gatherum::GATHERUM_LEVEL {

struct Half {
  using Stored = uint16_t;
};
struct Bfloat16 {
  using Stored = uint16_t;
};
template <class V>
inline constexpr bool kIsHalf = std::is_same_v<V, Half> || std::is_same_v<V, Bfloat16>;

// Selects with masks. If `a` or `b` involves floating-point arithmetic, compilers turn `c ? a : b` into a
// branch and do not vectorize it (rows of 64 float16 in cache: 2.2 ns per element instead of 0.5).
template <class T>
GATHERUM_INLINE T select(bool c, T a, T b) {
  const T mask = T{0} - static_cast<T>(c);
  return (a & mask) | (b & ~mask);
}

// Returns all ones if a < b, and zeros otherwise, for a word or for each word of a vector.
template <class Words>
GATHERUM_INLINE Words is_less(Words a, Words b) {
  if constexpr (std::is_integral_v<Words>)
    return Words{0} - static_cast<Words>(a < b);
  else
    return std::bit_cast<Words>(a < b);
}

// The exponent of a shifted float16 is too small: by 224 for infinity and NaN, and by 112 for all other
// values. An exact multiplication corrects the exponent of finite values, and also normalizes subnormals.
template <class Floats, class Words>
GATHERUM_INLINE Words corrected_exponent(Words magnitude) {
  return std::bit_cast<Words>(std::bit_cast<Floats>(magnitude) * 0x1p112f);
}
constexpr uint32_t kHalfInfinity = 0x7C00u << 13;  // shifted as in widen_halves

// Converts the half-precision values in a 32-bit word, or in a vector of such words, to floats.
template <class V, class Floats, class Words>
GATHERUM_INLINE Floats widen_halves(Words h) {
  if constexpr (std::is_same_v<V, Bfloat16>) {
    return std::bit_cast<Floats>(h << 16);
  } else {
    static_assert(std::is_same_v<V, Half>, "widen_halves: no conversion of this half type");
    const Words sign = (h & 0x8000u) << 16, magnitude = (h & 0x7FFFu) << 13;
    const Words is_finite = is_less(magnitude, Words{} + kHalfInfinity);
    return std::bit_cast<Floats>(sign | (corrected_exponent<Floats>(magnitude) & is_finite) |
                                 ((magnitude + 0x70000000u) & ~is_finite));
  }
}

// With kBranches, a branch handles rare values; this is faster for elements that are processed one by one
// (20M float16 into 256 bins: 1.1 ns each; with selects, 1.7). Otherwise all cases are computed and one is
// selected, for elements that are processed side by side in vectors.
template <bool kBranches>
GATHERUM_INLINE float half_to_float(uint16_t h) {
  if constexpr (!kBranches) return widen_halves<Half, float>(uint32_t{h});
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(h & 0x7FFFu) << 13;
  if (magnitude >= kHalfInfinity) [[unlikely]]
    return std::bit_cast<float>(sign | (magnitude + 0x70000000u));
  return std::bit_cast<float>(sign | corrected_exponent<float>(magnitude));
}

template <bool kBranches>
GATHERUM_INLINE uint16_t float_to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t nan = 0x7C00u | (magnitude >> 13 & 0x3FFu);
  // For values below 2^-14: the sum with 1/2 is rounded at the last bit of float16's subnormals.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  const uint32_t large = (magnitude + 0xFFFu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  if constexpr (kBranches)
    if (magnitude - 0x38800000u < 0x0EEFF000u) [[likely]]
      return static_cast<uint16_t>(large | (bits >> 16 & 0x8000u));
  const uint32_t finite = select(magnitude < 0x38800000u, small, large);
  const uint32_t rounded = select(magnitude < 0x477FF000u, finite, 0x7C00u);  // infinity from 65520 on
  return static_cast<uint16_t>(select(magnitude > 0x7F800000u, nan, rounded) | (bits >> 16 & 0x8000u));
}

GATHERUM_INLINE float bfloat16_to_float(uint16_t b) { return widen_halves<Bfloat16, float>(uint32_t{b}); }

// The lower 16 bits of a NaN must be zero, as in the canonical NaN and in NaN from bfloat16_to_float, so that
// rounding does not change them.
GATHERUM_INLINE uint16_t float_to_bfloat16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace gatherum::GATHERUM_LEVEL
