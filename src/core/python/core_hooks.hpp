// The Python functions that the core calls.
#pragma once

#include "python/numpy/arrays.hpp"

namespace gatherum {

// Set once, at import.
struct Callbacks {
  // (11 arguments of call) -> a tuple of the arguments, converted to arrays and plain values; or raises. If
  // the function returns any other object, this object is the result of a call on arrays of another
  // framework.
  nb::object normalise;
  // (op, axis, reduction, include_self, mode, negative) -> these arguments as plain values; or raises
  nb::object normalise_attributes;
  // (op, data, indices, updates, axis, reduction, include_self, mode, negative, out) -> Plan, or raises; an
  // operand is a NumPy array, or (shape, DType, strides), or None.
  nb::object make_plan;
  nb::object check_operands;  // (plan, data, indices, updates, out): raises for arrays that do not match it
  nb::object check_memory;    // (plan, data, indices, updates, out): raises if out is not writable
  nb::object make_fill;       // (plan, dtype, fill_value) -> 0-d array of the data's dtype, or raises
  nb::object raise_invalid;   // (plan, position, component, value): raises IndexError
  nb::object raise_changed;   // (plan, number of an operand): raises ValueError
};

Callbacks& callbacks();

}  // namespace gatherum
