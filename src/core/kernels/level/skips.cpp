// Compiled once for each instruction-set level, like slabs.cpp. This translation unit implements scatters
// into slabs that skip NaN.
#include "kernels/dispatch.hpp"
#include "kernels/scatter_slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

template <class F>
struct SkipInItems;

}  // namespace

template <class F>
inline constexpr bool kSkipsNaN<SkipInItems<F>> = true;

namespace {

// Folds single items. A sum that is NaN stays NaN, so it becomes canonical at the end. Branches are faster
// for maxima and minima of items (combine.hpp).
template <class F>
struct SkipInItems : SkipNaN<F> {
  using typename F::Stored;
  using typename F::Sum;
  static constexpr bool kAdds = F::kNeutral == Neutral::zero;

  template <class>
  static GATHERUM_INLINE Sum fold(Sum a, Sum b) {
    if constexpr (kAdds)
      return a + b;
    else
      return F::template fold<Branched>(a, b);
  }
  template <class Rare>
  static GATHERUM_INLINE Stored finish(Sum a, int64_t count, bool folded) {
    return F::template finish<Rare>(Selected::canonical(a), count, folded);
  }
};

template <class F>
inline constexpr bool kHasSlabs = false;
template <class V, Reduction R>
inline constexpr bool kHasSlabs<Fold<V, R>> = has_skipping_slabs({R, kValueOf<V>, false});

// Calls f with the fold of a call for which has_skipping_slabs() is true. If `finishes` is false, f is called
// with the fold of means for sums, too, because the slabs of both are the same until they are written.
template <class T, bool finishes, class F>
auto by_skipping(Reduction r, const F& f) {
  using Result = decltype(f(SkipInItems<Fold<T, Reduction::mean>>{}));
  if (!finishes && r == Reduction::add) r = Reduction::mean;
  return by_reduction<T, true>(r, [&](auto fold) -> Result {
    using FoldType = decltype(fold);
    constexpr bool is_sum = std::is_same_v<FoldType, Fold<T, Reduction::add>>;
    if constexpr (kHasSlabs<FoldType> && (finishes || !is_sum))
      return f(SkipInItems<FoldType>{});
    else
      impossible();
  });
}
template <bool finishes, class F>
auto by_skipping(const FoldRule& fold_rule, const F& f) {
  return fold_rule.value == Value::float32 ? by_skipping<float, finishes>(fold_rule.reduction, f)
                                           : by_skipping<double, finishes>(fold_rule.reduction, f);
}

}  // namespace

int64_t skipping_bytes(const FoldRule& fold_rule, int64_t slots) {
  return by_skipping<true>(fold_rule, [&](auto fold) { return Slab<decltype(fold), true>::bytes(slots); });
}

bool skipping_take(const SlabScatter& call, const Operands& operands, int64_t task, char* scratch) {
  return by_skipping<false>(call.fold_rule, [&](auto fold) {
    return GATHERUM_LEVEL::slab_take<decltype(fold), true>(call, operands, task, scratch);
  });
}

void skipping_write(const SlabScatter& call, const Operands& operands, int64_t task, char* scratch) {
  by_skipping<true>(call.fold_rule, [&](auto fold) {
    GATHERUM_LEVEL::slab_write<decltype(fold), true>(call, operands, task, scratch);
  });
}

}  // namespace gatherum::GATHERUM_LEVEL
