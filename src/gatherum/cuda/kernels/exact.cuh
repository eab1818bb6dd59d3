// Exact float sums in any order, bit-for-bit equal to src/core/fold/exact/exact_limbs.hpp.
//
//   N = sum over limbs i of limb[i] * 2^(32 (i - 1)),   sum of the terms = N * (smallest subnormal)
//   add_term(v)   limb[p / 32 + 1] += m << p % 32, by two words of 32 bits, for v = m * 2^p * (smallest
//                 subnormal)
//   finish        N, or N / count, rounded once, to nearest, ties to even
//
// A limb is a signed word whose low 32 bits are its digit. Carries accumulate in the high bits, and `carry`
// propagates them before they overflow. Limb 0 is the fraction, which a division fills. NaN, infinities and
// the signs of zeros are flags. Only limbs [low, high) are in use; the other limbs are uninitialized. So
// adding terms of similar size accesses few words of the thread's stack. All operations are on integers, so
// rounding modes and fused operations cannot change the result.
//
// A complex sum consists of two sums, one for each part; the parts are two items of a row. Cost: two
// additions in local memory per term; `finish` reads the limbs in use; a division takes 192 steps.
#pragma once

#include "arithmetic.cuh"
#include "sorted.cuh"

namespace gatherum {

template <class V>
struct BinaryFormatOf;
template <>
struct BinaryFormatOf<Half> {
  static constexpr int kSignificandBits = 11, kExponentBits = 5;
};
template <>
struct BinaryFormatOf<Bfloat16> {
  static constexpr int kSignificandBits = 8, kExponentBits = 8;
};
template <>
struct BinaryFormatOf<float> {
  static constexpr int kSignificandBits = 24, kExponentBits = 8;
};
template <>
struct BinaryFormatOf<double> {
  static constexpr int kSignificandBits = 53, kExponentBits = 11;
};

template <class V>
class ExactSum {
  static constexpr int kSignificandBits = BinaryFormatOf<V>::kSignificandBits;
  static constexpr int kExponentBits = BinaryFormatOf<V>::kExponentBits;
  static constexpr int64 kDigitMask = 0xFFFFFFFF, kDigitValues = int64{1} << 32;
  // One fraction limb, the limbs of the largest number, and two for the carries of 2^62 terms.
  static constexpr int kLimbs = 1 + ((1 << kExponentBits) - 3 + kSignificandBits + 31) / 32 + 2;
  // Number of terms between carries, which keeps a limb below 2^63.
  static constexpr uint32 kTermsPerCarry = uint32{1}
                                           << (kSignificandBits - 1 > 32 ? 62 - (kSignificandBits - 1) : 30);

  static constexpr uint64 kHiddenBit = uint64{1} << (kSignificandBits - 1);
  static constexpr uint64 kSignBit = kHiddenBit << kExponentBits;
  static constexpr uint64 kInfinity = kSignBit - kHiddenBit, kQuietNaN = kInfinity | kHiddenBit >> 1;

  static constexpr uint32 kMinusZero = 1, kOtherFinite = 2;  // some term was -0; some other term was finite
  static constexpr uint32 kNaN = 4, kPlusInfinity = 8, kMinusInfinity = 16;

 public:
  using Bits = typename Word<sizeof(typename StoredAs<V>::Type)>::Type;

  // The sum that the threads of a group share.
  struct Shared {
    uint64 limb[kLimbs];
    uint32 flags;
  };

  __device__ __forceinline__ void add_term(Bits bits) {
    const uint64 magnitude = bits & (kSignBit - 1);
    const bool negative = magnitude != bits;
    if (magnitude >= kInfinity) {
      flags_ |= magnitude > kInfinity ? kNaN : negative ? kMinusInfinity : kPlusInfinity;
      return;
    }
    flags_ |= bits == kSignBit ? kMinusZero : kOtherFinite;
    if (magnitude == 0) return;
    const uint64 exponent = magnitude >> (kSignificandBits - 1), normal = exponent != 0 ? 1 : 0;
    const uint64 m = (magnitude & (kHiddenBit - 1)) | normal << (kSignificandBits - 1);
    const int p = static_cast<int>(exponent - normal), i = p / 32 + 1, shift = p % 32;
    extend(i, i + 2);
    const int64 low = static_cast<int64>(m << shift) & kDigitMask;
    const int64 high = static_cast<int64>(m >> (32 - shift));
    limb_[i] += negative ? -low : low;
    limb_[i + 1] += negative ? -high : high;
    if (++terms_ == kTermsPerCarry) carry();
  }

  // Adds this sum to a shared sum, which starts at zero and may receive at most 2^20 sums.
  __device__ void add_to(Shared& shared) {
    carry();
    for (int i = low_; i < high_; ++i)
      if (limb_[i] != 0) atomicAdd(&shared.limb[i], static_cast<uint64>(limb_[i]));
    if (flags_ != 0) atomicOr(&shared.flags, flags_);
  }

  __device__ void copy_from(const Shared& shared) {
    low_ = 1;
    high_ = kLimbs;
    for (int i = low_; i < high_; ++i) limb_[i] = static_cast<int64>(shared.limb[i]);
    flags_ = shared.flags;
  }

  // Returns the sum divided by the count. Leaves the object unusable.
  __device__ __noinline__ Bits finish(uint64 count) {
    const bool infinite = (flags_ & (kPlusInfinity | kMinusInfinity)) != 0;
    const bool both = (flags_ & kPlusInfinity) != 0 && (flags_ & kMinusInfinity) != 0;
    if ((flags_ & kNaN) != 0 || both) return static_cast<Bits>(kQuietNaN);
    if (infinite) return static_cast<Bits>((flags_ & kPlusInfinity) != 0 ? kInfinity : kSignBit | kInfinity);
    if ((flags_ & kOtherFinite) == 0) return static_cast<Bits>(kSignBit);
    carry();
    const bool negative = high_ > 0 && limb_[high_ - 1] < 0;
    if (negative) {
      for (int i = low_; i < high_; ++i) limb_[i] = -limb_[i];
      carry();
    }
    trim();
    if (high_ == low_) return 0;  // the terms are not all -0
    const bool has_remainder = count > 1 && divide(count);
    return static_cast<Bits>((negative ? kSignBit : 0) | rounded(has_remainder));
  }

 private:
  // Extends the limbs in use to include limbs [first, last).
  __device__ __forceinline__ void extend(int first, int last) {
    if (high_ == 0) low_ = high_ = first;
    while (low_ > first) limb_[--low_] = 0;
    while (high_ < last) limb_[high_++] = 0;
  }

  // Leaves 32 bits in every limb, but 33 bits, including the sign, in the highest limb.
  __device__ __noinline__ void carry() {
    terms_ = 0;
    if (high_ == 0) return;
    int64 carried = 0;
    for (int i = low_; i < high_ - 1; ++i) {
      const int64 sum = limb_[i] + carried;
      limb_[i] = sum & kDigitMask;
      carried = sum >> 32;
    }
    for (limb_[high_ - 1] += carried; high_ < kLimbs; ++high_) {
      const int64 top = limb_[high_ - 1];
      if (top >= -kDigitValues && top < kDigitValues) break;
      limb_[high_ - 1] = top & kDigitMask;
      limb_[high_] = top >> 32;
    }
  }

  __device__ __forceinline__ void trim() {
    while (high_ > low_ && limb_[high_ - 1] == 0) --high_;
  }

  // Divides the digits, each of 32 bits. Returns whether there is a remainder. Digits below the six highest
  // count as remainder: two of the six may be 0, and the other four have more bits than the result.
  __device__ bool divide(uint64 count) {
    const int top = high_ - 1, bottom = top > 5 ? top - 5 : 0;
    bool more = false;
    for (; low_ < bottom; ++low_) more |= limb_[low_] != 0;
    extend(bottom, high_);
    uint64 remainder = 0;
    for (int i = top; i >= bottom; --i) {
      uint64 digit = static_cast<uint64>(limb_[i]) << 32;
      for (int bit = 0; bit < 32; ++bit) {  // a dividend bit leaves at the top, a quotient bit enters below
        remainder = remainder << 1 | digit >> 63;
        const bool one = remainder >= count;
        remainder -= one ? count : 0;
        digit = digit << 1 | (one ? 1 : 0);
      }
      limb_[i] = static_cast<int64>(digit);
    }
    trim();
    return more || remainder != 0;
  }

  __device__ __forceinline__ uint64 digit(int i) const {
    return i >= low_ ? static_cast<uint64>(limb_[i]) : 0;
  }

  // Returns the bits of the nearest magnitude, ties to even. `has_remainder` tells whether nonzero bits
  // follow the digits.
  __device__ uint64 rounded(bool has_remainder) const {
    if (high_ == low_) return 0;
    const int top = high_ - 1, zeros = __clz(static_cast<int>(limb_[top]));
    // The highest 64 bits from the first nonzero bit on, and whether nonzero bits follow.
    const uint64 third = digit(top - 2) << zeros;
    const uint64 head = (digit(top) << 32 | digit(top - 1)) << zeros | third >> 32;
    bool more = has_remainder || static_cast<uint32>(third) != 0;
    for (int i = low_; i < top - 2; ++i) more |= limb_[i] != 0;
    // The last bit that is kept: that of the smallest subnormal, or a higher bit, so that at most
    // kSignificandBits bits are kept.
    const int first = 32 * top + 31 - zeros;
    const int last = first - (kSignificandBits - 1) > 32 ? first - (kSignificandBits - 1) : 32,
              dropped = last - (first - 63);
    if (dropped > 64) return 0;
    const uint64 kept = dropped == 64 ? 0 : head >> dropped;
    const uint64 below = head << (64 - dropped), half = uint64{1} << 63;
    const bool up = below > half || (below == half && (more || (kept & 1) != 0));
    const uint64 bits = (static_cast<uint64>(last - 32) << (kSignificandBits - 1)) + kept + (up ? 1 : 0);
    return bits < kInfinity ? bits : kInfinity;
  }

  int64 limb_[kLimbs];
  int low_ = 0, high_ = 0;
  uint32 terms_ = 0, flags_ = 0;
};

using Sum = ExactSum<VALUE>;

__device__ __forceinline__ Sum::Bits load_item(const char* address) {
  return load<Sum::Bits, VALUE_ALIGN>(address);
}

// Returns the item of entry j at byte `offset` of its row.
__device__ __forceinline__ Sum::Bits update_of(const Sorted& sorted, const char* moved, Offset j,
                                               Offset offset) {
#if CARRIED_BYTES != 0
  (void)moved;
  return static_cast<Sum::Bits>(sorted.payload[j] >> 8 * offset);  // the real or the imaginary part
#else
  return load_item(moved + sorted.update_offset(j) + offset);
#endif
}

// Stores the sum of `entries` updates, plus the old value if `include_self`.
__device__ __forceinline__ void finish(char* address, Sum& sum, Offset entries, bool include_self) {
  if (include_self) sum.add_term(load_item(address));
  const uint64 count = static_cast<uint64>(entries) + (include_self ? 1 : 0);
  store<Sum::Bits, VALUE_ALIGN>(address, sum.finish(kDivides<Reduction::REDUCTION> ? count : 1));
}

}  // namespace gatherum
