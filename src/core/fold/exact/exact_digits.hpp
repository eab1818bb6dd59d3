// The digits of an exact sum, and the value they are rounded to: what the sums of fsum and fmean end with.
//
//   |N| = sum over digits i of digit[i] * 2^(32 (i - 1)),   in units of the smallest subnormal
//   divide     N / count, and whether anything follows its digits
//   rounded    the nearest value, of two the even one; infinity from half a unit beyond the largest on
//
// Digit 0 is for what a division leaves behind the point. A quotient is cut after six digits: what follows is
// known to be there, which is all that rounding asks. Guaranteed: one rounding, straight to the type of the
// terms, subnormal numbers too. Cost: a pass over the digits; a division has 6 to 18 steps.
#pragma once

#include <utility>

#include "fold/combine.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class V>
class ExactDigits {
  using Form = FloatForm<V>;
  static constexpr int kLimb = 32, kLimbs = limbs_of(kValueOf<V>);
  static constexpr uint64_t kLow = 0xFFFFFFFF;

 public:
  // Of limbs of which all but the top one have 32 bits.
  explicit ExactDigits(const char* limbs) {
    const auto limb = [&](int i) {
      uint64_t word;
      std::memcpy(&word, limbs + 8 * (i - 1), sizeof word);
      return word;
    };
    const uint64_t top = limb(kLimbs);
    negative_ = top >> 63 != 0;
    const uint64_t flip = negative_ ? kLow : 0;
    uint64_t moved = negative_ ? 1 : 0;
    digit_[0] = 0;
    for (int i = 1; i <= kLast; ++i) {
      const uint64_t word = i < kLimbs ? limb(i) : i == kLimbs ? top & kLow : top >> kLimb;
      const uint64_t digit = (word ^ flip) + moved;
      digit_[i] = static_cast<uint32_t>(digit);
      moved = digit >> kLimb;
    }
  }

  // Whether it leaves a remainder. What does not reach the digits that count is remainder as well.
  bool divide(uint64_t count) {
    constexpr int kQuotient = 6;  // digits: two may be 0, and four have more bits than are kept
    const int top = highest(), low = std::max(top - kQuotient + 1, 0);
    uint64_t rest = 0;
    for (int i = top; i >= low; --i) digit_[i] = static_cast<uint32_t>(quotient(rest, digit_[i], count));
    bool more = rest != 0;
    for (int i = 0; i < low; ++i) more |= std::exchange(digit_[i], 0) != 0;
    return more;
  }

  // `rest`: what is not 0 follows the digits. Digits of 0 are a zero of other terms than -0.
  uint64_t rounded(bool rest) const {
    const int top = highest();
    if (top == 0 && digit_[0] == 0 && !rest) return 0;
    // The highest 64 bits from the top digit's first one on, and whether any follow.
    const auto digit = [this](int i) -> uint64_t { return i >= 0 ? digit_[i] : 0; };
    const int zeros = std::countl_zero(digit_[top]);
    const uint64_t head = (digit(top) << kLimb | digit(top - 1)) << zeros | digit(top - 2) << zeros >> kLimb;
    bool more = rest || static_cast<uint32_t>(digit(top - 2) << zeros) != 0;
    for (int i = top - 3; i >= 0; --i) more |= digit_[i] != 0;
    const uint64_t sign = negative_ ? Form::kSign : 0;
    return sign | Form::nearest(head, kLimb * (top - 1) + kLimb - 1 - zeros, more);
  }

 private:
  // The highest digit that is not 0, or 0.
  int highest() const {
    int top = kLast;
    while (top > 0 && digit_[top] == 0) --top;
    return top;
  }

  // The next digit of a quotient. Above 2^32 by steps of 11 bits: what is left is below a count, which has
  // 52.
  static uint64_t quotient(uint64_t& rest, uint64_t digit, uint64_t count) {
    const int step = count <= kLow ? kLimb : 11;
    uint64_t quotient = 0;
    for (int at = kLimb, bits = step; at > 0; at -= bits) {
      bits = std::min(at, step);
      rest = rest << bits | (digit >> (at - bits) & ((uint64_t{1} << bits) - 1));
      quotient = quotient << bits | rest / count;
      rest %= count;
    }
    return quotient;
  }

  static constexpr int kLast = kLimbs + 1;  // behind digit 0
  uint32_t digit_[kLast + 1];
  bool negative_;
};

}  // namespace gatherum::GATHERUM_LEVEL
