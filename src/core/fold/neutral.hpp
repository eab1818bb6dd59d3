// The neutral element e of a fold: fold(e, x) is x, bit for bit, for every number x.
#pragma once

#include <limits>

#include "fold/formats.hpp"
#include "model/types.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The neutral element of addition. That of floats is -0, because 0 + -0 is 0.
template <class Sum>
inline constexpr Sum kNothing = Sum{};
template <>
inline constexpr float kNothing<float> = -0.0f;
template <>
inline constexpr double kNothing<double> = -0.0;
template <class T>
inline constexpr Complex<T> kNothing<Complex<T>> = {-T{0}, -T{0}};

// The neutral element of a fold of V with the accumulation type Sum. For maxima and minima, it is an
// infinity, or the least or greatest integer.
template <class V, class Sum, Neutral N>
constexpr Sum neutral_element() {
  if constexpr (N == Neutral::zero) {
    return kNothing<Sum>;
  } else if constexpr (N == Neutral::one) {
    return Sum{1};
  } else if constexpr (std::is_integral_v<V>) {
    return N == Neutral::lowest ? std::numeric_limits<Sum>::lowest() : std::numeric_limits<Sum>::max();
  } else {
    using Word = std::conditional_t<sizeof(Sum) == 2, uint16_t, Bits<Sum>>;
    constexpr uint64_t sign = N == Neutral::lowest ? BinaryFormatOf<V>::kSignBit : 0;
    return std::bit_cast<Sum>(static_cast<Word>(BinaryFormatOf<V>::kInfinity | sign));
  }
}

}  // namespace gatherum::GATHERUM_LEVEL
