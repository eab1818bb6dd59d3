#include "c_api/fault_messages.hpp"

#include <algorithm>

namespace gatherum {
namespace {

std::vector<int64_t> leading_dimensions(const std::vector<int64_t>& shape, int64_t count) {
  const auto n = static_cast<std::ptrdiff_t>(std::min(count, static_cast<int64_t>(shape.size())));
  return {shape.begin(), shape.begin() + n};
}

std::string dtype_text(const OperandSpec& operand) {
  if (operand.dtype == kNoDType) return "bytes";
  return std::string(operand.swapped ? "swapped " : "") + kDTypes[operand.dtype].name;
}

int64_t item_of(Operand operand, const CallSpec& spec) {
  if (operand == Operand::indices) return spec.indices.item;
  if (operand == Operand::updates) return spec.updates->item;
  return operand == Operand::out ? spec.out->item : spec.data.item;
}

// The end of the message for too many bytes, or for too many elements without bytes.
std::string too_much(int64_t item) {
  return std::string(", has more ") + (item > 0 ? "bytes" : "elements") + " than can be addressed";
}

}  // namespace

std::string written_shape(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t d = 0; d < shape.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string message_of(const Finding& f, const CallSpec& spec) {
  const ShapedCall call = shapes_of(spec);
  const std::string operand = quoted(name_of(f.operand));
  const std::string got = ", got " + std::to_string(f.found), expected = std::to_string(f.expected);
  const OperandLayout* const layouts[] = {&call.data, &call.indices, call.updates, call.out};
  const bool has_operand = f.operand != Operand::result && layouts[static_cast<int>(f.operand)] != nullptr;
  const std::string shape =
      has_operand ? written_shape(layouts[static_cast<int>(f.operand)]->shape) : written_shape(f.wanted);
  const auto dimension = static_cast<size_t>(f.dimension);
  switch (f.fault) {
    case Fault::none:
      return "";
    case Fault::too_few_dimensions:
      return operand + " must have at least 1 dimension, got 0";
    case Fault::out_of_range:
      return quoted(spec.op->attribute) + " must be in [" + std::to_string(f.least) + ", " + expected + ")" +
             got;
    case Fault::not_an_index_dtype:
      return operand + " must have an integer dtype, got " + dtype_text(spec.indices);
    case Fault::other_dtype:
      return operand + " must have the dtype of `data`, " + dtype_text(spec.data) + ", got " +
             dtype_text(f.operand == Operand::out ? *spec.out : *spec.updates);
    case Fault::not_reducible:
      return std::string("`reduction` '") + name_of(spec.reduction) + "' is not defined for dtype " +
             dtype_text(spec.data);
    case Fault::too_many_dimensions:
      return (f.operand == Operand::result ? "the result" : operand) + " must have at most " + expected +
             " dimensions" + got;
    case Fault::operand_too_big:
      return operand + ", shape " + shape + too_much(item_of(f.operand, spec));
    case Fault::other_rank:
      return operand + " must have as many dimensions as `data`, " + expected + got;
    case Fault::larger_than_data:
      return operand + " must have at most the size of `data`, " +
             std::to_string(call.data.shape[dimension]) + ", on dimension " + std::to_string(f.dimension) +
             ", got " + std::to_string(call.indices.shape[dimension]);
    case Fault::other_batch_shape:
      return operand + " must have the batch dimensions of `data`, " +
             written_shape(leading_dimensions(call.data.shape, f.expected)) + ", got " +
             written_shape(leading_dimensions(call.indices.shape, f.expected));
    case Fault::tuple_too_long:
      return "the last dimension of " + operand + " must be at most " + expected +
             ", the dimensions of `data` that are not batch dimensions" + got;
    case Fault::result_too_big:
      return "the result, shape " + shape + " of dtype " + dtype_text(spec.data) + too_much(spec.data.item);
    case Fault::other_shape:
      return operand + " must have shape " + written_shape(f.wanted) + ", got " + shape;
    case Fault::overlaps_itself:
      return operand + " must not overlap itself, got shape " + shape + " with strides " +
             written_shape(call.out->strides);
  }
  return "";
}

}  // namespace gatherum
