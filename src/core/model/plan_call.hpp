// Plans a call to an operator without its data: checks dtypes, shapes and `out`, and lowers the call to a
// program. The C interface and the Python bindings share it; each creates the error messages itself.
#pragma once

#include <optional>

#include "model/dtypes.hpp"
#include "model/shape_rules.hpp"

namespace gatherum {

// An operator: how it addresses the data, and whether it writes.
struct OperatorRow {
  const char* name;
  const char* attribute;
  Addressing addressing;
  bool is_scatter;
};

inline constexpr OperatorRow kOperators[] = {
    {"gather", "axis", kSlices, false},
    {"gather_elements", "axis", kElements, false},
    {"gather_nd", "batch_dims", kTuples, false},
    {"scatter_slices", "axis", kSlices, true},
    {"scatter_elements", "axis", kElements, true},
    {"scatter_nd", "batch_dims", kTuples, true},
};

// Returns the operator with this name, or null if there is none.
const OperatorRow* find_operator(const char* name);

// An operand without its data.
struct OperandSpec {
  OperandLayout layout;
  int dtype = kNoDType;  // a DType; kNoDType: items that are only copied
  int64_t item = 0;      // bytes of an item
  bool swapped = false;  // the items' byte order is the opposite of this machine's

  bool is_signed() const { return dtype != kNoDType && kDTypes[dtype].kind == Kind::integer; }
  bool is_index() const {
    return dtype != kNoDType && has_whole_bytes(kDTypes[dtype]) &&
           (is_signed() || kDTypes[dtype].kind == Kind::unsigned_integer);
  }
  Value value() const { return dtype == kNoDType || swapped ? Value::none : kDTypes[dtype].value; }
  bool has_dtype_of(const OperandSpec& other) const {
    return dtype == other.dtype && item == other.item && swapped == other.swapped;
  }
};

struct CallSpec {
  const OperatorRow* op;
  int64_t axis;  // `axis` or `batch_dims`, as the caller passed it
  Mode mode;
  bool negative;
  Reduction reduction;
  bool include_self;
  OperandSpec data, indices;
  std::optional<OperandSpec> updates, out;  // updates: if and only if the operator scatters
};

// Returns the shapes of a call. The operands of the call must outlive them.
ShapedCall shapes_of(const CallSpec& call);

// Checks a call in the order of the errors (the range of the attribute, dtypes, shapes, `out`) and lowers it.
Finding plan_call(const CallSpec& call, Program& program);

}  // namespace gatherum
