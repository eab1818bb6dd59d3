// Exact, order-independent sums of floats in limbs: the states of fsum and fmean.
//
//   N = sum over limbs i of limb[i] * 2^(32 i),   sum of the terms = N * (smallest subnormal)
//   add_term(v)    limb[p / 32] += m << p % 32,       v = m * 2^p * (smallest subnormal)
//   finish        N, or N / count, rounded once, to nearest even, in the type of the terms
//
// Every finite term is an integer multiple of the smallest subnormal, so no addition rounds, and the sum does
// not depend on the order. A limb is a signed word that holds 32 bits of the sum. Carries accumulate in its
// other bits, and `carry` propagates them before they overflow. The top limb holds the carries of 2^62 terms.
// Flags record NaN, infinities, and whether all terms were -0, which makes the sum -0. A state whose words
// are all 0 is empty.
//
// A state is an array of words: first the flags and the number of terms since the last carry, then the limbs,
// least significant first. A complex state consists of two states. No bit pattern of a state causes undefined
// behaviour. Cost: a term updates one limb (float64: two); carries are propagated every 2^7 terms of float32,
// 2^9 of float64.
#pragma once

#include "fold/exact/exact_digits.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class V>
class ExactSum {
  template <class>
  friend class ExactSum;

 protected:
  using Format = BinaryFormatOf<V>;
  static constexpr int kSignificandBits = Format::kSignificandBits, kExponentBits = Format::kExponentBits;
  // The bits of a term, shifted to its limb. If one limb cannot hold these bits, a term uses two limbs.
  static constexpr int kShifted = kSignificandBits + kLimbBits - 1;
  static constexpr bool kSplitsTerms = kShifted > 62;
  // Carries are propagated after this many terms; until then a limb stays below 2^62.
  static constexpr uint64_t kTermsPerCarry =
      uint64_t{1} << (kSplitsTerms ? 62 - (kShifted - kLimbBits) - 1 : 62 - kShifted);
  static constexpr int kLimbs = limbs_of(kValueOf<V>);
  static_assert((kLimbs - 1) * kLimbBits >= (1 << kExponentBits) - 3 + kSignificandBits,
                "the top limb holds the carries of 2^62 terms");

  // The word before the limbs: the number of terms since the last carry, and flags.
  static constexpr uint64_t kCountMask = kDigitMask;
  static constexpr uint64_t kMinusZero = uint64_t{1} << 32;    // some term was -0
  static constexpr uint64_t kOtherFinite = uint64_t{1} << 33;  // some finite term was not -0 (or count > 0)
  static constexpr uint64_t kNaN = uint64_t{1} << 34;
  static constexpr uint64_t kPlusInfinity = uint64_t{1} << 35, kMinusInfinity = uint64_t{1} << 36;

  static constexpr uint64_t kInfinity = Format::kInfinity, kSignBit = Format::kSignBit,
                            kQuietNaN = Format::kQuietNaN;

 public:
  using Stored = typename StoredAs<V>::Type;
  static constexpr int64_t kBytes = 8 * (kLimbs + 1);

  static GATHERUM_INLINE void add_term(char* state, Stored v) {
    const uint64_t bits = bits_of(v), magnitude = bits & (kSignBit - 1);
    if (magnitude >= kInfinity || bits == kSignBit) [[unlikely]]
      return add_special(state, bits);
    const auto [m, p, sign] = term_of(bits);
    char* const limb = state + 8 + p / kLimbBits * 8;
    const auto shift = static_cast<unsigned>(p % kLimbBits);
    if constexpr (kSplitsTerms) {
      add(limb, (((m << shift & kDigitMask) ^ sign) - sign));
      add(limb + 8, ((m >> (kLimbBits - shift) ^ sign) - sign));
    } else {
      add(limb, ((m << shift ^ sign) - sign));
    }
    count_term(state);
  }

  static bool is_touched(const char* state) { return load(state) != 0; }

  // Adds another state to this one.
  static GATHERUM_NOINLINE void merge(char* state, const char* other) {
    if (!is_touched(other)) return;
    carry(state);
    char carried[kBytes];
    std::memcpy(carried, other, sizeof carried);
    carry(carried);
    set(state, load(carried));
    for (int i = 1; i <= kLimbs; ++i) add(state + 8 * i, load(carried + 8 * i));
    move_carries(state);
  }

  // Returns the sum divided by the count, in the type of the terms or a wider one. The state must contain at
  // least one term.
  template <class To = V>
  static GATHERUM_NOINLINE typename StoredAs<To>::Type finish(const char* from, uint64_t count) {
    using Wide = BinaryFormatOf<To>;
    const auto value_of = [](uint64_t bits) { return ExactSum<To>::value_of(bits); };
    char state[kBytes];
    std::memcpy(state, from, sizeof state);
    carry(state);
    const uint64_t flags = load(state);
    const bool both = (flags & kPlusInfinity) != 0 && (flags & kMinusInfinity) != 0;
    if ((flags & kNaN) != 0 || both) return value_of(Wide::kQuietNaN);
    if ((flags & kPlusInfinity) != 0) return value_of(Wide::kInfinity);
    if ((flags & kMinusInfinity) != 0) return value_of(Wide::kSignBit | Wide::kInfinity);
    if ((flags & kOtherFinite) == 0) return value_of(Wide::kSignBit);
    ExactDigits<V, To> digits(state + 8);
    const bool has_remainder = count > 1 && digits.divide(count);
    return value_of(digits.rounded(has_remainder));
  }

 protected:
  static GATHERUM_INLINE uint64_t load(const char* address) {
    uint64_t word;
    std::memcpy(&word, address, sizeof word);
    return word;
  }
  static GATHERUM_INLINE void store(char* address, uint64_t word) {
    std::memcpy(address, &word, sizeof word);
  }
  static GATHERUM_INLINE void add(char* address, uint64_t word) { store(address, load(address) + word); }

  static GATHERUM_INLINE void set(char* state, uint64_t flag) { store(state, load(state) | flag); }

  // Adds a 32-bit digit times 2^p. The term that the digit belongs to is counted separately, by `count_term`.
  static GATHERUM_INLINE void add_digit(char* state, uint64_t digit, unsigned p, uint64_t sign) {
    const uint64_t shifted = digit << p % kLimbBits;
    char* const limb = state + 8 + p / kLimbBits * 8;
    add(limb, ((shifted & kDigitMask) ^ sign) - sign);
    add(limb + 8, (shifted >> kLimbBits ^ sign) - sign);
  }

  static GATHERUM_INLINE void count_term(char* state) {
    const uint64_t first = load(state) + 1;
    store(state, first);
    if ((first & kCountMask) >= kTermsPerCarry) [[unlikely]]
      carry(state);
  }

  // m * 2^p * the smallest subnormal. `sign` is all ones or all zeros. For NaN and infinities p is
  // kLastExponent + 1.
  struct Term {
    uint64_t m, p, sign;
  };
  static constexpr int kLastExponent = (1 << kExponentBits) - 3;
  static GATHERUM_INLINE Term term_of(uint64_t bits) {
    const uint64_t magnitude = bits & (kSignBit - 1), exponent = magnitude >> (kSignificandBits - 1);
    const uint64_t normal = exponent != 0 ? 1 : 0;
    const uint64_t m =
        (magnitude & ((uint64_t{1} << (kSignificandBits - 1)) - 1)) | normal << (kSignificandBits - 1);
    return {m, exponent - normal, 0 - (bits >> (kSignificandBits - 1 + kExponentBits))};
  }

  using Bits = std::conditional_t<sizeof(Stored) == 2, uint16_t,
                                  std::conditional_t<sizeof(Stored) == 4, uint32_t, uint64_t>>;
  static GATHERUM_INLINE uint64_t bits_of(Stored v) { return std::bit_cast<Bits>(v); }
  static Stored value_of(uint64_t bits) { return std::bit_cast<Stored>(static_cast<Bits>(bits)); }

  static GATHERUM_NOINLINE void add_special(char* state, uint64_t bits) {
    const uint64_t magnitude = bits & (kSignBit - 1);
    const uint64_t infinity = bits == magnitude ? kPlusInfinity : kMinusInfinity;
    const uint64_t flag = magnitude > kInfinity ? kNaN : magnitude == kInfinity ? infinity : kMinusZero;
    set(state, flag);
  }

  // Leaves 32 bits in every limb except the top one.
  static GATHERUM_NOINLINE void carry(char* state) {
    const uint64_t first = load(state);
    if ((first & kCountMask) == 0) return;
    store(state, (first & ~kCountMask) | kOtherFinite);
    move_carries(state);
  }
  static GATHERUM_INLINE void move_carries(char* state) {
    int64_t carry = 0;
    for (int i = 1; i < kLimbs; ++i) {
      const uint64_t limb = load(state + 8 * i) + static_cast<uint64_t>(carry);
      store(state + 8 * i, limb & kDigitMask);
      carry = static_cast<int64_t>(limb) >> kLimbBits;
    }
    add(state + 8 * kLimbs, static_cast<uint64_t>(carry));
  }
};

template <class T>
class ExactSum<Complex<T>> {
  using Part = ExactSum<T>;

 public:
  using Stored = Complex<T>;
  static constexpr int64_t kBytes = 2 * Part::kBytes;

  static GATHERUM_INLINE void add_term(char* state, Stored v) {
    Part::add_term(state, v.re);
    Part::add_term(state + Part::kBytes, v.im);
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

}  // namespace gatherum::GATHERUM_LEVEL
