// Implements the functions of the C interface that make programs from shapes, dtypes and attributes.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "algorithms/algorithms.hpp"
#include "c_api/fault_messages.hpp"
#include "c_api/interface.hpp"
#include "include/gatherum.h"
#include "model/plan_call.hpp"

namespace gatherum {
namespace {

// Describes an error in a call; it is reported to the caller.
struct Refusal {
  gatherum_fault fault;
  const char* operand;
  std::string text;
};

[[noreturn]] void refuse_call(gatherum_fault fault, const char* operand, const std::string& text) {
  throw Refusal{fault, operand, text};
}

bool is_past_memory(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t reach = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    reach += distance(std::max<int64_t>(shape[d] - 1, 0), strides[d]);
    if (reach >= kSizeLimit || distance(1, strides[d]) >= kSizeLimit) return true;
  }
  return false;
}

// Formats names as a list.
template <class NameOf>
std::string choices(int count, const NameOf& name_of_choice) {
  std::string all;
  for (int i = 0; i < count; ++i) all += std::string(i == 0 ? "'" : ", '") + name_of_choice(i) + "'";
  return all;
}

void read_dtype(const char* operand, const gatherum_spec& spec, OperandSpec& read) {
  if (spec.dtype == nullptr) {
    if (spec.item < 0 || spec.item > kSizeLimit)
      refuse_call(GATHERUM_FAULT_DTYPE, operand,
                  quoted(operand) + " must have items of " + (spec.item < 0 ? "at least 0" : "at most 2^60") +
                      " bytes, got " + std::to_string(spec.item));
    read.item = spec.item;
    return;
  }
  const auto* row = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                 [&](const DTypeRow& r) { return std::strcmp(r.name, spec.dtype) == 0; });
  if (row == std::end(kDTypes))
    refuse_call(GATHERUM_FAULT_DTYPE, operand,
                quoted(operand) + " must have one of the dtypes " +
                    choices(kDTypeCount, [](int i) { return kDTypes[i].name; }) + ", got '" + spec.dtype +
                    "'");
  read.dtype = static_cast<int>(row->dtype);
  read.item = bytes_of(row->dtype);
  read.swapped = spec.swapped != 0 && read.item > 1;
}

// Checks the rank before the sizes are read.
void check_rank(const char* operand, const gatherum_spec& spec) {
  if (spec.rank < 0 || spec.rank > kMaxLoops)
    refuse_call(GATHERUM_FAULT_SHAPE, operand,
                quoted(operand) + " must have at " + (spec.rank < 0 ? "least 0" : "most 64") +
                    " dimensions, got " + std::to_string(spec.rank));
  if (spec.rank > 0 && spec.shape == nullptr)
    refuse_call(GATHERUM_FAULT_SHAPE, operand,
                quoted(operand) + " must have a shape of " + std::to_string(spec.rank) +
                    (spec.rank == 1 ? " size" : " sizes") + ", got null");
}

OperandSpec read_spec(const char* operand, const gatherum_spec* spec) {
  if (spec == nullptr) refuse_call(GATHERUM_FAULT_OPERAND, operand, quoted(operand) + " must be given");
  check_rank(operand, *spec);
  OperandSpec read;
  read_dtype(operand, *spec, read);
  read.layout.shape.assign(spec->shape, spec->shape + spec->rank);
  for (int64_t extent : read.layout.shape)
    if (extent < 0)
      refuse_call(
          GATHERUM_FAULT_SHAPE, operand,
          quoted(operand) + " must have sizes of at least 0, got " + written_shape(read.layout.shape));
  if (spec->strides == nullptr) {
    read.layout = contiguous_layout(read.layout.shape, read.item);
  } else {
    read.layout.strides.assign(spec->strides, spec->strides + spec->rank);
    if (is_past_memory(read.layout.shape, read.layout.strides))
      refuse_call(GATHERUM_FAULT_SHAPE, operand,
                  quoted(operand) + " must have strides that stay within the address space, got " +
                      written_shape(read.layout.strides));
  }
  return read;
}

// Reads an attribute with a fixed set of values. A null value selects the first one.
template <class NameOf>
int read_choice(const char* attribute, const char* value, int count, const NameOf& name_of_choice) {
  if (value == nullptr) return 0;
  for (int i = 0; i < count; ++i)
    if (std::strcmp(value, name_of_choice(i)) == 0) return i;
  refuse_call(GATHERUM_FAULT_ATTRIBUTE, "",
              quoted(attribute) + (count > 1 ? " must be one of " : " must be ") +
                  choices(count, name_of_choice) + ", got '" + value + "'");
}

struct Specs {
  const gatherum_spec *data, *indices, *updates, *out;
};

CallSpec read_call(const OperatorRow& op, const Specs& specs, const gatherum_attributes& attributes) {
  CallSpec call{};
  call.op = &op;
  call.axis = attributes.axis;
  call.reduction = static_cast<Reduction>(
      read_choice("reduction", attributes.reduction, op.is_scatter ? kEnumerators<Reduction> : 1,
                  [](int i) { return name_of(static_cast<Reduction>(i)); }));
  call.mode =
      kModes[read_choice("mode", attributes.mode, kModeCount, [](int i) { return kModes[i].name; })].mode;
  call.negative = attributes.negative != 0;
  call.include_self = !op.is_scatter || attributes.include_self != 0;
  call.data = read_spec("data", specs.data);
  call.indices = read_spec("indices", specs.indices);
  if (op.is_scatter) call.updates = read_spec("updates", specs.updates);
  if (specs.out != nullptr) call.out = read_spec("out", specs.out);
  return call;
}

[[noreturn]] void refuse_fault(const Finding& f, const CallSpec& call) {
  const char* operand = f.operand == Operand::result ? "out" : name_of(f.operand);
  gatherum_fault fault = GATHERUM_FAULT_SHAPE;
  if (f.fault == Fault::out_of_range) {
    fault = GATHERUM_FAULT_ATTRIBUTE;
    operand = "";
  } else if (f.fault == Fault::not_an_index_dtype || f.fault == Fault::other_dtype ||
             f.fault == Fault::not_reducible) {
    fault = GATHERUM_FAULT_DTYPE;
  }
  refuse_call(fault, operand, message_of(f, call));
}

gatherum_status explain_refusal(gatherum_status status, gatherum_fault fault, const char* operand,
                                const std::string& message, gatherum_call_error* error) {
  if (error == nullptr) return status;
  error->fault = fault;
  error->operand = operand;
  copy_text(message, error->message);
  return status;
}

gatherum_status make_program(const char* op, const Specs& specs, const gatherum_attributes* attributes,
                             gatherum_program** program, gatherum_call_error* error) noexcept {
  try {
    if (program == nullptr) refuse_call(GATHERUM_FAULT_OPERAND, "", "`program` must not be null");
    *program = nullptr;
    const gatherum_attributes chosen = attributes == nullptr ? gatherum_defaults() : *attributes;
    const CallSpec call = read_call(*find_operator(op), specs, chosen);
    auto created = std::make_unique<gatherum_program>();
    if (const Finding f = plan_call(call, created->value)) refuse_fault(f, call);
    const char* fault = complete(created->value);
    if (fault == nullptr) fault = complete_and_choose(created->value);
    if (fault != nullptr) refuse_call(GATHERUM_FAULT_SHAPE, "", fault);
    *program = created.release();
    return GATHERUM_OK;
  } catch (const Refusal& refusal) {
    return explain_refusal(GATHERUM_INVALID_CALL, refusal.fault, refusal.operand,
                           std::string(op) + ": " + refusal.text, error);
  } catch (const std::bad_alloc&) {
    if (error != nullptr) *error = {GATHERUM_FAULT_NONE, "", "there is no memory for a program"};
    return GATHERUM_NO_MEMORY;
  }
}

}  // namespace
}  // namespace gatherum

#define GATHERUM_DEFINE_GATHER(op)                                                                      \
  gatherum_status gatherum_make_##op(const gatherum_spec* data, const gatherum_spec* indices,           \
                                     const gatherum_spec* out, const gatherum_attributes* attributes,   \
                                     gatherum_program** program, gatherum_call_error* error) noexcept { \
    return gatherum::make_program(#op, {data, indices, nullptr, out}, attributes, program, error);      \
  }
#define GATHERUM_DEFINE_SCATTER(op)                                                                     \
  gatherum_status gatherum_make_##op(const gatherum_spec* data, const gatherum_spec* indices,           \
                                     const gatherum_spec* updates, const gatherum_spec* out,            \
                                     const gatherum_attributes* attributes, gatherum_program** program, \
                                     gatherum_call_error* error) noexcept {                             \
    return gatherum::make_program(#op, {data, indices, updates, out}, attributes, program, error);      \
  }
GATHERUM_DEFINE_GATHER(gather)
GATHERUM_DEFINE_GATHER(gather_elements)
GATHERUM_DEFINE_GATHER(gather_nd)
GATHERUM_DEFINE_SCATTER(scatter_slices)
GATHERUM_DEFINE_SCATTER(scatter_elements)
GATHERUM_DEFINE_SCATTER(scatter_nd)
