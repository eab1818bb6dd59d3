// Implements the functions of the C interface that make programs from shapes, dtypes and attributes.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "algorithms/algorithms.hpp"
#include "c_api/interface.hpp"
#include "include/gatherum.h"
#include "model/dtypes.hpp"
#include "model/shape_rules.hpp"

namespace gatherum {
namespace {

// An operator of the C interface.
struct OperatorRow {
  const char* name;
  const char* attribute;
  Addressing addressing;
};

// An error in a call, for its caller.
struct Refusal {
  gatherum_fault fault;
  const char* operand;
  std::string text;
};

struct ReadSpec {
  OperandLayout layout;
  std::string name;  // of the dtype
  int64_t item;
  Value value;
  bool swapped;
  bool is_integer, is_signed;

  bool same_dtype(const ReadSpec& other) const { return name == other.name && item == other.item; }
};

std::string quoted(const char* name) { return std::string("`") + name + "`"; }

[[noreturn]] void refuse_call(gatherum_fault fault, const char* operand, const std::string& text) {
  throw Refusal{fault, operand, text};
}

bool is_past_memory(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t reach = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    reach += distance(std::max<int64_t>(shape[d] - 1, 0), strides[d]);
    if (reach >= kMany || distance(1, strides[d]) >= kMany) return true;
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

void read_dtype(const char* operand, const gatherum_spec& spec, ReadSpec& read) {
  if (spec.dtype == nullptr) {
    if (spec.item < 0 || spec.item > kMany)
      refuse_call(GATHERUM_FAULT_DTYPE, operand,
                  quoted(operand) + " must have items of " + (spec.item < 0 ? "at least 0" : "at most 2^60") +
                      " bytes, got " + std::to_string(spec.item));
    read.name = "bytes";
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
  read.item = bytes_of(row->dtype);
  read.swapped = spec.swapped != 0 && read.item > 1;
  read.name = std::string(read.swapped ? "swapped " : "") + row->name;
  read.value = read.swapped ? Value::none : row->value;
  read.is_signed = row->kind == Kind::integer;
  read.is_integer = has_whole_bytes(*row) && (read.is_signed || row->kind == Kind::unsigned_integer);
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

ReadSpec read_spec(const char* operand, const gatherum_spec* spec) {
  if (spec == nullptr) refuse_call(GATHERUM_FAULT_OPERAND, operand, quoted(operand) + " must be given");
  check_rank(operand, *spec);
  ReadSpec read{};
  read_dtype(operand, *spec, read);
  read.layout.shape.assign(spec->shape, spec->shape + spec->rank);
  for (int64_t extent : read.layout.shape)
    if (extent < 0)
      refuse_call(
          GATHERUM_FAULT_SHAPE, operand,
          quoted(operand) + " must have sizes of at least 0, got " + written_shape(read.layout.shape));
  if (spec->strides == nullptr) {
    read.layout = lay_contiguous(read.layout.shape, read.item);
  } else {
    read.layout.strides.assign(spec->strides, spec->strides + spec->rank);
    if (is_past_memory(read.layout.shape, read.layout.strides))
      refuse_call(GATHERUM_FAULT_SHAPE, operand,
                  quoted(operand) + " must have strides whose reach can be addressed, got " +
                      written_shape(read.layout.strides));
  }
  return read;
}

// Reads an attribute with a fixed set of values. null selects the first one.
template <class NameOf>
int read_choice(const char* attribute, const char* value, int count, const NameOf& name_of_choice) {
  if (value == nullptr) return 0;
  for (int i = 0; i < count; ++i)
    if (std::strcmp(value, name_of_choice(i)) == 0) return i;
  refuse_call(GATHERUM_FAULT_ATTRIBUTE, "",
              quoted(attribute) + (count > 1 ? " must be one of " : " must be ") +
                  choices(count, name_of_choice) + ", got '" + value + "'");
}

void read_attributes(const gatherum_attributes& attributes, Program& p) {
  p.combine.reduction =
      static_cast<Reduction>(read_choice("reduction", attributes.reduction, p.scatter ? kCount<Reduction> : 1,
                                         [](int i) { return name_of(static_cast<Reduction>(i)); }));
  p.mode =
      kModes[read_choice("mode", attributes.mode, kModeCount, [](int i) { return kModes[i].name; })].mode;
  p.negative = attributes.negative != 0;
  p.combine.include_self = !p.scatter || attributes.include_self != 0;
}

void check_same_dtype(const char* operand, const ReadSpec& data, const ReadSpec& other) {
  if (!other.same_dtype(data))
    refuse_call(GATHERUM_FAULT_DTYPE, operand,
                quoted(operand) + " must have the dtype of `data`, " + data.name + ", got " + other.name);
}

struct Specs {
  const gatherum_spec *data, *indices, *updates, *out;
};

// Checks the range of the attribute, if it has one, before the dtypes.
void check_attribute(const OperatorRow& row, const ShapedCall& call) {
  const bool counts = (row.addressing.tuples ? call.indices : call.data).rank() > 0;
  int64_t axis = 0;
  if (!counts) return;
  if (const Finding f = resolve_attribute(call, axis))
    refuse_call(GATHERUM_FAULT_ATTRIBUTE, "", message_of(f, call, row.attribute));
}

Program make_checked(const OperatorRow& row, const Specs& specs, const gatherum_attributes& attributes,
                     bool scatters) {
  Program p;
  p.scatter = scatters;
  read_attributes(attributes, p);
  const ReadSpec data = read_spec("data", specs.data), indices = read_spec("indices", specs.indices);
  ReadSpec updates{}, out{};
  if (scatters) updates = read_spec("updates", specs.updates);
  if (specs.out != nullptr) out = read_spec("out", specs.out);
  ShapedCall call{row.addressing, attributes.axis, data.layout, indices.layout};
  call.dtype = data.name.c_str();
  if (scatters) call.updates = &updates.layout;
  check_attribute(row, call);
  if (!indices.is_integer)
    refuse_call(GATHERUM_FAULT_DTYPE, "indices", "`indices` must have an integer dtype, got " + indices.name);
  if (scatters) check_same_dtype("updates", data, updates);
  p.combine.value = data.value;
  if (!has_meaning(data.value, p.combine.reduction))
    refuse_call(GATHERUM_FAULT_DTYPE, "data",
                std::string("`reduction` '") + name_of(p.combine.reduction) + "' is not defined for dtype " +
                    data.name);
  p.item = data.item;
  p.index = {static_cast<uint8_t>(indices.item), indices.is_signed, indices.swapped};
  std::vector<int64_t> moved;
  const auto lower = [&] {
    moved.clear();
    if (const Finding f = lower_checked(call, p, moved))
      refuse_call(GATHERUM_FAULT_SHAPE, f.operand == Operand::result ? "out" : name_of(f.operand),
                  message_of(f, call, row.attribute));
  };
  if (specs.out != nullptr) {  // errors in the inputs are reported before errors in `out`
    const Program before = p;
    lower();
    check_same_dtype("out", data, out);
    p = before;
    call.out = &out.layout;
  }
  lower();
  return p;
}

gatherum_status explain_refusal(gatherum_status status, gatherum_fault fault, const char* operand,
                                const std::string& message, gatherum_call_error* error) {
  if (error == nullptr) return status;
  error->fault = fault;
  error->operand = operand;
  copy_text(message, error->message);
  return status;
}

gatherum_status make_program(const OperatorRow& row, const Specs& specs,
                             const gatherum_attributes* attributes, bool scatters, gatherum_program** program,
                             gatherum_call_error* error) noexcept {
  try {
    if (program == nullptr) refuse_call(GATHERUM_FAULT_OPERAND, "", "`program` must not be null");
    *program = nullptr;
    const gatherum_attributes chosen = attributes == nullptr ? gatherum_defaults() : *attributes;
    auto created = std::make_unique<gatherum_program>();
    created->value = make_checked(row, specs, chosen, scatters);
    const char* wrong = complete(created->value);
    if (wrong == nullptr) wrong = prepare(created->value);
    if (wrong != nullptr) refuse_call(GATHERUM_FAULT_SHAPE, "", wrong);
    *program = created.release();
    return GATHERUM_OK;
  } catch (const Refusal& refusal) {
    return explain_refusal(GATHERUM_INVALID_CALL, refusal.fault, refusal.operand,
                           std::string(row.name) + ": " + refusal.text, error);
  } catch (const std::bad_alloc&) {
    if (error != nullptr) *error = {GATHERUM_FAULT_NONE, "", "there is no memory for a program"};
    return GATHERUM_NO_MEMORY;
  }
}

}  // namespace
}  // namespace gatherum

#define GATHERUM_DEFINE_GATHER(op, attribute, addressing)                                                \
  gatherum_status gatherum_make_##op(const gatherum_spec* data, const gatherum_spec* indices,            \
                                     const gatherum_spec* out, const gatherum_attributes* attributes,    \
                                     gatherum_program** program, gatherum_call_error* error) noexcept {  \
    return gatherum::make_program({#op, attribute, gatherum::addressing}, {data, indices, nullptr, out}, \
                                  attributes, false, program, error);                                    \
  }
#define GATHERUM_DEFINE_SCATTER(op, attribute, addressing)                                               \
  gatherum_status gatherum_make_##op(const gatherum_spec* data, const gatherum_spec* indices,            \
                                     const gatherum_spec* updates, const gatherum_spec* out,             \
                                     const gatherum_attributes* attributes, gatherum_program** program,  \
                                     gatherum_call_error* error) noexcept {                              \
    return gatherum::make_program({#op, attribute, gatherum::addressing}, {data, indices, updates, out}, \
                                  attributes, true, program, error);                                     \
  }
GATHERUM_DEFINE_GATHER(gather, "axis", kSlices)
GATHERUM_DEFINE_GATHER(gather_elements, "axis", kElements)
GATHERUM_DEFINE_GATHER(gather_nd, "batch_dims", kTuples)
GATHERUM_DEFINE_SCATTER(scatter_slices, "axis", kSlices)
GATHERUM_DEFINE_SCATTER(scatter_elements, "axis", kElements)
GATHERUM_DEFINE_SCATTER(scatter_nd, "batch_dims", kTuples)
