// Defines each reduction, the step `op=`, for each value type.
//
//   fold(a, b)      one step of the left fold, in the accumulation type
//   finish(a, n)    the stored result of n folded values (mean divides here)
//
// Integers wrap modulo 2^n. float16 and bfloat16 accumulate in float32 and round once. An operation that
// produces a NaN produces the canonical quiet NaN. max and min are IEEE 754-2019 maximum and minimum.
// Conversions work on bits, so a value that is only copied keeps all its bits, NaN payloads included.
// types.hpp contains a table with the other properties of each reduction.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "fold/neutral.hpp"
#include "model/types.hpp"
#include "platform/processor.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The code for rare values, such as NaN. `Selected` computes both cases and selects one, for elements that
// are folded side by side in vectors. `Branched` uses a branch that is rarely taken, for elements that are
// folded one by one, because the next fold of a destination waits for the previous fold (256 bins: 1.6 ns per
// update instead of 1.9).
struct Selected {
  static constexpr bool kBranches = false;
  template <class T>
  static GATHERUM_INLINE T canonical(T v) {
    return std::bit_cast<T>(
        select(v == v, std::bit_cast<Bits<T>>(v), std::bit_cast<Bits<T>>(quiet_nan<T>())));
  }
};
struct Branched {
  static constexpr bool kBranches = true;
  template <class T>
  static GATHERUM_INLINE T canonical(T v) {
    if (v != v) [[unlikely]] {
      keep();                      // otherwise compilers emit no branch
      v = opaque(quiet_nan<T>());  // otherwise the sum passes through an integer register
    }
    return v;
  }
};

// Integer arithmetic uses an unsigned type of at least 32 bits. Smaller types would be promoted to a signed
// int, which could overflow.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class NaN, class T>
GATHERUM_INLINE T add(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return NaN::canonical(a + b);
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}

template <class NaN, class T>
GATHERUM_INLINE T mul(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return NaN::canonical(a * b);
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

template <class NaN, class T>
GATHERUM_INLINE Complex<T> add(Complex<T> a, Complex<T> b) {
  return {NaN::canonical(a.re + b.re), NaN::canonical(a.im + b.im)};
}

template <class NaN, class T>
GATHERUM_INLINE Complex<T> mul(Complex<T> a, Complex<T> b) {
  const T ac = opaque(a.re * b.re), bd = opaque(a.im * b.im);
  const T ad = opaque(a.re * b.im), bc = opaque(a.im * b.re);
  return {NaN::canonical(ac - bd), NaN::canonical(ad + bc)};
}

// Combine two equal values, which differ at most in the sign of a zero. with_either_sign returns -0 if at
// least one value is -0; with_common_sign returns -0 only if both values are -0.
template <class T>
GATHERUM_INLINE T with_either_sign(T a, T b) {
  return std::bit_cast<T>(std::bit_cast<Bits<T>>(a) | std::bit_cast<Bits<T>>(b));
}
template <class T>
GATHERUM_INLINE T with_common_sign(T a, T b) {
  return std::bit_cast<T>(std::bit_cast<Bits<T>>(a) & std::bit_cast<Bits<T>>(b));
}

// Returns true if a comparison does not decide, because a value is NaN or the values are zeros of different
// sign. (Also returns true for any value and its negative.) This condition is usually rarer than equality.
template <class T>
GATHERUM_INLINE bool is_special(T a, T b) {
  constexpr Bits<T> sign = Bits<T>{1} << (8 * sizeof(T) - 1);
  return std::isunordered(a, b) || (std::bit_cast<Bits<T>>(a) ^ std::bit_cast<Bits<T>>(b)) == sign;
}

// Uses selects, so that rows are folded in vectors. For two zeros, the two comparisons select different
// zeros. For single elements, compilers turn selects into branches that are often mispredicted; an explicit
// branch for the rare case avoids this.
template <class NaN, class T>
GATHERUM_INLINE T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if constexpr (NaN::kBranches)
      if (!is_special(a, b)) [[likely]]
        return a > b ? a : b;
    const T chosen = with_common_sign(a > b ? a : b, b > a ? b : a);
    return std::isunordered(a, b) ? quiet_nan<T>() : chosen;
  } else {
    return a > b ? a : b;
  }
}

template <class NaN, class T>
GATHERUM_INLINE T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if constexpr (NaN::kBranches)
      if (!is_special(a, b)) [[likely]]
        return a < b ? a : b;
    const T chosen = with_either_sign(a < b ? a : b, b < a ? b : a);
    return std::isunordered(a, b) ? quiet_nan<T>() : chosen;
  } else {
    return a < b ? a : b;
  }
}

// Returns the maximum or minimum of two half-precision values. The values are compared as integers with the
// same order, so -0 is less than +0.
template <class NaN, class V, Reduction R>
GATHERUM_INLINE uint16_t extreme(uint16_t a, uint16_t b) {
  constexpr uint16_t infinity = BinaryFormatOf<V>::kInfinity, quiet = BinaryFormatOf<V>::kQuietNaN;
  const auto ordered = [](uint16_t v) {
    const auto bits = static_cast<int16_t>(v);
    return static_cast<int16_t>(bits ^ (bits >> 15 & 0x7FFF));
  };
  const bool nan = std::max(a & 0x7FFF, b & 0x7FFF) > infinity;
  if constexpr (NaN::kBranches)
    if (nan) [[unlikely]]
      return keep(), quiet;
  const bool first = R == Reduction::max ? ordered(a) > ordered(b) : ordered(a) < ordered(b);
  return nan ? quiet : first ? a : b;
}

// For static_assert in the last branch of an `if constexpr` chain, which only an unhandled case reaches.
template <auto>
inline constexpr bool kIsUnhandled = true;

// The C++ type of each value type, in the order of the rows of kValues.
template <class...>
struct Types {};
using ValueTypes = Types<void, Boolean, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                         uint64_t, Half, Bfloat16, float, double, Complex<float>, Complex<double>>;
template <class V, class... All>
constexpr Value value_among(Types<All...>) {
  const bool is[] = {std::is_same_v<V, All>...};
  for (size_t i = 0; i < sizeof...(All); ++i)
    if (is[i]) return kValues[i].value;
  return Value::none;
}
template <class V>
inline constexpr Value kValueOf = value_among<V>(ValueTypes{});

// The largest number of items of a row whose accumulators are on the stack at a time.
inline constexpr int64_t kStackItems = 256;

template <class V>
struct StoredAs {
  using Type = V;
};
template <class V>
  requires requires { typename V::Stored; }
struct StoredAs<V> {
  using Type = typename V::Stored;
};

// Returns true if a C++ type has the properties of the row of its value type.
template <class V>
constexpr bool agrees_with_row() {
  constexpr Value value = kValueOf<V>;
  if constexpr (std::is_void_v<V>)
    return value == Value::none;
  else
    return sizeof(typename StoredAs<V>::Type) == bytes_of(value) && kIsHalf<V> == is_half(value) &&
           std::is_floating_point_v<V> == (kind_of(value) == kFloats) &&
           std::is_integral_v<V> == (kind_of(value) == kIntegers) &&
           (std::is_integral_v<V> && std::is_signed_v<V>) == is_signed_integer(value);
}
template <class... All>
constexpr bool agree_with_rows(Types<All...>) {
  return sizeof...(All) == std::size(kValues) && (agrees_with_row<All>() && ...);
}
static_assert(agree_with_rows(ValueTypes{}), "a type of ValueTypes differs from its row of kValues");

// The type in which a reduction of V accumulates.
template <class V, Reduction R>
constexpr auto sum_of() {
  constexpr Value sum = sum_type(kValueOf<V>, R);
  if constexpr (sum == kValueOf<V>)
    return typename StoredAs<V>::Type{};
  else if constexpr (sum == Value::float32)
    return float{};
  else if constexpr (sum == Value::int64)
    return int64_t{};
  else if constexpr (sum == Value::uint64)
    return uint64_t{};
  else
    static_assert(!kIsUnhandled<sum>, "sum_of: no type for what sum_type says");
}

// Converts a stored value of type V to the accumulation type S, and back. `Rare` must be `Selected` or
// `Branched`.
template <class V, class S>
struct Arithmetic {
  using Stored = typename StoredAs<V>::Type;
  using Sum = S;
  static constexpr bool kConverts = kIsHalf<V> && std::is_same_v<S, float>;

  template <class Rare>
  static GATHERUM_INLINE Sum widen(Stored v) {
    if constexpr (!kConverts)
      return static_cast<Sum>(v);
    else if constexpr (std::is_same_v<V, Half>)
      return half_to_float<Rare::kBranches>(v);
    else if constexpr (std::is_same_v<V, Bfloat16>)
      return bfloat16_to_float(v);
    else
      static_assert(!kIsUnhandled<kValueOf<V>>, "Arithmetic::widen: no conversion of a half type");
  }
  template <class Rare>
  static GATHERUM_INLINE Stored narrow(Sum v) {
    if constexpr (!kConverts)
      return static_cast<Stored>(v);
    else if constexpr (std::is_same_v<V, Half>)
      return float_to_half<Rare::kBranches>(v);
    else if constexpr (std::is_same_v<V, Bfloat16>)
      return float_to_bfloat16(v);
    else
      static_assert(!kIsUnhandled<kValueOf<V>>, "Arithmetic::narrow: no conversion of a half type");
  }
};

// Converts a count to a float of type T. The count must be below 2^52: it is placed in the significand of a
// double, because this conversion vectorizes.
template <class T>
GATHERUM_INLINE T as_float(int64_t count) {
  return static_cast<T>(std::bit_cast<double>(count | 0x4330000000000000) - 0x1p52);
}

// Treats a count below 1 as 1. No fold produces such a count, but a division by 0, or of the least integer by
// -1, would terminate the process.
template <class T>
GATHERUM_INLINE T divide(T sum, int64_t count) {
  if constexpr (std::is_integral_v<T>) count = std::max<int64_t>(count, 1);
  if constexpr (std::is_floating_point_v<T>) {
    return Selected::canonical(sum / as_float<T>(count));
  } else if constexpr (std::is_signed_v<T>) {
    const T quotient = sum / count;
    return quotient - (sum % count < 0 ? 1 : 0);
  } else {
    return sum / static_cast<T>(count);
  }
}
template <class T>
GATHERUM_INLINE Complex<T> divide(Complex<T> sum, int64_t count) {
  return {divide(sum.re, count), divide(sum.im, count)};
}

// An item of W bytes whose type is unknown.
template <int W>
struct Item {
  unsigned char bytes[W];
};

// W bytes, which are stored and accumulated unchanged. Used for all values that arithmetic does not convert.
template <int W>
struct Bytes {
  using Stored = Item<W>;
  using Sum = Item<W>;
  template <class>
  static Sum widen(Stored v) {
    return v;
  }
  template <class>
  static Stored narrow(Sum v) {
    return v;
  }
};

template <class V, Reduction R>
struct Fold : Arithmetic<V, decltype(sum_of<V, R>())> {
  using Value = V;
  using Base = Arithmetic<V, decltype(sum_of<V, R>())>;
  using typename Base::Stored;
  using typename Base::Sum;
  static constexpr ReductionRow kRow = row_of(R);
  static_assert(has_meaning(kValueOf<V>, R), "dispatch.hpp makes folds that have a meaning");
  static_assert(sizeof(Sum) == bytes_of(sum_type(kValueOf<V>, R)), "callers allocate bytes_of(sum_type)");

  // A common type for all folds with the same stored type and accumulation type. Code that only copies values
  // is compiled once for this type.
  using Conversion = std::conditional_t<std::is_same_v<Stored, Sum>, Bytes<sizeof(Stored)>, Base>;

  // True if the result is computed from the sum and the count.
  static constexpr bool kDivides = kRow.divides;

  // True if each thread may fold a part of the updates, starting from the neutral element. (False for
  // booleans, because folding with the neutral element turns any true byte into 1.)
  static constexpr bool kAnyOrder = std::is_integral_v<V> && kRow.fold_neutral != Neutral::none;

  // True if the result does not depend on the order of the values in a fold that copies its first value.
  static constexpr bool kAnyOrderOfFirsts = is_any_order(kValueOf<V>, R);
  // Returns true if an accumulator that is kept between batches starts from its first update
  // (accumulate.hpp).
  static constexpr bool copies_first(bool include_self) { return kAnyOrderOfFirsts || !include_self; }

  // The neutral element of the accumulators, if the fold has one for V. (Products of complex numbers have
  // none, because 1 * x can change the sign of a zero.)
  static constexpr Neutral kNeutral = accumulator_neutral(R);
  static constexpr Sum neutral()
    requires(kNeutral == Neutral::zero || (kNeutral != Neutral::none && !is_complex(kValueOf<V>))) &&
            (!std::is_same_v<V, Boolean>)
  {
    return neutral_element<V, Sum, kNeutral>();
  }

  template <class NaN = Branched>
  static GATHERUM_INLINE Sum fold(Sum a, Sum b) {
    if constexpr (std::is_same_v<V, Boolean>)
      return fold_truths(a, b);
    else if constexpr (kIsHalf<V> && (R == Reduction::max || R == Reduction::min))
      return extreme<NaN, V, R>(a, b);
    else if constexpr (R == Reduction::add || R == Reduction::mean)
      return add<NaN>(a, b);
    else if constexpr (R == Reduction::mul)
      return mul<NaN>(a, b);
    else if constexpr (R == Reduction::max)
      return maximum<NaN>(a, b);
    else if constexpr (R == Reduction::min)
      return minimum<NaN>(a, b);
    else
      static_assert(!kIsUnhandled<R>, "Fold::fold: a reduction has no step");
  }
  static GATHERUM_INLINE Sum fold_truths(Sum a, Sum b) {
    if constexpr (R == Reduction::add || R == Reduction::max)
      return (a != 0) | (b != 0);
    else if constexpr (R == Reduction::mul || R == Reduction::min)
      return (a != 0) & (b != 0);
    else
      static_assert(!kIsUnhandled<R>, "Fold::fold_truths: a reduction has no step for booleans");
  }

  // Returns the stored result of `count` values. If `folded` is false, returns the accumulator undivided.
  template <class Rare>
  static GATHERUM_INLINE Stored finish(Sum a, int64_t count, bool folded) {
    if constexpr (!kDivides) {
      return Base::template narrow<Rare>(a);
    } else if constexpr (std::is_floating_point_v<Sum>) {
      const auto mean = std::bit_cast<Bits<Sum>>(divide(a, count));
      return Base::template narrow<Rare>(
          std::bit_cast<Sum>(select(folded, mean, std::bit_cast<Bits<Sum>>(a))));
    } else {
      return Base::template narrow<Rare>(folded ? divide(a, count) : a);
    }
  }
};

}  // namespace gatherum::GATHERUM_LEVEL
