// Vectors of 64-bit words, as wide as the level's registers, and their operations.
#pragma once

#include <bit>

#include "platform/processor.hpp"

namespace gatherum {

// The number of 64-bit words in a vector. If the compiler cannot make vectors opaque, no vectors are used,
// and the number is 1.
#if (defined(_MSC_VER) && !defined(__clang__)) || !(GATHERUM_X86 || defined(__aarch64__))
#define GATHERUM_LANES 1
#elif defined(__AVX2__)
#define GATHERUM_LANES 4
#else
#define GATHERUM_LANES 2
#endif

template <class T, int N>
struct Vector {
#if GATHERUM_LANES == 1
  using Type = T;
#else
  typedef T Type __attribute__((vector_size(N * sizeof(T))));
#endif
};

template <class To, class From>
GATHERUM_INLINE To convert_lanes(From v) {
#if GATHERUM_LANES == 1
  return static_cast<To>(v);
#else
  return __builtin_convertvector(v, To);
#endif
}

// Multiplies a word, or each word of a vector, by a number, modulo 2^64. NEON does not have this product, and
// compilers split the vector into scalars. Products of 32-bit parts also take six instructions, but do not
// move words between vector and general registers.
template <class T>
GATHERUM_INLINE T times_scalar(T v, uint64_t scalar) {
#if defined(__aarch64__) && GATHERUM_LANES == 2
  if constexpr (sizeof(T) == 16) {
    const auto words = std::bit_cast<uint64x2_t>(v);
    const uint64x2_t scalars = vdupq_n_u64(scalar);
    const uint32x4_t crossed =
        vmulq_u32(vrev64q_u32(vreinterpretq_u32_u64(words)), vreinterpretq_u32_u64(scalars));
    const uint64x2_t upper = vshlq_n_u64(vpaddlq_u32(crossed), 32);
    return std::bit_cast<T>(vmlal_u32(upper, vmovn_u64(words), vmovn_u64(scalars)));
  }
#endif
  return v * scalar;
}

// The signs of a vector's words, one bit each.
GATHERUM_INLINE unsigned signs(Vector<int64_t, GATHERUM_LANES>::Type v) {
#if GATHERUM_LANES == 4
  return static_cast<unsigned>(_mm256_movemask_pd(std::bit_cast<__m256d>(v)));
#elif GATHERUM_LANES == 2 && GATHERUM_X86
  return static_cast<unsigned>(_mm_movemask_pd(std::bit_cast<__m128d>(v)));
#elif GATHERUM_LANES == 2
  return (v[0] < 0 ? 1u : 0u) | (v[1] < 0 ? 2u : 0u);
#else
  return v < 0 ? 1u : 0u;
#endif
}

#if GATHERUM_LANES == 4
// Permutes eight 32-bit words: lanes[0], lanes[1], and so on.
GATHERUM_INLINE __m256i pick_lanes(__m256i words, const uint8_t* lanes) {
  const __m128i lane_numbers = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(lanes));
  return _mm256_permutevar8x32_epi32(words, _mm256_cvtepu8_epi32(lane_numbers));
}

// Eight 64-bit words, truncated to 32 bits.
GATHERUM_INLINE __m256i lower_halves(__m256i first, __m256i second) {
  const __m256 mixed = _mm256_shuffle_ps(_mm256_castsi256_ps(first), _mm256_castsi256_ps(second), 0x88);
  return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xD8);
}
#endif

}  // namespace gatherum
