#include "model/plan_call.hpp"

#include <cstring>

namespace gatherum {
namespace {

// Checks the range of the attribute. If the operand of the attribute has no dimensions, this is a shape
// error, which is raised after dtype errors.
Finding check_attribute(const ShapedCall& call) {
  int64_t axis = 0;
  return rank_of_attribute(call) > 0 ? resolve_attribute(call, axis) : Finding{};
}

Finding check_dtypes(const CallSpec& call) {
  if (!call.indices.is_index()) return {.fault = Fault::not_an_index_dtype, .operand = Operand::indices};
  if (call.updates && !call.updates->has_dtype_of(call.data))
    return {.fault = Fault::other_dtype, .operand = Operand::updates};
  if (!has_meaning(call.data.value(), call.reduction))
    return {.fault = Fault::not_reducible, .operand = Operand::data};
  return {};
}

}  // namespace

const OperatorRow* find_operator(const char* name) {
  for (const OperatorRow& row : kOperators)
    if (std::strcmp(row.name, name) == 0) return &row;
  return nullptr;
}

ShapedCall shapes_of(const CallSpec& call) {
  ShapedCall shapes{call.op->addressing, call.axis, call.data.layout, call.indices.layout};
  if (call.updates) shapes.updates = &call.updates->layout;
  if (call.out) shapes.out = &call.out->layout;
  return shapes;
}

Finding plan_call(const CallSpec& call, Program& p) {
  ShapedCall shapes = shapes_of(call);
  if (Finding f = check_attribute(shapes)) return f;
  if (Finding f = check_dtypes(call)) return f;
  p = Program{};
  p.scatter = call.op->is_scatter;
  p.mode = call.mode;
  p.negative = call.negative;
  p.fold_rule = {call.reduction, call.data.value(), call.include_self};
  p.item = call.data.item;
  p.index = {static_cast<uint8_t>(call.indices.item), call.indices.is_signed(), call.indices.swapped};
  const bool other_out = call.out && !call.out->has_dtype_of(call.data);
  if (other_out) shapes.out = nullptr;  // errors of the inputs have priority
  std::vector<int64_t> moved;
  if (Finding f = lower_checked(shapes, p, moved)) return f;
  return other_out ? Finding{.fault = Fault::other_dtype, .operand = Operand::out} : Finding{};
}

}  // namespace gatherum
