// Calls of the operators on NumPy arrays.
// core/README.md compares the functions that run a plan.
#pragma once

#include "python/call.hpp"

namespace gatherum {

// Returns true for arrays and memory maps, whose subclass has no effect on calls.
bool is_ndarray_or_memmap(PyObject* object);

// Runs a call on NumPy arrays. Returns an empty object if Python has to convert an argument first.
nb::object call_on_arrays(const nb::handle* arguments);

// Runs a call whose arguments Python has converted to arrays and plain values.
nb::object run_normalized(const nb::handle* arguments);

// Runs a plan on arrays. A callback checks that they match the plan's specs.
nb::object run_plan(nb::handle plan, const OperandHandles& operands, nb::handle fill_value);

}  // namespace gatherum
