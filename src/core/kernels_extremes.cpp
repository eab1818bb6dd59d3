// The kernels, compiled once for each instruction-set level, like kernels.cpp. This object: the positions of
// extremes.
#include "dispatch.hpp"
#include "scatter_extremes.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

// Numbers of updates that were counted out have 32 bits; beside keys of 64 they are as wide.
template <int64_t kMost>
GroupExtremes::Part part_of(const Combine& how, bool counted) {
  return by_value<false>(how.value, how.reduction, [counted](auto fold) -> GroupExtremes::Part {
    using F = decltype(fold);
    if constexpr (kHasKeys<F>) {
      using Narrow = std::make_unsigned_t<typename OrderKeys<F>::Key>;
      return counted ? &GroupExtremes::part<F, kMost, Narrow> : &GroupExtremes::part<F, kMost, uint64_t>;
    } else {
      impossible();
    }
  });
}

void group_extremes(const GroupedScatter& call, const Extremes& at, const GroupShare& share) {
  const bool items = call.nest->block == call.nest->item;
  const GroupExtremes::Part part = items ? part_of<1>(call.combine, call.counted)
                                         : part_of<GroupExtremes::kPart>(call.combine, call.counted);
  each_group(call, share, GroupExtremes(call, at, share.unit, part));
}

}  // namespace

void add_extreme_kernels(Kernels& all) { all.group_extremes = group_extremes; }

}  // namespace gatherum::GATHERUM_LEVEL
