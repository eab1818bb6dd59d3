// Exact sums of floats in a few words, to which most terms of fsum and fmean are added instead of the limbs.
//
//   A += m << (p - base),   base <= p <= base + kSpan      add_term, of a term m * 2^p
//   state += A << base, A = 0                                  flush, before A could overflow
//
// The first nonzero term chooses the base, since the exponents of most terms are close. Terms below the
// window, NaN and infinities are added to the state (exact_limbs.hpp); a term above the window restarts it.
// Guaranteed: the state is not read until the window marks it as in use, so it need not be zeroed before
// that. If most sums never need their states, the memory of states is hardly used. Cost: one shift and one
// addition per term.
#pragma once

#include "fold/exact/exact_limbs.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class V>
class ExactWindow : public ExactSum<V> {
  using Sum = ExactSum<V>;
  using Sum::add;
  using Sum::bits_of;
  using Sum::kInfinity;
  using Sum::kLastExponent;
  using Sum::kMinusZero;
  using Sum::kOtherFinite;
  using Sum::kSignBit;
  using Sum::kSignificandBits;
  using Sum::load;
  using Sum::store;
  using Sum::term_of;
  using Sum::value_of;
  using typename Sum::Format;
  using typename Sum::Term;

 public:
  using typename Sum::Stored;
  static constexpr int kWords = Sum::kSplitsTerms ? 2 : 1;
  static constexpr int64_t kWindowBytes = 8 * (1 + kWords);

  // The word before A. Its lower half is 0 until a base is chosen, and then kBased + base. The word also
  // contains two kinds of flags: flags for zeros that were added before the base was chosen (as in a state),
  // and a flag that is set if the state is in use.
  static constexpr uint64_t kBased = uint64_t{1} << 16, kInUse = uint64_t{1} << 40;
  static constexpr int kSpan = std::min(kWords == 2 ? 62 : 61 - kSignificandBits, kLastExponent);
  static constexpr int kBelow = kSpan / 2;
  static constexpr uint64_t kFull = uint64_t{1} << 62;  // A stays below it

  static GATHERUM_INLINE void add_term(char* window, char* state, Stored v) {
    const uint64_t bits = bits_of(v), first = load(window);
    const Term t = term_of(bits);
    uint64_t shift = t.p - static_cast<uint32_t>(first - kBased);
    if (t.m == 0 && static_cast<uint32_t>(first) != 0) shift = 0;
    if (shift > static_cast<uint64_t>(kSpan) || static_cast<uint32_t>(first) == 0) [[unlikely]]
      return add_outside(window, state, v);
    accumulate(window, state, t, static_cast<unsigned>(shift));
  }

  // Adds a term to A without branches, for a window of one word. The result is nonzero if the term is outside
  // the window or A is full.
  static GATHERUM_INLINE uint64_t add_inside(uint64_t bits, uint64_t first, uint64_t sum, uint64_t& to) {
    const Term t = term_of(bits);
    const uint64_t base = first & kDigitMask, zero = 0 - static_cast<uint64_t>(t.m == 0);
    const uint64_t shift = (t.p + kBased - base) & ~zero;
    to = sum + ((t.m << (shift & 63) ^ t.sign) - t.sign);
    return (shift | (static_cast<uint64_t>(kSpan) - shift) | (base - 1) | (to + kFull)) >> 63;
  }

  // Adds the first term. The result is nonzero if the term is 0, infinite or NaN.
  static GATHERUM_INLINE uint64_t add_first(uint64_t bits, uint64_t& first, uint64_t& sum) {
    const Term t = term_of(bits);
    const auto p = static_cast<int64_t>(t.p);
    const int64_t wanted = p - kBelow, low = wanted < 0 ? 0 : wanted;
    const int64_t base = low < kLastExponent - kSpan ? low : kLastExponent - kSpan;
    first = kBased + static_cast<uint64_t>(base);
    sum = (t.m << ((p - base) & 63) ^ t.sign) - t.sign;
    return (t.m - 1) >> 63 | static_cast<uint64_t>(kLastExponent - p) >> 63;
  }

  static bool is_touched(const char* window) { return load(window) != 0; }

  static GATHERUM_NOINLINE void merge(char* window, char* state, char* other, char* other_state) {
    if (!is_touched(other)) return;
    flush(window, state);
    flush(other, other_state);
    Sum::merge(state, other_state);
  }

  static Stored finish(char* window, char* state, uint64_t count) {
    if ((load(window) & kInUse) != 0 || count > 1) {
      flush(window, state);
      return Sum::finish(state, count);
    }
    return rounded(window);
  }
  // The same, rounded to float64.
  static double finish_wide(char* window, char* state, uint64_t count) {
    flush(window, state);
    return Sum::template finish<double>(state, count);
  }

  // Adds A to the state and clears A.
  static GATHERUM_NOINLINE void flush(char* window, char* state) {
    const uint64_t first = use_state(window, state);
    Sum::set(state, first & (kMinusZero | kOtherFinite));
    if (static_cast<uint32_t>(first) == 0) return;
    const auto base = static_cast<unsigned>(static_cast<uint32_t>(first - kBased));
    const uint64_t sign = 0 - (load(window + 8 * kWords) >> 63);
    uint64_t carry = sign & 1;
    for (int i = 0; i < 2 * kWords; ++i) {  // |A| in 32-bit digits
      const uint64_t word = load(window + 8 + i / 2 * 8) ^ sign;
      const uint64_t digit = (i % 2 == 0 ? word & kDigitMask : word >> 32) + carry;
      carry = digit >> 32;
      Sum::add_digit(state, digit & kDigitMask, base + 32 * static_cast<unsigned>(i), sign);
    }
    std::memset(window + 8, 0, 8 * kWords);
    Sum::count_term(state);
  }

 private:
  // Returns the word before A.
  static uint64_t use_state(char* window, char* state) {
    const uint64_t first = load(window);
    if ((first & kInUse) != 0) return first;
    std::memset(state, 0, Sum::kBytes);
    store(window, first | kInUse);
    return first | kInUse;
  }

  static GATHERUM_INLINE void accumulate(char* window, char* state, const Term& t, unsigned shift) {
    const uint64_t low = t.m << shift;
    if constexpr (kWords == 1) {
      const uint64_t sum = load(window + 8) + ((low ^ t.sign) - t.sign);
      store(window + 8, sum);
      if (sum + kFull >= 2 * kFull) [[unlikely]]
        flush(window, state);
    } else {
      const uint64_t high = t.m >> 1 >> (63 - shift), one = t.sign & 1;
      const uint64_t part = load(window + 8) + (low ^ t.sign), sum = part + one;
      const uint64_t carries = (part < (low ^ t.sign) ? 1 : 0) + (sum < one ? 1 : 0);
      const uint64_t top = load(window + 16) + (high ^ t.sign) + carries;
      store(window + 8, sum);
      store(window + 16, top);
      if (top + kFull >= 2 * kFull) [[unlikely]]
        flush(window, state);
    }
  }

  static GATHERUM_NOINLINE void add_outside(char* window, char* state, Stored v) {
    const uint64_t bits = bits_of(v), first = load(window);
    const Term t = term_of(bits);
    const bool based = static_cast<uint32_t>(first) != 0;
    const uint64_t base = static_cast<uint32_t>(first - kBased);
    if (t.m == 0) return store(window, first | (t.sign == 0 ? kOtherFinite : kMinusZero));
    if (t.p > static_cast<uint64_t>(kLastExponent) || (based && t.p < base)) {
      use_state(window, state);
      return Sum::add_term(state, v);
    }
    if (based) flush(window, state);
    const int64_t wanted = static_cast<int64_t>(t.p) - kBelow;
    const auto chosen = static_cast<uint64_t>(std::clamp<int64_t>(wanted, 0, kLastExponent - kSpan));
    store(window, load(window) >> 32 << 32 | (kBased + chosen));
    accumulate(window, state, t, static_cast<unsigned>(t.p - chosen));
  }

  // Returns A << base, rounded once.
  static Stored rounded(const char* window) {
    const uint64_t first = load(window);
    const auto base = static_cast<int>(static_cast<uint32_t>(first - kBased));
    uint64_t low = load(window + 8), high = kWords == 2 ? load(window + 16) : 0;
    const bool negative = (kWords == 2 ? high : low) >> 63 != 0;
    if (negative) {
      low = 0 - low;
      high = kWords == 2 ? ~high + (low == 0 ? 1 : 0) : 0;
    }
    if (low == 0 && high == 0) return value_of((first & ~kMinusZero) == 0 ? kSignBit : 0);
    const int zeros = std::countl_zero(high != 0 ? high : low);
    const uint64_t more = high != 0 ? low << zeros : 0;
    const uint64_t head = high != 0 ? high << zeros | low >> 1 >> (63 - zeros) : low << zeros;
    const int highest = base + (high != 0 ? 127 : 63) - zeros;
    return value_of((negative ? kSignBit : 0) | Format::nearest(head, highest, more != 0));
  }
};

template <class T>
class ExactWindow<Complex<T>> : public ExactSum<Complex<T>> {
  using Part = ExactWindow<T>;
  static constexpr int64_t kStateBytes = Part::kBytes;

 public:
  using Stored = Complex<T>;
  static constexpr int64_t kWindowBytes = 2 * Part::kWindowBytes;

  static GATHERUM_INLINE void add_term(char* window, char* state, Stored v) {
    Part::add_term(window, state, v.re);
    Part::add_term(window + Part::kWindowBytes, state + kStateBytes, v.im);
  }
  static bool is_touched(const char* window) { return Part::is_touched(window); }
  static void merge(char* window, char* state, char* other, char* other_state) {
    Part::merge(window, state, other, other_state);
    Part::merge(window + Part::kWindowBytes, state + kStateBytes, other + Part::kWindowBytes,
                other_state + kStateBytes);
  }
  static Stored finish(char* window, char* state, uint64_t count) {
    return {Part::finish(window, state, count),
            Part::finish(window + Part::kWindowBytes, state + kStateBytes, count)};
  }
};

}  // namespace gatherum::GATHERUM_LEVEL
