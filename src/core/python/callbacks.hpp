// The Python functions that the core calls.
#pragma once

#include "python/numpy/arrays.hpp"

namespace gatherum {

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
  // (plan, "read_only"), (plan, "overlap" or "changed", number of an operand) or
  // (plan, "invalid", position, component, value): raises the error of a run
  nb::object raise_error;
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
