// Folds that skip NaN: updates that are NaN change nothing.
//
// Every accumulator starts from the neutral element of its fold, and a NaN is folded as the neutral element,
// so each step needs no branch. If numbers are folded, an accumulator is bit-for-bit equal to a fold that
// starts from the first number, because -0 + x, 1 * x, and the maximum of -infinity and x are x. Callers
// count the values that are not NaN, because a destination without such values keeps its old value.
#pragma once

#include "fold/combine.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class V>
GATHERUM_INLINE bool is_number(typename StoredAs<V>::Type v) {
  if constexpr (kIsHalf<V>)
    return (v & 0x7FFF) <= BinaryFormatOf<V>::kInfinity;
  else
    return v == v;
}

template <class F>
inline constexpr bool kSkipsNaN = false;
template <class F>
struct SkipNaN;
template <class F>
inline constexpr bool kSkipsNaN<SkipNaN<F>> = true;

template <class V, Reduction R>
  requires(can_skip_nan({R, kValueOf<V>, false}))
struct SkipNaN<Fold<V, R>> : Fold<V, R> {
  using typename Fold<V, R>::Stored;
  using typename Fold<V, R>::Sum;
  // An unsigned integer of the size of an accumulator.
  using Word = std::conditional_t<sizeof(Sum) == 2, uint16_t, Bits<Sum>>;

  // Returns the update as an accumulator, or the neutral element for a NaN.
  template <class Rare>
  static GATHERUM_INLINE Sum number_of(Stored v) {
    const Sum widened = Fold<V, R>::template widen<Rare>(v);
    return std::bit_cast<Sum>(
        select(is_number<V>(v), std::bit_cast<Word>(widened), std::bit_cast<Word>(Fold<V, R>::neutral())));
  }
};

}  // namespace gatherum::GATHERUM_LEVEL
