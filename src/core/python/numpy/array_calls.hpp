// Calls of the operators, from Python objects to the engine.
// core/README.md compares the functions that run a plan.
#pragma once

#include "python/call.hpp"

namespace gatherum {

// Runs one call of an operator. kOp is its name, interned.
nb::object dispatch_call(const nb::handle* arguments);

// Runs a call whose arguments Python has converted to arrays and plain values.
nb::object run_normalised(const nb::handle* arguments);

// Runs a plan on arrays. A callback checks that they match the plan's specs.
nb::object run_plan(nb::handle plan, const OperandHandles& operands, nb::handle fill_value);

// Clears the table of plans, as the last call before the interpreter ends.
void leave();

}  // namespace gatherum
