// The C++ types of booleans and complex numbers, and the formats of floats.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "fold/halves.hpp"

namespace gatherum::GATHERUM_LEVEL {

struct Boolean {
  using Stored = uint8_t;
};
template <class T>
struct Complex {
  T re, im;
};

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// The format of a float: the number of bits of its significand, including the hidden bit, and of its
// exponent.
template <int M, int E>
struct BinaryFormat {
  static constexpr int kSignificandBits = M, kExponentBits = E;
  static constexpr uint64_t kSignBit = uint64_t{1} << (kSignificandBits - 1 + kExponentBits);
  static constexpr uint64_t kInfinity = ((uint64_t{1} << kExponentBits) - 1) << (kSignificandBits - 1);
  static constexpr uint64_t kQuietNaN = kInfinity | uint64_t{1} << (kSignificandBits - 2);
  static constexpr int kUnitExponent =
      3 - kSignificandBits - (1 << (kExponentBits - 1));  // the smallest subnormal is 2^kUnitExponent

  // Returns the bits of the value nearest to head * 2^(first - 63) units. The first bit of `head` is set, or
  // `first` is far below 0. `more` is true if nonzero digits follow `head`.
  static uint64_t nearest(uint64_t head, int first, bool more) {
    // The last kept bit is worth one unit, or more if kSignificandBits bits are above it.
    const int last = std::max(first - (kSignificandBits - 1), 0), dropped = last - (first - 63);
    if (dropped > 64) return 0;
    const uint64_t kept = dropped == 64 ? 0 : head >> dropped;
    const uint64_t below = head << (64 - dropped), half = uint64_t{1} << 63;
    const bool up = below > half || (below == half && (more || (kept & 1) != 0));
    const uint64_t bits =
        (static_cast<uint64_t>(last) << (kSignificandBits - 1)) + kept + static_cast<uint64_t>(up);
    return std::min(bits, kInfinity);
  }
};
template <class V>
struct BinaryFormatOf;
template <>
struct BinaryFormatOf<Half> : BinaryFormat<11, 5> {};
template <>
struct BinaryFormatOf<Bfloat16> : BinaryFormat<8, 8> {};
template <>
struct BinaryFormatOf<float> : BinaryFormat<24, 8> {};
template <>
struct BinaryFormatOf<double> : BinaryFormat<53, 11> {};

// The canonical quiet NaN: sign and payload 0.
template <class T>
GATHERUM_INLINE T quiet_nan() {
  return std::bit_cast<T>(static_cast<Bits<T>>(BinaryFormatOf<T>::kQuietNaN));
}

}  // namespace gatherum::GATHERUM_LEVEL
