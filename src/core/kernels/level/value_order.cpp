// Compiled once, for the portable level. This translation unit sorts values.
#include "kernels/dispatch.hpp"
#include "kernels/sort_values.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

template <class Number>
void order_by_value(const ValueOrder& call) {
  by_type(call.value, [&](auto type) {
    using V = typename decltype(type)::type;
    if constexpr (has_meaning(kValueOf<V>, Reduction::max))
      sort_values<V, Number>(call);
    else
      impossible();
  });
}

}  // namespace
}  // namespace gatherum::GATHERUM_LEVEL

void gatherum::order_values(const ValueOrder& call) {
  using namespace GATHERUM_LEVEL;
  if (call.wide) return order_by_value<uint64_t>(call);
  order_by_value<uint32_t>(call);
}
