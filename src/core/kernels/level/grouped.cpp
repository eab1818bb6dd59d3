// Compiled once for each instruction-set level, like movement.cpp. This translation unit implements
// reductions of groups, and scatters in batches.
#include "kernels/accumulate.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/scatter_grouped.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

int64_t sort_updates(const GroupedScatter& call, const Operands& operands, int64_t unit, char* scratch) {
  return SortedGroups(call, scratch).sort(operands.index, unit);
}

// Returns the function that folds a part of a row and skips NaN.
FoldGroups::FoldPart function_skipping_nan(const FoldRule& fold_rule) {
  if (fold_rule.reduction != Reduction::none && !row_of(fold_rule.reduction).exact)
    return by_numbers(
        fold_rule, [](auto fold) { return FoldGroups::FoldPart{&FoldGroups::fold_numbers<decltype(fold)>}; });
  return by_type(fold_rule.value, [&](auto type) -> FoldGroups::FoldPart {
    using V = typename decltype(type)::type;
    if constexpr (std::is_floating_point_v<V> || kIsHalf<V>) {
      if (fold_rule.reduction == Reduction::none) return &FoldGroups::copy_last_numbers<V>;
      if (fold_rule.reduction == Reduction::fsum)
        return &FoldGroups::fold_exact_numbers<Fold<V, Reduction::fsum>>;
      return &FoldGroups::fold_exact_numbers<Fold<V, Reduction::fmean>>;
    } else {
      impossible();
    }
  });
}

void fold_groups(const GroupedScatter& call, const Operands& operands, const GroupShare& share) {
  const FloatMode mode;
  const auto fold_part_of = [](auto fold) {
    return FoldGroups::FoldPart{&FoldGroups::fold_part<decltype(fold)>};
  };
  const FoldRule& fold_rule = call.fold_rule;
  const auto fold_part = fold_rule.skips_nan
                             ? function_skipping_nan(fold_rule)
                             : by_value<true>(fold_rule.value, fold_rule.reduction, fold_part_of);
  each_group(call, share, FoldGroups(call, operands, share.unit, fold_part));
}

template <class Apply>
bool accumulate_with(const Nest& nest, int unit_loops, const Operands& operands, const Range& range,
                     const DestinationRange& owned, const Apply& apply) {
  return scatter_tiles(nest, unit_loops, operands, range, owned,
                       AccumulateTiles<Apply>{nest, operands, apply});
}

bool accumulate(const Nest& nest, int unit_loops, const Operands& operands, const Range& range,
                const FoldRule& fold_rule, const Accumulators& to, const DestinationRange& owned) {
  if (fold_rule.reduction == Reduction::none)
    return by_width(nest.block, [&](auto width) {
      const AccumulateMoved<decltype(width)::value> moved(to, nest.item, nest.block);
      return accumulate_with(nest, unit_loops, operands, range, owned, moved);
    });
  const FloatMode mode;
  return by_value<true>(fold_rule.value, fold_rule.reduction, [&](auto fold) {
    const Accumulate<decltype(fold)> folded(to, fold_rule, nest.block);
    return accumulate_with(nest, unit_loops, operands, range, owned, folded);
  });
}

void begin_sums(const FoldRule& fold_rule, const char* data, char* sums, int64_t n) {
  const FloatMode mode;
  by_value<true>(fold_rule.value, fold_rule.reduction, [&](auto fold) {
    if constexpr (!kIsExact<decltype(fold)>) GATHERUM_LEVEL::begin_sums<decltype(fold)>(data, sums, n);
  });
}

void finish_sums(const FoldRule& fold_rule, const FinishCall& f) {
  const FloatMode mode;
  by_value<true>(fold_rule.value, fold_rule.reduction,
                 [&](auto fold) { GATHERUM_LEVEL::finish_sums<decltype(fold)>(f, fold_rule.include_self); });
}

void merge_sums(const FoldRule& fold_rule, const MergeCall& m) {
  const FloatMode mode;
  by_value<true>(fold_rule.value, fold_rule.reduction, [&](auto fold) {
    if constexpr (decltype(fold)::kAnyOrderOfFirsts) GATHERUM_LEVEL::merge_sums<decltype(fold)>(m);
  });
}

}  // namespace

void add_grouped_kernels(Kernels& all) {
  all.grouped_bytes = grouped_bytes;
  all.sort_updates = sort_updates;
  all.fold_groups = fold_groups;
  all.accumulate = accumulate;
  all.begin_sums = begin_sums;
  all.finish_sums = finish_sums;
  all.merge_sums = merge_sums;
}

}  // namespace gatherum::GATHERUM_LEVEL
