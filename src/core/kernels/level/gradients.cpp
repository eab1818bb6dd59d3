// Compiled once for each instruction-set level, like movement.cpp. This translation unit implements gradients
// and argmax/argmin of groups.
#include "kernels/dispatch.hpp"
#include "kernels/scatter_extremes.hpp"
#include "kernels/scatter_gradients.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

using DifferentiatePart = GroupGradients::DifferentiatePart;

template <class V, int64_t kCapacity, Gradient gradient>
DifferentiatePart function_for() {
  if constexpr ((kinds_of(gradient) & kind_of(kValueOf<V>)) == 0)
    impossible();
  else if constexpr (gradient == Gradient::product)
    return &GroupGradients::differentiate_product<V, kCapacity>;
  else if constexpr (gradient == Gradient::extreme)
    return &GroupGradients::differentiate_extreme<V, kCapacity>;
  else
    static_assert(!kIsUnhandled<gradient>, "function_for: gradients that no kernel computes");
}

template <class V, int64_t kCapacity>
DifferentiatePart function_of(Gradient gradient) {
  switch (gradient) {
    case Gradient::none:
      break;
    case Gradient::product:
      return function_for<V, kCapacity, Gradient::product>();
    case Gradient::extreme:
      return function_for<V, kCapacity, Gradient::extreme>();
  }
  impossible();
}

template <int64_t kCapacity>
DifferentiatePart function_of(const FoldRule& fold_rule) {
  return by_type(fold_rule.value,
                 [gradient = row_of(fold_rule.reduction).gradient](auto type) -> DifferentiatePart {
                   return function_of<typename decltype(type)::type, kCapacity>(gradient);
                 });
}

void group_gradients(const GroupedScatter& call, const Gradients& gradients, const GroupShare& share) {
  const FloatMode mode;
  const bool items = call.nest->block == call.nest->item;
  const DifferentiatePart differentiate =
      items ? function_of<1>(call.fold_rule) : function_of<kStackItems>(call.fold_rule);
  each_group(call, share, GroupGradients(call, gradients, share.unit, differentiate));
}

// The counting sort stores update numbers in 32 bits. With 64-bit keys, update numbers also have 64 bits.
template <int64_t kCapacity>
GroupExtremes::FindPart function_of(const FoldRule& fold_rule, bool counted) {
  const bool skips = fold_rule.skips_nan;
  return by_value<false>(fold_rule.value, fold_rule.reduction, [=](auto fold) -> GroupExtremes::FindPart {
    using F = decltype(fold);
    if constexpr (kHasKeys<F>) {
      using Narrow = std::make_unsigned_t<typename OrderKeys<F>::Key>;
      if constexpr (OrderKeys<F>::kHasNaN)
        if (skips)
          return counted ? &GroupExtremes::find_part<F, kCapacity, Narrow, true>
                         : &GroupExtremes::find_part<F, kCapacity, uint64_t, true>;
      return counted ? &GroupExtremes::find_part<F, kCapacity, Narrow>
                     : &GroupExtremes::find_part<F, kCapacity, uint64_t>;
    } else {
      impossible();
    }
  });
}

void group_extremes(const GroupedScatter& call, const Extremes& extremes, const GroupShare& share) {
  const bool items = call.nest->block == call.nest->item;
  const GroupExtremes::FindPart find_part = items ? function_of<1>(call.fold_rule, call.counted)
                                                  : function_of<kStackItems>(call.fold_rule, call.counted);
  each_group(call, share, GroupExtremes(call, extremes, share.unit, find_part));
}

}  // namespace

void add_gradient_kernels(Kernels& all) {
  all.group_gradients = group_gradients;
  all.group_extremes = group_extremes;
}

}  // namespace gatherum::GATHERUM_LEVEL
