// Implements the function of the C interface that sorts values by group.
#include "c_api/interface.hpp"
#include "lists/group_order.hpp"

using namespace gatherum;

gatherum_status gatherum_order(const gatherum_grouped_values* of, int64_t* order, int64_t n,
                               const gatherum_poll* poll, gatherum_error* error) noexcept {
  if (is_any_null({{"of", of}}, error)) return GATHERUM_INVALID_CALL;
  if (n < 0 || n > kSizeLimit || of->group_count < 0 || of->group_count > kSizeLimit)
    return report_failure(GATHERUM_INVALID_CALL, error, "a count must be in [0, 2^60]");
  GroupedValues call{.values = static_cast<const char*>(of->values),
                     .value = Value::int64,
                     .groups = of->groups,
                     .count = n,
                     .group_count = of->group_count};
  if (call.values != nullptr &&
      !(find_name(of->value, call.value) && has_meaning(call.value, Reduction::max)))
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "values of this dtype have no order", "value");
  if (n == 0) return GATHERUM_OK;
  if (is_any_null({{"groups", of->groups}, {"order", order}}, error)) return GATHERUM_INVALID_CALL;
  const int64_t bytes = limited_product(n, sizeof *order);
  const Footprint written(order, bytes);
  if (shares_memory(written, {of->groups, bytes})) return report_overlap(error, "groups");
  if (call.values != nullptr &&
      shares_memory(written, {call.values, limited_product(n, bytes_of(call.value))}))
    return report_overlap(error, "values");
  const auto run = [&] { return report(order_by_group(call, order, poll_of(poll)), error); };
  const gatherum_status status = with_memory(error, run);
  if (status == GATHERUM_INVALID_INDEX && error != nullptr) error->operand = "groups";
  return status;
}
