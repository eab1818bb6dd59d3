// dequantize: gathers quantized rows and dequantizes them, in one pass.
//
//   out[a, i, x, y, z] = round(R, (value(data[a, r_i, x, y, z]) - zero[s]) * scale[s]),
//   s = [a', r_i', x, y / block, z]
//
// a runs over the dimensions before the gathered dimension, and i over the indices. r_i is the row that index
// i selects. x, y and z are the dimensions after the gathered dimension; y is the quantized dimension. If the
// quantized dimension is the gathered dimension or a dimension before it, then r_i' or a', instead of y, is
// divided by the block. An invalid row (r_i outside [0, rows)) produces zeros.
//
// float32 represents the value, the zero point, the scale and the difference exactly. The product is rounded
// to float32 and then to the type R of the result, both to nearest, ties to even. A NaN becomes the canonical
// NaN. 2-bit and 4-bit values are either packed into bytes, with the first value in the lowest bits, or
// stored in one byte each.
//
// The caller guarantees that data, scales and zero points are contiguous and as large as these sizes require,
// and that `rows` does not change during the call. Cost: a read of the row and its scales, a write of the
// result, and 0.1-0.3 ns per element. If each item along a row has a separate scale, 256 scales are converted
// at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fold/halves.hpp"
#include "kernels/calls.hpp"
#include "kernels/lanes.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The number of items, scales and zero points that are processed at a time: they fit in the L1 cache.
inline constexpr int64_t kQuantizedPiece = 256;
// The number of rows by which prefetches run ahead, and the maximum number of bytes that are prefetched of
// each row. The hardware prefetches the rest.
inline constexpr int64_t kQuantizedAhead = 4096, kQuantizedRow = 1024;

struct FromUint8 {
  GATHERUM_INLINE float operator()(uint8_t code) const { return static_cast<float>(int32_t{code}); }
};
struct FromInt8 {
  GATHERUM_INLINE float operator()(uint8_t code) const {
    return static_cast<float>(static_cast<int32_t>(static_cast<int8_t>(code)));
  }
};

// Widens the magnitude of a small float with kFraction fraction bits to float32, and adds kBias to the
// exponent. A subnormal value is computed in two steps: it is read as if it were a normal number with the
// smallest exponent, and then `small`, the smallest normal number, is subtracted.
template <int kFraction, uint32_t kBias>
GATHERUM_INLINE uint32_t widen_small(uint32_t magnitude, float small) {
  const uint32_t in_place = magnitude << (23 - kFraction);
  const uint32_t normal = in_place + (kBias << 23);
  const float above = std::bit_cast<float>(in_place + ((kBias + 1) << 23));
  return select(magnitude < (1u << kFraction), std::bit_cast<uint32_t>(above - small), normal);
}
struct FromE4m3 {  // has no infinities; all ones is NaN
  GATHERUM_INLINE float operator()(uint8_t code) const {
    const uint32_t magnitude = code & 0x7Fu;
    const uint32_t finite = widen_small<3, 120>(magnitude, 0x1p-6f);
    const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24;
    return std::bit_cast<float>(sign | select(magnitude == 0x7Fu, 0x7FC00000u, finite));
  }
};
struct FromE5m2 {  // the upper half of a float16
  GATHERUM_INLINE float operator()(uint8_t code) const {
    const uint32_t magnitude = code & 0x7Fu;
    const uint32_t finite = widen_small<2, 112>(magnitude, 0x1p-14f);
    const uint32_t special = (magnitude << 21) + 0x70000000u;
    const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24;
    return std::bit_cast<float>(sign | select(magnitude >= 0x7Cu, special, finite));
  }
};

struct ToFloat32 {
  using Item = float;
  GATHERUM_INLINE Item operator()(float f) const { return f; }
};
struct ToFloat16 {
  using Item = uint16_t;
  GATHERUM_INLINE Item operator()(float f) const { return float_to_half<false>(f); }
};
struct ToBfloat16 {
  using Item = uint16_t;
  GATHERUM_INLINE Item operator()(float f) const { return float_to_bfloat16(f); }
};

template <class From, class To>
GATHERUM_INLINE typename To::Item dequantized(uint8_t code, float zero, float scale) {
  const uint32_t bits = std::bit_cast<uint32_t>((From{}(code)-zero) * scale);
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return To{}(std::bit_cast<float>(select(is_nan, 0x7FC00000u, bits)));
}

// Converts eight items at a time with float16 conversion instructions, if the level has them: 0.1 ns per item
// instead of 0.2 (int8 to float32), 0.5 (float8) or 1.2 (to float16). The results are bit-for-bit equal.
#if GATHERUM_LANES == 4 && defined(__F16C__)
inline constexpr int64_t kWide = 8;

GATHERUM_INLINE __m128i load_codes(const uint8_t* address) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(address));
}
GATHERUM_INLINE __m256 widen(FromUint8, const uint8_t* address) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_codes(address)));
}
GATHERUM_INLINE __m256 widen(FromInt8, const uint8_t* address) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_codes(address)));
}
GATHERUM_INLINE __m256 widen(FromE5m2, const uint8_t* address) {
  return _mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(load_codes(address)), 8));
}
// Converts through float16, whose exponent is then 8 too small.
GATHERUM_INLINE __m256 widen(FromE4m3, const uint8_t* address) {
  const __m128i codes = _mm_cvtepu8_epi16(load_codes(address)), ones = _mm_set1_epi16(0x7F);
  const __m128i magnitude = _mm_and_si128(codes, ones);
  const __m128i sign = _mm_slli_epi16(_mm_andnot_si128(ones, codes), 8);
  const __m128i nan = _mm_and_si128(_mm_cmpeq_epi16(magnitude, ones), _mm_set1_epi16(0x7FFF));
  const __m128i half = _mm_or_si128(_mm_or_si128(sign, nan), _mm_slli_epi16(magnitude, 7));
  return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(0x1p8f));
}

GATHERUM_INLINE void store(ToFloat32, __m256 v, float* to) { _mm256_storeu_ps(to, v); }
GATHERUM_INLINE void store(ToFloat16, __m256 v, uint16_t* to) {
  const __m128i halves = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
}
GATHERUM_INLINE void store(ToBfloat16, __m256 v, uint16_t* to) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  const __m256i upper = _mm256_srli_epi32(rounded, 16);
  const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
}

template <class From, class To>
GATHERUM_INLINE void dequantize_wide(const uint8_t* codes, __m256 zeros, __m256 scales,
                                     typename To::Item* out) {
  const __m256 product = _mm256_mul_ps(_mm256_sub_ps(widen(From{}, codes), zeros), scales);
  const __m256 is_nan = _mm256_cmp_ps(product, product, _CMP_UNORD_Q);
  const __m256 canonical = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
  store(To{}, _mm256_blendv_ps(product, canonical, is_nan), out);
}
#endif

// Dequantizes n items of one block.
template <class From, class To>
GATHERUM_INLINE void dequantize_block(const uint8_t* GATHERUM_RESTRICT codes, int64_t n, float zero,
                                      float scale, typename To::Item* GATHERUM_RESTRICT out) {
  int64_t i = 0;
#if GATHERUM_LANES == 4 && defined(__F16C__)
  const __m256 zeros = _mm256_set1_ps(zero), scales = _mm256_set1_ps(scale);
  for (; i + kWide <= n; i += kWide) dequantize_wide<From, To>(codes + i, zeros, scales, out + i);
#else
  constexpr int kVectorItems =
      16;  // a constant trip count, which compilers vectorize without a remainder loop
  for (; i + kVectorItems <= n; i += kVectorItems)
    for (int j = 0; j < kVectorItems; ++j) out[i + j] = dequantized<From, To>(codes[i + j], zero, scale);
#endif
  for (; i < n; ++i) out[i] = dequantized<From, To>(codes[i], zero, scale);
}

// Dequantizes n items, each with a separate zero point and scale.
template <class From, class To>
GATHERUM_INLINE void dequantize_items(const uint8_t* GATHERUM_RESTRICT codes, int64_t n,
                                      const float* GATHERUM_RESTRICT zeros,
                                      const float* GATHERUM_RESTRICT scales,
                                      typename To::Item* GATHERUM_RESTRICT out) {
  int64_t i = 0;
#if GATHERUM_LANES == 4 && defined(__F16C__)
  for (; i + kWide <= n; i += kWide)
    dequantize_wide<From, To>(codes + i, _mm256_loadu_ps(zeros + i), _mm256_loadu_ps(scales + i), out + i);
#endif
  for (; i < n; ++i) out[i] = dequantized<From, To>(codes[i], zeros[i], scales[i]);
}

// Unpacks codes of kBits from bytes to one byte each, starting at item `first`. Signed codes are
// sign-extended.
template <int kBits, bool kSigned>
GATHERUM_INLINE uint8_t code_of(uint32_t lowest) {
  constexpr uint32_t kMask = (1u << kBits) - 1, kSign = 1u << (kBits - 1);
  const uint32_t code = lowest & kMask;
  return static_cast<uint8_t>(kSigned ? (code ^ kSign) - kSign : code);
}
template <int kBits, bool kSigned, bool kPacked>
void unpack_codes(const uint8_t* GATHERUM_RESTRICT data, int64_t first, int64_t n,
                  uint8_t* GATHERUM_RESTRICT codes) {
  constexpr int64_t kIn = kPacked ? 8 / kBits : 1;
  const auto one = [=](int64_t i) {
    return code_of<kBits, kSigned>(static_cast<uint32_t>(data[i / kIn]) >> (i % kIn * kBits));
  };
  int64_t i = 0;
  for (; i < n && (first + i) % kIn != 0; ++i) codes[i] = one(first + i);
  const uint8_t* GATHERUM_RESTRICT from = data + (first + i) / kIn;
  uint8_t* GATHERUM_RESTRICT to = codes + i;
  const int64_t bytes = (n - i) / kIn;
  for (int64_t b = 0; b < bytes; ++b)
    for (int k = 0; k < kIn; ++k)
      to[b * kIn + k] = code_of<kBits, kSigned>(static_cast<uint32_t>(from[b]) >> (k * kBits));
  for (i += bytes * kIn; i < n; ++i) codes[i] = one(first + i);
}

// Returns the codes of n <= kQuantizedPiece items from `first` on: in place, or unpacked into a buffer.
inline const uint8_t* codes_at(const Codes& of, const char* data, int64_t first, int64_t n, uint8_t* buffer) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(data);
  if (of.bits == 8) return bytes + first;
  const auto unpack = [=](auto bits, auto is_signed) {
    constexpr int kBits = decltype(bits)::value;
    constexpr bool kSigned = decltype(is_signed)::value;
    if (of.packed) return unpack_codes<kBits, kSigned, true>(bytes, first, n, buffer);
    unpack_codes<kBits, kSigned, false>(bytes, first, n, buffer);
  };
  const auto by_sign = [=](auto bits) {
    return of.type == CodeType::int8 ? unpack(bits, std::true_type{}) : unpack(bits, std::false_type{});
  };
  if (of.bits == 4)
    by_sign(std::integral_constant<int, 4>{});
  else
    by_sign(std::integral_constant<int, 2>{});
  return buffer;
}

template <class Stored, class Widen>
GATHERUM_INLINE void widen_scales(const char* address, int64_t n, float* scales, const Widen& widen) {
  const auto* from = reinterpret_cast<const Stored*>(address);
  for (int64_t i = 0; i < n; ++i) {
    Stored stored;
    std::memcpy(&stored, from + i, sizeof stored);
    scales[i] = widen(stored);
  }
}

// 2 to the power of code - 127.
GATHERUM_INLINE float power_of_e8m0(uint8_t code) {
  const uint32_t power = select(code == 0, 0x00400000u, uint32_t{code} << 23);  // 2^-127 is subnormal
  return std::bit_cast<float>(select(code == 0xFF, 0x7FC00000u, power));
}

inline void load_scales(const QuantizedGather& call, int64_t first, int64_t n, float* scales) {
  const char* address = call.scales;
  switch (call.scale) {
    case ScaleType::float32:
      std::memcpy(scales, address + first * 4, static_cast<size_t>(n) * 4);
      return;
    case ScaleType::float16:
      return widen_scales<uint16_t>(address + first * 2, n, scales, half_to_float<false>);
    case ScaleType::bfloat16:
      return widen_scales<uint16_t>(address + first * 2, n, scales, bfloat16_to_float);
    case ScaleType::float8_e8m0fnu:
      return widen_scales<uint8_t>(address + first, n, scales, power_of_e8m0);
  }
}

// Loads the zero points of n scales from `first` on. Packed zero points start a new byte at each row of the
// scales' last dimension.
inline void load_zeros(const QuantizedGather& call, int64_t first, int64_t n, float* zeros) {
  if (call.zeros == nullptr) {
    std::fill_n(zeros, n, call.zero);
    return;
  }
  const Codes& of = call.codes;
  const int64_t in_byte = of.in_byte(), line = call.scale_line;
  const int64_t width = (line + in_byte - 1) / in_byte * in_byte;
  uint8_t buffer[kQuantizedPiece];
  for (int64_t done = 0; done < n;) {
    const int64_t column = (first + done) % line;
    const int64_t step = std::min(n - done, line - column);
    const uint8_t* codes = codes_at(of, call.zeros, (first + done) / line * width + column, step, buffer);
    if (of.type == CodeType::int8)
      for (int64_t i = 0; i < step; ++i) zeros[done + i] = FromInt8{}(codes[i]);
    else
      for (int64_t i = 0; i < step; ++i) zeros[done + i] = FromUint8{}(codes[i]);
    done += step;
  }
}

// Dequantizes one run of the dimensions y, z, starting at `item` of the data and `scale` of the scales.
template <class From, class To>
class Dequantizer {
 public:
  explicit Dequantizer(const QuantizedGather& call) : call_(call) {}

  void run(int64_t item, int64_t scale, typename To::Item* out) const {
    if (call_.after == 1) return run_blocks(item, scale, out);
    for (int64_t y = 0; y < call_.quantized; y += call_.block) {
      const int64_t rows = std::min(call_.block, call_.quantized - y);
      run_items(item + y * call_.after, scale + y / call_.block * call_.after, rows, out + y * call_.after);
    }
  }

 private:
  // For z of size 1: each block of y has a scale, and the scales are contiguous.
  void run_blocks(int64_t item, int64_t scale, typename To::Item* out) const {
    float zeros[kQuantizedPiece], scales[kQuantizedPiece];
    uint8_t buffer[kQuantizedPiece];
    const int64_t n = call_.quantized, block = call_.block, blocks = (n + block - 1) / block;
    for (int64_t b = 0; b < blocks; b += kQuantizedPiece) {
      const int64_t some = std::min(kQuantizedPiece, blocks - b);
      load_scales(call_, scale + b, some, scales);
      load_zeros(call_, scale + b, some, zeros);
      for (int64_t k = 0; k < some; ++k) {
        const int64_t end = std::min((b + k + 1) * block, n);
        for (int64_t y = (b + k) * block; y < end;) {
          const int64_t step = call_.codes.bits == 8 ? end - y : std::min(end - y, kQuantizedPiece);
          const uint8_t* codes = codes_at(call_.codes, call_.data, item + y, step, buffer);
          dequantize_block<From, To>(codes, step, zeros[k], scales[k], out + y);
          y += step;
        }
      }
    }
  }

  // Dequantizes `rows` rows of z that share one row of scales.
  void run_items(int64_t item, int64_t scale, int64_t rows, typename To::Item* out) const {
    float zeros[kQuantizedPiece], scales[kQuantizedPiece];
    uint8_t buffer[kQuantizedPiece];
    for (int64_t z = 0; z < call_.after; z += kQuantizedPiece) {
      const int64_t some = std::min(kQuantizedPiece, call_.after - z);
      load_scales(call_, scale + z, some, scales);
      load_zeros(call_, scale + z, some, zeros);
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t at = row * call_.after + z;
        const uint8_t* codes = codes_at(call_.codes, call_.data, item + at, some, buffer);
        dequantize_items<From, To>(codes, some, zeros, scales, out + at);
      }
    }
  }

  const QuantizedGather& call_;
};

GATHERUM_INLINE bool is_row(const QuantizedGather& call, int64_t row) {
  return static_cast<uint64_t>(row) < static_cast<uint64_t>(call.rows);
}

// Dequantizes the runs [begin, end) of the result. A run covers the dimensions y and z. A row consists of
// call.inner runs.
template <class From, class To>
void dequantize_runs(const QuantizedGather& call, int64_t begin, int64_t end) {
  const int64_t length = call.quantized * call.after, row_items = call.inner * length;
  const int64_t run_scales = (call.quantized + call.block - 1) / call.block * call.after;
  const int64_t scale_rows = (call.rows + call.row_block - 1) / call.row_block;
  const int64_t scale_bytes = call.inner * run_scales * bytes_of(call.scale);
  const int64_t in_byte = call.codes.in_byte();
  const int64_t ahead = std::clamp<int64_t>(kQuantizedAhead * in_byte / row_items, 1, 32);
  const Dequantizer<From, To> dequantizer(call);
  auto* out = reinterpret_cast<typename To::Item*>(call.out) + begin * length;
  for (int64_t unit = begin; unit < end; ++unit, out += length) {
    const int64_t x = unit % call.inner, pair = unit / call.inner;
    const int64_t i = pair % call.count, a = pair / call.count;
    const int64_t outer = call.scale_outer(a) * scale_rows;
    if (x == 0 && i + ahead < call.count && is_row(call, call.row_numbers[i + ahead])) {
      const int64_t next = call.row_numbers[i + ahead], scale = outer + next / call.row_block;
      prefetch_bytes(call.data, (a * call.rows + next) * row_items / in_byte,
                     std::min(row_items / in_byte, kQuantizedRow));
      prefetch_bytes(call.scales, scale * scale_bytes, std::min(scale_bytes, kQuantizedRow));
    }
    const int64_t row = call.row_numbers[i];
    if (!is_row(call, row)) {
      std::memset(out, 0, static_cast<size_t>(length) * sizeof *out);
      continue;
    }
    const int64_t scale = (outer + row / call.row_block) * call.inner + x;
    dequantizer.run(((a * call.rows + row) * call.inner + x) * length, scale * run_scales, out);
  }
}

}  // namespace gatherum::GATHERUM_LEVEL
