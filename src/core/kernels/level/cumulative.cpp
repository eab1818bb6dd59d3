// Compiled once, for the portable level. This translation unit implements cumulative functions.
#include "kernels/cumulate.hpp"
#include "kernels/dispatch.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

template <class Group>
void cumulate_by_value(const Cumulation& call) {
  if (call.kind == Cumulative::fold)
    return by_value<false>(call.fold_rule.value, call.fold_rule.reduction, [&](auto fold) {
      if constexpr (kIsExact<decltype(fold)>)
        impossible();
      else
        cumulate_folds<decltype(fold), Group>(call);
    });
  const bool recurs = call.kind == Cumulative::recurrence;
  if (call.fold_rule.value == Value::float32)
    return recurs ? cumulate_linearly<float, Group>(call) : find_previous<float, Group>(call);
  return recurs ? cumulate_linearly<double, Group>(call) : find_previous<double, Group>(call);
}

}  // namespace
}  // namespace gatherum::GATHERUM_LEVEL

void gatherum::cumulate(const Cumulation& call) {
  using namespace GATHERUM_LEVEL;
  const FloatMode mode;
  if (call.wide) return cumulate_by_value<int64_t>(call);
  cumulate_by_value<int32_t>(call);
}
