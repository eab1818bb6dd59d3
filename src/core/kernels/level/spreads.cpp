// Compiled once for each instruction-set level, like slabs.cpp. This translation unit implements the squared
// distances of variances.
#include "kernels/dispatch.hpp"
#include "kernels/group_spreads.hpp"
#include "kernels/scatter_spreads.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

// Calls f with the C++ type of a value type, in a std::type_identity.
template <class F>
auto by_float(Value value, const F& f) -> decltype(f(std::type_identity<double>{})) {
  return by_type(value, [&](auto type) -> decltype(f(std::type_identity<double>{})) {
    if constexpr (has_spreads(kValueOf<typename decltype(type)::type>))
      return f(type);
    else
      impossible();
  });
}

int64_t spread_bytes(Value value, int64_t slots) {
  return by_float(
      value, [&](auto type) { return GATHERUM_LEVEL::spread_bytes<typename decltype(type)::type>(slots); });
}

bool spread_take(const SlabScatter& call, const Operands& operands, const Spreads& to, int64_t task,
                 char* scratch) {
  const FloatMode mode;
  return by_float(call.fold_rule.value, [&](auto type) {
    return GATHERUM_LEVEL::spread_take<typename decltype(type)::type>(call, operands, to, task, scratch);
  });
}

void group_spreads(const GroupedScatter& call, const Operands& operands, const Spreads& to,
                   const GroupShare& share) {
  const FloatMode mode;
  const auto spread_part = by_float(call.fold_rule.value, [](auto type) {
    return GroupSpreads::SpreadPart{&GroupSpreads::spread_part<typename decltype(type)::type>};
  });
  each_group(call, share, GroupSpreads(call, operands, to, share.unit, spread_part));
}

}  // namespace

void add_spread_kernels(Kernels& all) {
  all.group_spreads = group_spreads;
  all.spread_bytes = spread_bytes;
  all.spread_take = spread_take;
}

}  // namespace gatherum::GATHERUM_LEVEL
