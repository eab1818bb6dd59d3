// Sums of floats without rounding, whatever their order: the accumulators of fsum and fmean.
//
//   N = sum over limbs i of limb[i] * 2^(32 i),   sum of the terms = N * (smallest subnormal)
//   take(v)    limb[p / 32] += m << p % 32,       v = m * 2^p * (smallest subnormal)
//   finish     N, or N / count, rounded once, to nearest even, in the type of the terms
//
// Every finite term is such a multiple, so no addition rounds, and integers add up in any order. A limb is a
// signed word with 32 bits of its own; carries pile up in the others and move on (`carry`) before they could
// fill them. The top limb holds the carries of 2^62 terms. NaN and infinities are flags, and so is what
// decides the sign of a sum of zero: it is -0 only where all terms were -0. A state of zeros has taken
// nothing.
//
// A state is an array of words: flags with the number of terms since the last carry, then the limbs, least
// first; a complex one has two states. Whatever its bits, nothing here is undefined. Cost: a term takes one
// limb (float64: two); carries every 2^7 terms of float32, 2^9 of float64.
#pragma once

#include <utility>

#include "combine.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The forms of the types that have such sums.
template <class V>
struct FloatForm;
template <>
struct FloatForm<Half> {
  static constexpr int kSignificand = 11, kExponent = 5;
};
template <>
struct FloatForm<Bfloat16> {
  static constexpr int kSignificand = 8, kExponent = 8;
};
template <>
struct FloatForm<float> {
  static constexpr int kSignificand = 24, kExponent = 8;
};
template <>
struct FloatForm<double> {
  static constexpr int kSignificand = 53, kExponent = 11;
};

template <class V>
class ExactSum {
 protected:
  static constexpr int kM = FloatForm<V>::kSignificand, kE = FloatForm<V>::kExponent;
  static constexpr int kLimb = 32;
  static constexpr uint64_t kLow = 0xFFFFFFFF;
  // The bits of a term, shifted to its limb; where a limb cannot take them there are two.
  static constexpr int kShifted = kM + kLimb - 1;
  static constexpr bool kTwo = kShifted > 62;
  // After so many terms carries move on: below 2^62 in a limb until then.
  static constexpr uint64_t kTerms = uint64_t{1} << (kTwo ? 62 - (kShifted - kLimb) - 1 : 62 - kShifted);
  static constexpr int kLimbs = limbs_of(kValueOf<V>);
  static_assert((kLimbs - 1) * kLimb >= (1 << kE) - 3 + kM, "the top limb holds the carries of 2^62 terms");

  // The word before the limbs: terms since the last carry, and flags.
  static constexpr uint64_t kCount = kLow;
  static constexpr uint64_t kMinusZero = uint64_t{1} << 32;  // a term was -0
  static constexpr uint64_t kOther = uint64_t{1} << 33;      // a finite term was not; beside the count
  static constexpr uint64_t kNaN = uint64_t{1} << 34;
  static constexpr uint64_t kPlusInfinity = uint64_t{1} << 35, kMinusInfinity = uint64_t{1} << 36;

  static constexpr uint64_t kInfinity = ((uint64_t{1} << kE) - 1) << (kM - 1);
  static constexpr uint64_t kSign = uint64_t{1} << (kM - 1 + kE);
  static constexpr uint64_t kQuiet = kInfinity | uint64_t{1} << (kM - 2);

 public:
  using Stored = typename StoredAs<V>::Type;
  static constexpr int64_t kBytes = 8 * (kLimbs + 1);

  static GATHERUM_INLINE void take(char* state, Stored v) {
    const uint64_t bits = bits_of(v), magnitude = bits & (kSign - 1);
    if (magnitude >= kInfinity || bits == kSign) [[unlikely]]
      return take_special(state, bits);
    const auto [m, p, sign] = term_of(bits);
    char* const limb = state + 8 + p / kLimb * 8;
    const auto shift = static_cast<unsigned>(p % kLimb);
    if constexpr (kTwo) {
      add(limb, (((m << shift & kLow) ^ sign) - sign));
      add(limb + 8, ((m >> (kLimb - shift) ^ sign) - sign));
    } else {
      add(limb, ((m << shift ^ sign) - sign));
    }
    count_term(state);
  }

  static bool is_touched(const char* state) { return load(state) != 0; }

  // Adds what another state has taken.
  static GATHERUM_NOINLINE void merge(char* state, const char* other) {
    if (!is_touched(other)) return;
    carry(state);
    char carried[kBytes];
    std::memcpy(carried, other, sizeof carried);
    carry(carried);
    store(state, load(state) | load(carried));
    for (int i = 1; i <= kLimbs; ++i) add(state + 8 * i, load(carried + 8 * i));
    move_carries(state);
  }

  // The sum over the count, of a state that has taken something.
  static GATHERUM_NOINLINE Stored finish(const char* from, uint64_t count) {
    char state[kBytes];
    std::memcpy(state, from, sizeof state);
    carry(state);
    const uint64_t flags = load(state);
    const bool both = (flags & kPlusInfinity) != 0 && (flags & kMinusInfinity) != 0;
    if ((flags & kNaN) != 0 || both) return value_of(kQuiet);
    if ((flags & kPlusInfinity) != 0) return value_of(kInfinity);
    if ((flags & kMinusInfinity) != 0) return value_of(kSign | kInfinity);
    if ((flags & kOther) == 0) return value_of(kSign);
    Digits digits(state);
    const bool rest = count > 1 && digits.divide(count);
    return value_of(digits.rounded(rest));
  }

 protected:
  static GATHERUM_INLINE uint64_t load(const char* at) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  static GATHERUM_INLINE void store(char* at, uint64_t word) { std::memcpy(at, &word, sizeof word); }
  static GATHERUM_INLINE void add(char* at, uint64_t word) { store(at, load(at) + word); }

  static GATHERUM_INLINE void count_term(char* state) {
    const uint64_t first = load(state) + 1;
    store(state, first);
    if ((first & kCount) >= kTerms) [[unlikely]]
      carry(state);
  }

  // m * 2^p * the smallest subnormal, its sign all ones or zeros; of NaN and infinities p is kLast + 1.
  struct Term {
    uint64_t m, p, sign;
  };
  static constexpr int kLast = (1 << kE) - 3;
  static GATHERUM_INLINE Term term_of(uint64_t bits) {
    const uint64_t magnitude = bits & (kSign - 1), exponent = magnitude >> (kM - 1);
    const uint64_t normal = exponent != 0 ? 1 : 0;
    const uint64_t m = (magnitude & ((uint64_t{1} << (kM - 1)) - 1)) | normal << (kM - 1);
    return {m, exponent - normal, 0 - (bits >> (kM - 1 + kE))};
  }

  using Bits = std::conditional_t<sizeof(Stored) == 2, uint16_t,
                                  std::conditional_t<sizeof(Stored) == 4, uint32_t, uint64_t>>;
  static GATHERUM_INLINE uint64_t bits_of(Stored v) { return std::bit_cast<Bits>(v); }
  static Stored value_of(uint64_t bits) { return std::bit_cast<Stored>(static_cast<Bits>(bits)); }

  static GATHERUM_NOINLINE void take_special(char* state, uint64_t bits) {
    const uint64_t magnitude = bits & (kSign - 1);
    const uint64_t infinity = bits == magnitude ? kPlusInfinity : kMinusInfinity;
    const uint64_t flag = magnitude > kInfinity ? kNaN : magnitude == kInfinity ? infinity : kMinusZero;
    store(state, load(state) | flag);
  }

  // Leaves 32 bits in every limb but the top one.
  static GATHERUM_NOINLINE void carry(char* state) {
    const uint64_t first = load(state);
    if ((first & kCount) == 0) return;
    store(state, (first & ~kCount) | kOther);
    move_carries(state);
  }
  static GATHERUM_INLINE void move_carries(char* state) {
    int64_t moved = 0;
    for (int i = 1; i < kLimbs; ++i) {
      const uint64_t limb = load(state + 8 * i) + static_cast<uint64_t>(moved);
      store(state + 8 * i, limb & kLow);
      moved = static_cast<int64_t>(limb) >> kLimb;
    }
    add(state + 8 * kLimbs, static_cast<uint64_t>(moved));
  }

  // |N| with 32 more bits behind it, for what a division leaves.
  class Digits {
   public:
    explicit Digits(const char* state) {
      const uint64_t top = load(state + 8 * kLimbs);
      negative_ = top >> 63 != 0;
      const uint64_t flip = negative_ ? kLow : 0;
      uint64_t moved = negative_ ? 1 : 0;
      digit_[0] = 0;
      for (int i = 1; i <= kLast; ++i) {
        const uint64_t limb = i < kLimbs ? load(state + 8 * i) : i == kLimbs ? top & kLow : top >> kLimb;
        const uint64_t digit = (limb ^ flip) + moved;
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

    // The nearest value, the even one of two. `rest`: what is not 0 follows the digits.
    uint64_t rounded(bool rest) const {
      const int top = highest();
      if (top == 0 && digit_[0] == 0 && !rest) return 0;  // from other terms than -0
      const uint64_t sign = negative_ ? kSign : 0;
      // The highest 64 bits from the top digit's first one on, and whether any follow.
      const auto digit = [this](int i) -> uint64_t { return i >= 0 ? digit_[i] : 0; };
      const int zeros = std::countl_zero(digit_[top]);
      const uint64_t head =
          (digit(top) << kLimb | digit(top - 1)) << zeros | digit(top - 2) << zeros >> kLimb;
      bool more = rest || static_cast<uint32_t>(digit(top - 2) << zeros) != 0;
      for (int i = top - 3; i >= 0; --i) more |= digit_[i] != 0;
      // The last bit that is kept is worth the smallest subnormal, or more where there are kM bits above it.
      const int first = kLimb * top + kLimb - 1 - zeros;
      const int last = std::max(first - (kM - 1), kLimb), dropped = last - (first - 63);
      if (dropped > 64) return sign;
      const uint64_t kept = dropped == 64 ? 0 : head >> dropped;
      const uint64_t below = head << (64 - dropped), half = uint64_t{1} << 63;
      const bool up = below > half || (below == half && (more || (kept & 1) != 0));
      const uint64_t bits =
          (static_cast<uint64_t>(last - kLimb) << (kM - 1)) + kept + static_cast<uint64_t>(up);
      return sign | std::min(bits, kInfinity);
    }

   private:
    // The highest digit that is not 0, or 0.
    int highest() const {
      int top = kLast;
      while (top > 0 && digit_[top] == 0) --top;
      return top;
    }

    // The next digit of a quotient. Above 2^32 by steps of 11 bits: what is left is below a count, which
    // has 52.
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
};

template <class T>
class ExactSum<Complex<T>> {
  using Part = ExactSum<T>;

 public:
  using Stored = Complex<T>;
  static constexpr int64_t kBytes = 2 * Part::kBytes;

  static GATHERUM_INLINE void take(char* state, Stored v) {
    Part::take(state, v.re);
    Part::take(state + Part::kBytes, v.im);
  }
  static bool is_touched(const char* state) { return Part::is_touched(state); }
  static void merge(char* state, const char* other) {
    Part::merge(state, other);
    Part::merge(state + Part::kBytes, other + Part::kBytes);
  }
  static Stored finish(const char* state, uint64_t count) {
    return {Part::finish(state, count), Part::finish(state + Part::kBytes, count)};
  }
};

// Sums beside a state, in a few words: of terms whose exponents are close to one another, as most are.
//
//   A += m << (p - base),   base <= p <= base + kSpan          take, of a term m * 2^p
//   state += A << base, A = 0                                  flush, before A could overflow
//
// The first term that is not zero chooses the base. What lies below the window goes to the state, and so do
// NaN and infinities; of what lies above, the window starts again. The state is not read, nor needs it to be
// zeros, before the window says that it is in use: where most sums never need it, its memory is hardly
// touched. Cost: a term takes one shift and one addition.
template <class V>
class ExactWindow : public ExactSum<V> {
  using Sum = ExactSum<V>;
  using Sum::add;
  using Sum::bits_of;
  using Sum::kE;
  using Sum::kInfinity;
  using Sum::kLast;
  using Sum::kM;
  using Sum::kMinusZero;
  using Sum::kOther;
  using Sum::kSign;
  using Sum::load;
  using Sum::store;
  using Sum::term_of;
  using Sum::value_of;
  using typename Sum::Term;

 public:
  using typename Sum::Stored;
  static constexpr int kWords = Sum::kTwo ? 2 : 1;
  static constexpr int64_t kWindow = 8 * (1 + kWords);

  // The word before A: in its lower half 0 without a base, else kBased + base; whether zeros of either sign
  // came before there was one, as a state has it; and whether the state is in use.
  static constexpr uint64_t kBased = uint64_t{1} << 16, kInUse = uint64_t{1} << 40;
  static constexpr int kSpan = std::min(kWords == 2 ? 62 : 61 - kM, kLast);
  static constexpr int kBelow = kSpan / 2;
  static constexpr uint64_t kFull = uint64_t{1} << 62;  // A stays below it

  static GATHERUM_INLINE void take(char* window, char* state, Stored v) {
    const uint64_t bits = bits_of(v), first = load(window);
    const Term t = term_of(bits);
    uint64_t shift = t.p - static_cast<uint32_t>(first - kBased);
    if (t.m == 0 && static_cast<uint32_t>(first) != 0) shift = 0;
    if (shift > static_cast<uint64_t>(kSpan) || static_cast<uint32_t>(first) == 0) [[unlikely]]
      return take_outside(window, state, v);
    accumulate(window, state, t, static_cast<unsigned>(shift));
  }

  // Without a branch, for a window of one word: A and the term. Not 0: the term lies outside, or A is full.
  static GATHERUM_INLINE uint64_t taken(uint64_t bits, uint64_t first, uint64_t sum, uint64_t& to) {
    const Term t = term_of(bits);
    const uint64_t base = first & Sum::kLow, zero = 0 - static_cast<uint64_t>(t.m == 0);
    const uint64_t shift = (t.p + kBased - base) & ~zero;
    to = sum + ((t.m << (shift & 63) ^ t.sign) - t.sign);
    return (shift | (static_cast<uint64_t>(kSpan) - shift) | (base - 1) | (to + kFull)) >> 63;
  }

  // The same of the first term, which is neither 0 nor infinite nor NaN.
  static GATHERUM_INLINE uint64_t begun(uint64_t bits, uint64_t& first, uint64_t& sum) {
    const Term t = term_of(bits);
    const auto p = static_cast<int64_t>(t.p);
    const int64_t wanted = p - kBelow, low = wanted < 0 ? 0 : wanted;
    const int64_t base = low < kLast - kSpan ? low : kLast - kSpan;
    first = kBased + static_cast<uint64_t>(base);
    sum = (t.m << ((p - base) & 63) ^ t.sign) - t.sign;
    return (t.m - 1) >> 63 | static_cast<uint64_t>(kLast - p) >> 63;
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

  // Puts everything into the state.
  static GATHERUM_NOINLINE void flush(char* window, char* state) {
    const uint64_t first = use_state(window, state);
    store(state, load(state) | (first & (kMinusZero | kOther)));
    if (static_cast<uint32_t>(first) == 0) return;
    const auto base = static_cast<unsigned>(static_cast<uint32_t>(first - kBased));
    const uint64_t sign = 0 - (load(window + 8 * kWords) >> 63);
    uint64_t moved = sign & 1;
    for (int i = 0; i < 2 * kWords; ++i) {  // |A| by its digits of 32 bits
      const uint64_t word = load(window + 8 + i / 2 * 8) ^ sign;
      const uint64_t digit = (i % 2 == 0 ? word & Sum::kLow : word >> 32) + moved;
      moved = digit >> 32;
      const uint64_t shifted = (digit & Sum::kLow) << base % 32;
      char* const limb = state + 8 + (base / 32 + static_cast<unsigned>(i)) * 8;
      add(limb, ((shifted & Sum::kLow) ^ sign) - sign);
      add(limb + 8, (shifted >> 32 ^ sign) - sign);
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

  static GATHERUM_NOINLINE void take_outside(char* window, char* state, Stored v) {
    const uint64_t bits = bits_of(v), first = load(window);
    const Term t = term_of(bits);
    const bool based = static_cast<uint32_t>(first) != 0;
    const uint64_t base = static_cast<uint32_t>(first - kBased);
    if (t.m == 0) return store(window, first | (t.sign == 0 ? kOther : kMinusZero));
    if (t.p > static_cast<uint64_t>(kLast) || (based && t.p < base)) {
      use_state(window, state);
      return Sum::take(state, v);
    }
    if (based) flush(window, state);
    const int64_t wanted = static_cast<int64_t>(t.p) - kBelow;
    const auto chosen = static_cast<uint64_t>(std::clamp<int64_t>(wanted, 0, kLast - kSpan));
    store(window, load(window) >> 32 << 32 | (kBased + chosen));
    accumulate(window, state, t, static_cast<unsigned>(t.p - chosen));
  }

  // A << base, rounded once.
  static Stored rounded(const char* window) {
    const uint64_t first = load(window);
    auto base = static_cast<int>(static_cast<uint32_t>(first - kBased));
    uint64_t low = load(window + 8), high = kWords == 2 ? load(window + 16) : 0;
    const bool negative = (kWords == 2 ? high : low) >> 63 != 0;
    if (negative) {
      low = 0 - low;
      high = ~high + (low == 0 ? 1 : 0);
    }
    bool more = false;
    if (kWords == 2 && high != 0) {
      const int zeros = std::countl_zero(high), down = 64 - zeros;
      more = (low & ((uint64_t{1} << (down - 1) << 1) - 1)) != 0;
      low = (zeros == 0 ? high : high << zeros | low >> 1 >> (down - 1));
      base += down;
    }
    if (low == 0) return value_of((first & ~kMinusZero) == 0 ? kSign : 0);
    const int highest = 63 - std::countl_zero(low) + base;
    const int last = std::max(highest - (kM - 1), 0), dropped = last - base;
    uint64_t kept = dropped <= 0 ? low << -dropped : low >> dropped;
    if (dropped > 0) {
      const uint64_t below = low << (64 - dropped), half = uint64_t{1} << 63;
      kept += below > half || (below == half && (more || (kept & 1) != 0)) ? 1 : 0;
    }
    const uint64_t bits = (static_cast<uint64_t>(last) << (kM - 1)) + kept;
    return value_of((negative ? kSign : 0) | std::min(bits, kInfinity));
  }
};

template <class T>
class ExactWindow<Complex<T>> : public ExactSum<Complex<T>> {
  using Part = ExactWindow<T>;
  static constexpr int64_t kState = Part::kBytes;

 public:
  using Stored = Complex<T>;
  static constexpr int64_t kWindow = 2 * Part::kWindow;

  static GATHERUM_INLINE void take(char* window, char* state, Stored v) {
    Part::take(window, state, v.re);
    Part::take(window + Part::kWindow, state + kState, v.im);
  }
  static bool is_touched(const char* window) { return Part::is_touched(window); }
  static void merge(char* window, char* state, char* other, char* other_state) {
    Part::merge(window, state, other, other_state);
    Part::merge(window + Part::kWindow, state + kState, other + Part::kWindow, other_state + kState);
  }
  static Stored finish(char* window, char* state, uint64_t count) {
    return {Part::finish(window, state, count), Part::finish(window + Part::kWindow, state + kState, count)};
  }
};

// The folds whose accumulators are such states. They are changed where they lie.
template <class F>
inline constexpr bool kIsExact = false;
template <class V, Reduction R>
  requires(bool{row_of(R).exact})
inline constexpr bool kIsExact<Fold<V, R>> = true;

template <class V, Reduction R>
  requires(bool{row_of(R).exact})
struct Fold<V, R> {
  using Value = V;
  using State = ExactSum<V>;
  using Window = ExactWindow<V>;
  using Stored = typename State::Stored;
  static constexpr int64_t kBytes = State::kBytes, kWindow = Window::kWindow;
  static_assert(has_meaning(kValueOf<V>, R), "dispatch.hpp makes folds that have a meaning");
  static_assert(kBytes == sum_bytes(kValueOf<V>, R), "callers allocate sum_bytes");
  static_assert(kWindow == window_bytes(kValueOf<V>), "callers count with window_bytes");

  static constexpr bool kDivides = row_of(R).divides;
  static constexpr bool kAnyOrder = true;
  static constexpr bool kAnyOrderOfFirsts = true;

  // What the sum is divided by.
  static uint64_t divisor(int64_t count) {
    return kDivides ? static_cast<uint64_t>(std::max<int64_t>(count, 1)) : 1;
  }
};

// What is stored of a state that has taken `count` updates, beside the old value or in its place. The state
// is of no use afterwards.
template <class F>
typename F::Stored finish_exact(char* state, int64_t count, typename F::Stored old, bool include_self) {
  if (!F::State::is_touched(state)) return old;
  if (include_self) F::State::take(state, old);
  return F::State::finish(state, F::divisor(count + (include_self ? 1 : 0)));
}
// The same of a window and its state.
template <class F>
typename F::Stored finish_exact(char* window, char* state, int64_t count, typename F::Stored old,
                                bool include_self) {
  if (!F::Window::is_touched(window)) return old;
  if (include_self) F::Window::take(window, state, old);
  return F::Window::finish(window, state, F::divisor(count + (include_self ? 1 : 0)));
}

// The sums of a part of a row, on the stack: few enough to stay in a core's first cache. Where a window has
// two words, those of all lie apart from one another, and a row whose terms all lie inside is taken in
// vectors.
template <class F>
class ExactRow {
  using Window = typename F::Window;
  static constexpr int64_t kWords = F::kWindow / 8;

 public:
  using Stored = typename F::Stored;
  static constexpr auto kStep = static_cast<int64_t>(sizeof(Stored));
  static constexpr int64_t kPart =
      std::clamp<int64_t>((int64_t{32} << 10) / (F::kBytes + F::kWindow), 1, 256);

  explicit ExactRow(int64_t n) : n_(n) {
    if constexpr (kTogether)
      for (int64_t w = 0; w < kWords; ++w) std::fill_n(words_ + w * kPart, n, 0);
    else
      std::fill_n(words_, n * kWords, 0);
  }

  GATHERUM_INLINE void take(const char* row) {
    if constexpr (kTogether) {
      const bool begins = std::exchange(begins_, false);
      if (begins ? begin_together(row) : take_together(row)) return;
    }
    for (int64_t e = 0; e < n_; ++e) {
      Stored v;
      std::memcpy(&v, row + e * kStep, sizeof v);
      with_window(e, [&](char* window) { Window::take(window, state(e), v); });
    }
  }

  void finish(char* to, int64_t count) {
    for (int64_t e = 0; e < n_; ++e)
      with_window(e, [&](char* window) {
        const Stored v = Window::finish(window, state(e), F::divisor(count));
        std::memcpy(to + e * kStep, &v, sizeof v);
      });
  }

 private:
  static constexpr bool kTogether = kWords == 2;
  using Bits = std::conditional_t<sizeof(Stored) == 2, uint16_t, uint32_t>;

  char* state(int64_t e) { return states_ + e * F::kBytes; }

  template <class Work>
  GATHERUM_INLINE void with_window(int64_t e, const Work& work) {
    if constexpr (kTogether) {
      uint64_t window[2] = {words_[e], words_[kPart + e]};
      work(reinterpret_cast<char*>(window));
      words_[e] = window[0];
      words_[kPart + e] = window[1];
    } else {
      work(reinterpret_cast<char*>(words_ + e * kWords));
    }
  }

  // The first row. Returns false, and takes nothing, unless all its terms are finite and not 0.
  bool begin_together(const char* GATHERUM_RESTRICT row) {
    uint64_t firsts[kPart], sums[kPart], outside = 0;
    const int64_t n = n_;
    for (int64_t e = 0; e < n; ++e) {
      Bits bits;
      std::memcpy(&bits, row + e * kStep, sizeof bits);
      outside |= Window::begun(bits, firsts[e], sums[e]);
    }
    return commit(outside, firsts, sums);
  }

  // Returns false, and takes nothing, unless all terms lie in their windows.
  bool take_together(const char* GATHERUM_RESTRICT row) {
    uint64_t sums[kPart], outside = 0;
    const uint64_t* GATHERUM_RESTRICT const firsts = words_;
    const uint64_t* GATHERUM_RESTRICT const olds = words_ + kPart;
    const int64_t n = n_;
    for (int64_t e = 0; e < n; ++e) {
      Bits bits;
      std::memcpy(&bits, row + e * kStep, sizeof bits);
      outside |= Window::taken(bits, firsts[e], olds[e], sums[e]);
    }
    return commit(outside, words_, sums);
  }

  GATHERUM_INLINE bool commit(uint64_t outside, const uint64_t* firsts, const uint64_t* sums) {
    if (outside != 0) return false;
    if (firsts != words_) std::memcpy(words_, firsts, static_cast<size_t>(n_ * 8));
    std::memcpy(words_ + kPart, sums, static_cast<size_t>(n_ * 8));
    return true;
  }

  const int64_t n_;
  bool begins_ = true;
  alignas(64) uint64_t words_[kWords * kPart];
  alignas(64) char states_[kPart * F::kBytes];
};

}  // namespace gatherum::GATHERUM_LEVEL
