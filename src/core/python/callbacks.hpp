// The Python functions that the core calls.
#pragma once

#include "model/types.hpp"
#include "python/numpy/arrays.hpp"

namespace gatherum {

// The faults that a run of a plan reports to Python. The facts of `overlap` and `changed` are the number of
// an operand; those of `invalid` are the position, component and value of an index. `read_only` has no facts.
enum class RunFault : uint8_t { read_only, overlap, changed, invalid };

constexpr const char* name_of(RunFault fault) {
  return name_among({"read_only", "overlap", "changed", "invalid"}, fault);
}

// Set at import. Each field holds the Python function of the same name.
struct Callbacks {
  // (the arguments of dispatch_call) -> the result of the call, or raises. Python passes arrays of another
  // framework to its adapter, and converts other arguments for run_normalized.
  nb::object convert_and_run;
  // (op, data, indices, updates, axis, reduction, include_self, mode, negative, out) -> Plan, or raises; an
  // operand is a NumPy array, or (shape, DType, strides, swapped), or None.
  nb::object make_plan;
  nb::object check_operands;  // (plan, data, indices, updates, out): raises for arrays that do not match it
  nb::object make_fill;       // (plan, dtype, fill_value) -> 0-d array of the data's dtype, or raises
  nb::object raise_error;     // (plan, RunFault, the facts of the fault): raises the error of a run
};

Callbacks& callbacks();

// Calls `visit(name, function)` for each callback.
template <class Visit>
void each_callback(Callbacks& c, const Visit& visit) {
  visit("convert_and_run", c.convert_and_run);
  visit("make_plan", c.make_plan);
  visit("check_operands", c.check_operands);
  visit("make_fill", c.make_fill);
  visit("raise_error", c.raise_error);
}

}  // namespace gatherum
