// Calls of the operators, from Python objects to the engine.
#pragma once

#include "python/call.hpp"

namespace gatherum {

// One call of an operator; kOp is its name, interned.
nb::object call(const nb::handle* arguments);

// A run of a plan on arrays; a callback checks that they match the plan's specs.
nb::object run_plan(nb::handle plan, const OperandHandles& operands, nb::handle fill_value);

// Forgets every plan, as the last call before the interpreter ends.
void leave();

}  // namespace gatherum
