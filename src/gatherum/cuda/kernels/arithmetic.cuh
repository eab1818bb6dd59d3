// Reductions for each value type, bit-for-bit equal to src/core/fold/combine.hpp.
//
//   fold(a, b)              one step of the left fold, in the accumulation type
//   finish(a, n, folded)    the stored result of n values; `folded`: whether any step was done
//
// Integers wrap. float16 and bfloat16 accumulate in float32 and round once. A NaN that a step produces
// becomes the canonical quiet NaN. max and min are IEEE 754-2019 maximum and minimum. Only `finish` replaces
// NaNs by the canonical one, not every step: a sum or product that is NaN stays NaN with any payload. This
// keeps the comparison out of the chain of dependent additions. Every operation is an intrinsic with its own
// rounding, so nothing is fused. Half-precision values are converted bitwise, so a copied value keeps all its
// bits.
#pragma once

#include "platform.cuh"
#include "reductions.cuh"

namespace gatherum {

struct Boolean {};
struct Half {};
struct Bfloat16 {};
template <class T>
struct alignas(2 * sizeof(T)) Complex {
  T re, im;
};

using value_bool = Boolean;
using value_float16 = Half;
using value_bfloat16 = Bfloat16;
using value_float32 = float;
using value_float64 = double;
using value_complex64 = Complex<float>;
using value_complex128 = Complex<double>;

template <class T>
inline constexpr bool kIsFloat = kIsSame<T, float> || kIsSame<T, double>;
template <class T>
using Bits = typename Word<sizeof(T)>::Type;

__device__ __forceinline__ float sum(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double sum(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ float difference(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ double difference(double a, double b) { return __dsub_rn(a, b); }
__device__ __forceinline__ float product(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double product(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float quotient(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ double quotient(double a, double b) { return __ddiv_rn(a, b); }

template <class T>
__device__ __forceinline__ T quiet_nan() {
  if constexpr (sizeof(T) == 4)
    return bits_as<float>(uint32{0x7FC00000});
  else
    return bits_as<double>(uint64{0x7FF8000000000000});
}
template <class T>
__device__ __forceinline__ T canonical(T v) {
  return v == v ? v : quiet_nan<T>();
}
template <class T>
__device__ __forceinline__ Complex<T> canonical(Complex<T> v) {
  return {canonical(v.re), canonical(v.im)};
}

// Integers as an unsigned type of at least 32 bits, to avoid promotion to a signed int that could overflow.
template <class T>
using Wrapping =
    typename Conditional<(sizeof(T) < 4), uint32, typename Word<(sizeof(T) < 4 ? 4 : sizeof(T))>::Type>::Type;

template <class T>
__device__ __forceinline__ T add(T a, T b) {
  if constexpr (kIsFloat<T>)
    return sum(a, b);
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <class T>
__device__ __forceinline__ Complex<T> add(Complex<T> a, Complex<T> b) {
  return {sum(a.re, b.re), sum(a.im, b.im)};
}

template <class T>
__device__ __forceinline__ T multiply(T a, T b) {
  if constexpr (kIsFloat<T>)
    return product(a, b);
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}
template <class T>
__device__ __forceinline__ Complex<T> multiply(Complex<T> a, Complex<T> b) {
  return {difference(product(a.re, b.re), product(a.im, b.im)),
          sum(product(a.re, b.im), product(a.im, b.re))};
}

// For equal floats (zeros may differ in sign), max is the AND of their bits, and min is the OR.
template <Reduction R, class T>
__device__ __forceinline__ T extreme(T a, T b) {
  constexpr bool greatest = R == Reduction::max;
  if constexpr (kIsFloat<T>) {
    if (a != a || b != b) return quiet_nan<T>();
    if (a == b)
      return bits_as<T>(greatest ? bits_as<Bits<T>>(a) & bits_as<Bits<T>>(b)
                                 : bits_as<Bits<T>>(a) | bits_as<Bits<T>>(b));
  }
  return (greatest ? a > b : a < b) ? a : b;
}

// Maps half-precision bits to integers in the same order, with -0 below +0.
__device__ __forceinline__ int order_key(uint16 half) {
  return half & 0x8000 ? 0x8000 - static_cast<int>(half) - 1 : static_cast<int>(half);
}
template <class V, Reduction R>
__device__ __forceinline__ uint16 extreme_half(uint16 a, uint16 b) {
  constexpr int infinity = kIsSame<V, Half> ? 0x7C00 : 0x7F80;
  constexpr uint16 quiet = kIsSame<V, Half> ? 0x7E00 : 0x7FC0;
  if ((a & 0x7FFF) > infinity || (b & 0x7FFF) > infinity) return quiet;
  const bool first = R == Reduction::max ? order_key(a) > order_key(b) : order_key(a) < order_key(b);
  return first ? a : b;
}

__device__ __forceinline__ float widened(Half, uint16 h) {
  const uint32 sign = static_cast<uint32>(h & 0x8000u) << 16;
  const uint32 magnitude = static_cast<uint32>(h & 0x7FFFu) << 13;
  if (magnitude >= 0x7C00u << 13) return bits_as<float>(sign | (magnitude + 0x70000000u));
  // The shifted exponent is 112 too small. One exact product corrects it and normalizes subnormals.
  return bits_as<float>(sign | bits_as<uint32>(product(bits_as<float>(magnitude), 0x1p112f)));
}
__device__ __forceinline__ float widened(Bfloat16, uint16 b) {
  return bits_as<float>(static_cast<uint32>(b) << 16);
}

__device__ __forceinline__ uint16 narrowed(Half, float f) {
  const uint32 bits = bits_as<uint32>(f), magnitude = bits & 0x7FFFFFFFu;
  uint32 half;
  if (magnitude > 0x7F800000u)  // NaN: the quiet bit and the part of the payload that fits
    half = 0x7C00u | (magnitude >> 13 & 0x3FFu);
  else if (magnitude >= 0x477FF000u)  // infinity from 65520 on
    half = 0x7C00u;
  else if (magnitude >= 0x38800000u)
    half = (magnitude + 0xFFFu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  else  // below 2^-14: adding 1/2 rounds at the last bit of float16's subnormals
    half = bits_as<uint32>(sum(bits_as<float>(magnitude), 0.5f)) - 0x3F000000u;
  return static_cast<uint16>(half | (bits >> 16 & 0x8000u));
}
// The lower 16 bits of a NaN must be zero, as in the canonical NaN and in widened NaNs.
__device__ __forceinline__ uint16 narrowed(Bfloat16, float f) {
  const uint32 bits = bits_as<uint32>(f);
  return static_cast<uint16>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

template <class T>
__device__ __forceinline__ T divided(T total, int64 count) {
  if constexpr (kIsFloat<T>) {
    // Converts the count to double, as on the CPU, so that counts below 2^53 are rounded only once.
    return canonical(quotient(total, static_cast<T>(static_cast<double>(count))));
  } else if constexpr (static_cast<T>(-1) < 0) {
    return total / count - (total % count < 0 ? 1 : 0);
  } else {
    return total / static_cast<T>(count);
  }
}
template <class T>
__device__ __forceinline__ Complex<T> divided(Complex<T> total, int64 count) {
  return {divided(total.re, count), divided(total.im, count)};
}

template <class V>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<Complex<T>> = true;
template <class V>
inline constexpr bool kIsHalf = kIsSame<V, Half> || kIsSame<V, Bfloat16>;

// The storage type of a value, and the accumulation type of a reduction.
template <class V>
struct StoredAs {
  using Type = V;
};
template <>
struct StoredAs<Boolean> {
  using Type = uint8;
};
template <>
struct StoredAs<Half> {
  using Type = uint16;
};
template <>
struct StoredAs<Bfloat16> {
  using Type = uint16;
};
template <class V>
struct WideInteger : StoredAs<V> {};
template <>
struct WideInteger<int8> : StoredAs<int64> {};
template <>
struct WideInteger<int16> : StoredAs<int64> {};
template <>
struct WideInteger<int32> : StoredAs<int64> {};
template <>
struct WideInteger<uint8> : StoredAs<uint64> {};
template <>
struct WideInteger<uint16> : StoredAs<uint64> {};
template <>
struct WideInteger<uint32> : StoredAs<uint64> {};

template <class V, Reduction R>
struct Fold {
  using Stored = typename StoredAs<V>::Type;
  using Integers = typename Conditional<kWidensIntegers<R>, typename WideInteger<V>::Type, Stored>::Type;
  using Sum = typename Conditional<kIsHalf<V> && kWidensHalves<R>, float, Integers>::Type;
  static constexpr bool kConverts = kIsHalf<V> && kIsSame<Sum, float>;

  static __device__ __forceinline__ Sum widen(Stored v) {
    if constexpr (kConverts)
      return widened(V{}, v);
    else
      return static_cast<Sum>(v);
  }

  static __device__ __forceinline__ Sum fold(Sum a, Sum b) {
    if constexpr (kIsSame<V, Boolean>) {
      return fold_truths(a, b);
    } else if constexpr (R == Reduction::add || R == Reduction::mean) {
      return add(a, b);
    } else if constexpr (R == Reduction::mul) {
      return multiply(a, b);
    } else if constexpr (R == Reduction::max || R == Reduction::min) {
      if constexpr (kIsHalf<V>)
        return extreme_half<V, R>(a, b);
      else
        return extreme<R>(a, b);
    } else {
      static_assert(!kIsUnhandled<R>, "Fold::fold: a reduction has no step");
    }
  }
  static __device__ __forceinline__ Sum fold_truths(Sum a, Sum b) {
    if constexpr (R == Reduction::add || R == Reduction::max)
      return (a != 0) | (b != 0);
    else if constexpr (R == Reduction::mul || R == Reduction::min)
      return (a != 0) & (b != 0);
    else
      static_assert(!kIsUnhandled<R>, "Fold::fold_truths: a reduction has no step for booleans");
  }

  static __device__ __forceinline__ Stored finish(Sum a, int64 count, bool folded) {
    if constexpr (kIsFloat<Sum> || kIsComplex<Sum>)
      if (folded) a = canonical(a);
    if constexpr (kDivides<R>) a = divided(a, count);
    if constexpr (kConverts)
      return narrowed(V{}, a);
    else
      return static_cast<Stored>(a);
  }
};

}  // namespace gatherum
