// Sums of floats without rounding, whatever their order, with the bits of src/core/fold/exact/exact_limbs.hpp.
//
//   N = sum over limbs i of limb[i] * 2^(32 (i - 1)),   sum of the terms = N * (smallest subnormal)
//   take(v)    limb[p / 32 + 1] += m << p % 32, by two words of 32 bits,   v = m * 2^p * (smallest subnormal)
//   finish     N, or N / count, rounded once, to nearest even
//
// A limb is a signed word with 32 bits of its own; carries pile up in the others and move on (`carry`) before
// they could fill them. Limb 0 is behind the point: a division leaves bits there. NaN, infinities and the
// signs of zeros are flags. Limbs [low, high) are in use, and the others hold anything: terms of similar size
// touch few words of the thread's stack. Integers alone: no rounding mode and no fused operation changes a
// bit.
//
// Complex numbers are two sums, and two items of a row. Cost: a term takes two additions in local memory;
// a finish takes what is in use, and a division 192 steps.
#pragma once

#include "arithmetic.cuh"
#include "sorted.cuh"

namespace gatherum {

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
  static constexpr int kM = FloatForm<V>::kSignificand, kE = FloatForm<V>::kExponent;
  static constexpr int64 kLow = 0xFFFFFFFF, kOver = int64{1} << 32;
  // One limb behind the point, those of the largest number, and two for the carries of 2^62 terms.
  static constexpr int kLimbs = 1 + ((1 << kE) - 3 + kM + 31) / 32 + 2;
  // After so many terms carries move on: below 2^63 in a limb until then.
  static constexpr uint32 kTerms = uint32{1} << (kM - 1 > 32 ? 62 - (kM - 1) : 30);

  static constexpr uint64 kHidden = uint64{1} << (kM - 1), kSign = kHidden << kE;
  static constexpr uint64 kInfinity = kSign - kHidden, kQuiet = kInfinity | kHidden >> 1;

  static constexpr uint32 kMinusZero = 1, kOther = 2;  // a term was -0; a finite one was not
  static constexpr uint32 kNaN = 4, kPlusInfinity = 8, kMinusInfinity = 16;

 public:
  using Bits = typename Word<sizeof(typename StoredAs<V>::Type)>::Type;

  // What the threads of a group add their sums to.
  struct Shared {
    uint64 limb[kLimbs];
    uint32 flags;
  };

  __device__ __forceinline__ void take(Bits bits) {
    const uint64 magnitude = bits & (kSign - 1);
    const bool negative = magnitude != bits;
    if (magnitude >= kInfinity) {
      flags_ |= magnitude > kInfinity ? kNaN : negative ? kMinusInfinity : kPlusInfinity;
      return;
    }
    flags_ |= bits == kSign ? kMinusZero : kOther;
    if (magnitude == 0) return;
    const uint64 exponent = magnitude >> (kM - 1), normal = exponent != 0 ? 1 : 0;
    const uint64 m = (magnitude & (kHidden - 1)) | normal << (kM - 1);
    const int p = static_cast<int>(exponent - normal), i = p / 32 + 1, shift = p % 32;
    use(i, i + 2);
    const int64 low = static_cast<int64>(m << shift) & kLow, high = static_cast<int64>(m >> (32 - shift));
    limb_[i] += negative ? -low : low;
    limb_[i + 1] += negative ? -high : high;
    if (++terms_ == kTerms) carry();
  }

  // Adds this sum to one that others add theirs to: at most 2^20 of them. It starts at zeros.
  __device__ void add_to(Shared& shared) {
    carry();
    for (int i = low_; i < high_; ++i)
      if (limb_[i] != 0) atomicAdd(&shared.limb[i], static_cast<uint64>(limb_[i]));
    if (flags_ != 0) atomicOr(&shared.flags, flags_);
  }

  __device__ void read(const Shared& shared) {
    low_ = 1;
    high_ = kLimbs;
    for (int i = low_; i < high_; ++i) limb_[i] = static_cast<int64>(shared.limb[i]);
    flags_ = shared.flags;
  }

  // The sum over the count. It is of no use afterwards.
  __device__ __noinline__ Bits finish(uint64 count) {
    const bool infinite = (flags_ & (kPlusInfinity | kMinusInfinity)) != 0;
    const bool both = (flags_ & kPlusInfinity) != 0 && (flags_ & kMinusInfinity) != 0;
    if ((flags_ & kNaN) != 0 || both) return static_cast<Bits>(kQuiet);
    if (infinite) return static_cast<Bits>((flags_ & kPlusInfinity) != 0 ? kInfinity : kSign | kInfinity);
    if ((flags_ & kOther) == 0) return static_cast<Bits>(kSign);
    carry();
    const bool negative = high_ > 0 && limb_[high_ - 1] < 0;
    if (negative) {
      for (int i = low_; i < high_; ++i) limb_[i] = -limb_[i];
      carry();
    }
    trim();
    if (high_ == low_) return 0;  // from other terms than -0
    const bool rest = count > 1 && divide(count);
    return static_cast<Bits>((negative ? kSign : 0) | rounded(rest));
  }

 private:
  // Makes limbs [first, last) those that are in use, too.
  __device__ __forceinline__ void use(int first, int last) {
    if (high_ == 0) low_ = high_ = first;
    while (low_ > first) limb_[--low_] = 0;
    while (high_ < last) limb_[high_++] = 0;
  }

  // Leaves 32 bits in every limb, and 33 with the sign in the highest.
  __device__ __noinline__ void carry() {
    terms_ = 0;
    if (high_ == 0) return;
    int64 moved = 0;
    for (int i = low_; i < high_ - 1; ++i) {
      const int64 sum = limb_[i] + moved;
      limb_[i] = sum & kLow;
      moved = sum >> 32;
    }
    for (limb_[high_ - 1] += moved; high_ < kLimbs; ++high_) {
      const int64 top = limb_[high_ - 1];
      if (top >= -kOver && top < kOver) break;
      limb_[high_ - 1] = top & kLow;
      limb_[high_] = top >> 32;
    }
  }

  __device__ __forceinline__ void trim() {
    while (high_ > low_ && limb_[high_ - 1] == 0) --high_;
  }

  // Divides digits, all of 32 bits. Returns whether it leaves a remainder; what does not reach the six
  // highest digits is remainder as well: two of them may be 0, and four have more bits than are kept.
  __device__ bool divide(uint64 count) {
    const int top = high_ - 1, bottom = top > 5 ? top - 5 : 0;
    bool more = false;
    for (; low_ < bottom; ++low_) more |= limb_[low_] != 0;
    use(bottom, high_);
    uint64 rest = 0;
    for (int i = top; i >= bottom; --i) {
      uint64 digit = static_cast<uint64>(limb_[i]) << 32;
      for (int bit = 0; bit < 32; ++bit) {  // a bit leaves at the top, one of the quotient comes below
        rest = rest << 1 | digit >> 63;
        const bool one = rest >= count;
        rest -= one ? count : 0;
        digit = digit << 1 | (one ? 1 : 0);
      }
      limb_[i] = static_cast<int64>(digit);
    }
    trim();
    return more || rest != 0;
  }

  __device__ __forceinline__ uint64 digit(int i) const {
    return i >= low_ ? static_cast<uint64>(limb_[i]) : 0;
  }

  // The bits of the nearest magnitude, the even one of two. `rest`: what is not 0 follows the digits.
  __device__ uint64 rounded(bool rest) const {
    if (high_ == low_) return 0;
    const int top = high_ - 1, zeros = __clz(static_cast<int>(limb_[top]));
    // The highest 64 bits from the first one on, and whether any follow.
    const uint64 third = digit(top - 2) << zeros;
    const uint64 head = (digit(top) << 32 | digit(top - 1)) << zeros | third >> 32;
    bool more = rest || static_cast<uint32>(third) != 0;
    for (int i = low_; i < top - 2; ++i) more |= limb_[i] != 0;
    // The last bit that is kept is worth the smallest subnormal, or more where there are kM bits above it.
    const int first = 32 * top + 31 - zeros;
    const int last = first - (kM - 1) > 32 ? first - (kM - 1) : 32, dropped = last - (first - 63);
    if (dropped > 64) return 0;
    const uint64 kept = dropped == 64 ? 0 : head >> dropped;
    const uint64 below = head << (64 - dropped), half = uint64{1} << 63;
    const bool up = below > half || (below == half && (more || (kept & 1) != 0));
    const uint64 bits = (static_cast<uint64>(last - 32) << (kM - 1)) + kept + (up ? 1 : 0);
    return bits < kInfinity ? bits : kInfinity;
  }

  int64 limb_[kLimbs];
  int low_ = 0, high_ = 0;
  uint32 terms_ = 0, flags_ = 0;
};

using Sum = ExactSum<VALUE>;

__device__ __forceinline__ Sum::Bits load_item(const char* at) { return load<Sum::Bits, VALUE_ALIGN>(at); }

// The item of entry j, `place` bytes into its row.
__device__ __forceinline__ Sum::Bits update_of(const Sorted& sorted, const char* other, Offset j,
                                               Offset place) {
#if CARRIED != 0
  (void)other;
  return static_cast<Sum::Bits>(sorted.payload[j] >> 8 * place);  // of a complex number one part
#else
  return load_item(other + sorted.update(j) + place);
#endif
}

// Stores the sum of `entries` updates, and of the old value if it takes part.
__device__ __forceinline__ void finish(char* at, Sum& sum, Offset entries, bool self) {
  if (self) sum.take(load_item(at));
  const uint64 count = static_cast<uint64>(entries) + (self ? 1 : 0);
  store<Sum::Bits, VALUE_ALIGN>(at, sum.finish(kDivides<Reduction::REDUCTION> ? count : 1));
}

}  // namespace gatherum
