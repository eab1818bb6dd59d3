// Maps values to integer keys, so that the greatest key belongs to the maximum or minimum.
//
//   key(v) = bits(v) as a signed integer, with all bits but the sign inverted if it is negative
//   of a minimum: ~key(v);   of NaN: the greatest key there is
//
// -0 is therefore less than +0, and a NaN is greater than all other values. A key converts back to its value,
// except that every NaN becomes the canonical NaN. Integer comparisons have no rare cases, and the order of
// folding does not matter. Integers and booleans have keys as well. The least key is unused, unless values
// and keys are integers of the same size.
#pragma once

#include "fold/combine.hpp"

namespace gatherum::GATHERUM_LEVEL {

// True for maxima and minima, which have keys.
template <class F>
inline constexpr bool kHasKeys = false;
template <class V, Reduction R>
  requires(R == Reduction::max || R == Reduction::min)
inline constexpr bool kHasKeys<Fold<V, R>> = true;

template <class F>
struct OrderKeys;

template <class V, Reduction R>
struct OrderKeys<Fold<V, R>> {
  static_assert(R == Reduction::max || R == Reduction::min);
  using Stored = typename Fold<V, R>::Stored;
  using Key = std::conditional_t<sizeof(Stored) == 8, int64_t, int32_t>;
  static constexpr bool kHasNaN = std::is_floating_point_v<V> || kIsHalf<V>;

  // The least key, and whether it is unused. (For booleans it counts as used: its key cannot restore a true
  // byte other than 1.)
  static constexpr Key kNone = std::numeric_limits<Key>::min();
  static constexpr bool kHasNone = kHasNaN || (sizeof(Stored) < sizeof(Key) && !std::is_same_v<V, Boolean>);

  static GATHERUM_INLINE Key key_of(Stored v) {
    const Bits bits = std::bit_cast<Bits>(v);
    const Key key = reorder(bits);
    const Key chosen = R == Reduction::max ? key : ~key;
    if constexpr (kHasNaN) return (bits & kMagnitudeMask) > kInfinity ? kNaN : chosen;
    return chosen;
  }

  // Returns a key for a quiet NaN of either sign that is the only update so far. The key is less than the
  // keys of all values, so the bits of the NaN are kept if no update follows. Returns kNone for a NaN with
  // other bits.
  static Key key_of_lone_nan(Stored v) {
    const Bits bits = std::bit_cast<Bits>(v);
    if (bits == kQuietNaN) return kNone + 1;
    return bits == (kQuietNaN | std::numeric_limits<Bits>::min()) ? kNone + 2 : kNone;
  }
  static bool is_lone_nan(Key key) { return key == kNone + 1 || key == kNone + 2; }
  static Stored lone_nan_of(Key key) {
    return std::bit_cast<Stored>(
        static_cast<Bits>(key == kNone + 1 ? kQuietNaN : kQuietNaN | std::numeric_limits<Bits>::min()));
  }

  // Returns the value of a key. For the key of NaN, this is the canonical NaN.
  static GATHERUM_INLINE Stored value_of(Key key) {
    const auto bits = static_cast<Bits>(reorder(static_cast<Bits>(R == Reduction::max ? key : ~key)));
    if constexpr (kHasNaN) return std::bit_cast<Stored>(key == kNaN ? kQuietNaN : bits);
    return std::bit_cast<Stored>(bits);
  }

  // Maps keys of equal values to one key. Zeros of either sign are equal; -1 is the lesser of their two keys
  // for both reductions. All NaN are equal.
  static GATHERUM_INLINE Key key_of_equals(Key key) {
    if constexpr (kHasNaN) return key + static_cast<Key>(key == -1);
    return key;
  }

 private:
  using Bits = std::make_signed_t<
      std::conditional_t<sizeof(Stored) == 8, uint64_t,
                         std::conditional_t<sizeof(Stored) == 4, uint32_t,
                                            std::conditional_t<sizeof(Stored) == 2, uint16_t, uint8_t>>>>;
  static constexpr Bits kMagnitudeMask = std::numeric_limits<Bits>::max();
  static constexpr Key kNaN = std::numeric_limits<Key>::max();
  using Format =
      std::conditional_t<kHasNaN, BinaryFormatOf<V>, BinaryFormat<2, 2>>;  // not used for other types
  static constexpr auto kInfinity = static_cast<Bits>(Format::kInfinity),
                        kQuietNaN = static_cast<Bits>(Format::kQuietNaN);

  // Converts between bit patterns and integers that are ordered as the values are. The function is its own
  // inverse.
  static GATHERUM_INLINE Key reorder(Bits bits) {
    if constexpr (kHasNaN) return static_cast<Key>(bits ^ (bits >> (8 * sizeof(Bits) - 1) & kMagnitudeMask));
    if constexpr (std::is_same_v<V, Boolean>) return static_cast<Key>(bits != 0);
    if constexpr (std::is_signed_v<V>) return static_cast<Key>(bits);
    if constexpr (sizeof(Bits) < sizeof(Key))
      return static_cast<Key>(static_cast<std::make_unsigned_t<Bits>>(bits));
    return static_cast<Key>(bits ^ std::numeric_limits<Bits>::min());
  }
};

// Returns true if a fold has keys of which one is unused.
template <class F>
constexpr bool has_spare_key() {
  if constexpr (kHasKeys<F>)
    return OrderKeys<F>::kHasNone;
  else
    return false;
}

}  // namespace gatherum::GATHERUM_LEVEL
