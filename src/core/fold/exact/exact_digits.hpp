// The digits of an exact sum and their rounding, the last step of fsum and fmean.
//
//   |N| = sum over digits i of digit[i] * 2^(32 (i - f)),   in units of the smallest subnormal
//   divide     N / count, and whether a remainder exists
//   rounded    the nearest value, ties to even; infinity from half a unit above the largest value on
//
// The digits below f hold the fractional part of a quotient. A quotient is cut after six digits, because
// rounding only needs to know whether a remainder exists. Guaranteed: the result is rounded once, directly to
// the type of the terms or to a wider one, including subnormal numbers. f is 1 unless the type is wider. A
// wider type keeps up to 53 bits of the quotient. Four digits suffice, because the quotient is at least
// 2^-62. Cost: a pass over the digits; a division has 6 to 18 steps.
#pragma once

#include <utility>

#include "fold/combine.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The bits that a limb of an exact sum adds to the next one, and a mask of as many bits: a digit.
inline constexpr int kLimbBits = 32;
inline constexpr uint64_t kDigitMask = 0xFFFFFFFF;

template <class V, class To = V>
class ExactDigits {
  using Format = BinaryFormatOf<To>;
  static constexpr int kFractionDigits = std::is_same_v<V, To> ? 1 : 4;
  static constexpr int kLimbs = limbs_of(kValueOf<V>);

 public:
  // Reads limbs. All limbs except the top limb have 32 bits.
  explicit ExactDigits(const char* limbs) {
    const auto limb = [&](int i) {
      uint64_t word;
      std::memcpy(&word, limbs + 8 * (i - 1), sizeof word);
      return word;
    };
    const uint64_t top = limb(kLimbs);
    negative_ = top >> 63 != 0;
    const uint64_t flip = negative_ ? kDigitMask : 0;
    uint64_t carry = negative_ ? 1 : 0;
    std::fill_n(digit_, kFractionDigits, 0);
    for (int i = 1; i <= kLimbs + 1; ++i) {
      const uint64_t word = i < kLimbs ? limb(i) : i == kLimbs ? top & kDigitMask : top >> kLimbBits;
      const uint64_t digit = (word ^ flip) + carry;
      digit_[kFractionDigits - 1 + i] = static_cast<uint32_t>(digit);
      carry = digit >> kLimbBits;
    }
  }

  // Divides by count. Returns true if a remainder exists. Nonzero digits that are cut off count as a
  // remainder.
  bool divide(uint64_t count) {
    constexpr int kQuotientDigits = 6;  // two may be 0, and four have more bits than are kept
    const int top = highest_digit(), low = std::max(top - kQuotientDigits + 1, 0);
    uint64_t remainder = 0;
    for (int i = top; i >= low; --i)
      digit_[i] = static_cast<uint32_t>(next_digit(remainder, digit_[i], count));
    bool has_remainder = remainder != 0;
    for (int i = 0; i < low; ++i) has_remainder |= std::exchange(digit_[i], 0) != 0;
    return has_remainder;
  }

  // Rounds the digits. `has_remainder` is true if a nonzero remainder follows the digits. If all digits are
  // 0, the result is +0: the caller handles sums of -0.
  uint64_t rounded(bool has_remainder) const {
    const int top = highest_digit();
    if (top == 0 && digit_[0] == 0 && !has_remainder) return 0;
    // `head` is the 64 bits from the top digit's first set bit on, and `more` is true if any set bit follows.
    const auto digit = [this](int i) -> uint64_t { return i >= 0 ? digit_[i] : 0; };
    const int zeros = std::countl_zero(digit_[top]);
    const uint64_t head =
        (digit(top) << kLimbBits | digit(top - 1)) << zeros | digit(top - 2) << zeros >> kLimbBits;
    bool more = has_remainder || static_cast<uint32_t>(digit(top - 2) << zeros) != 0;
    for (int i = top - 3; i >= 0; --i) more |= digit_[i] != 0;
    const uint64_t sign = negative_ ? Format::kSignBit : 0;
    const int units = BinaryFormatOf<V>::kUnitExponent - Format::kUnitExponent;
    return sign |
           Format::nearest(head, units + kLimbBits * (top - kFractionDigits) + kLimbBits - 1 - zeros, more);
  }

 private:
  // The number of the highest nonzero digit, or 0.
  int highest_digit() const {
    int top = kTopDigit;
    while (top > 0 && digit_[top] == 0) --top;
    return top;
  }

  // Returns the next digit of a quotient. If the count is above 2^32, the digit is computed in steps of 11
  // bits, because the remainder is below the count, and the count has at most 52 bits.
  static uint64_t next_digit(uint64_t& remainder, uint64_t digit, uint64_t count) {
    const int step = count <= kDigitMask ? kLimbBits : 11;
    uint64_t quotient = 0;
    for (int at = kLimbBits, bits = step; at > 0; at -= bits) {
      bits = std::min(at, step);
      remainder = remainder << bits | (digit >> (at - bits) & ((uint64_t{1} << bits) - 1));
      quotient = quotient << bits | remainder / count;
      remainder %= count;
    }
    return quotient;
  }

  static constexpr int kTopDigit = kLimbs + kFractionDigits;
  uint32_t digit_[kTopDigit + 1];
  bool negative_;
};

}  // namespace gatherum::GATHERUM_LEVEL
