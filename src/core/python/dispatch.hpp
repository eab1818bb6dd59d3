// The start of a call from Python, on operands of any framework.
#pragma once

#include "python/call.hpp"

namespace gatherum {

// Runs one call of an operator. kOp is its name, interned.
nb::object dispatch_call(const nb::handle* arguments);

// Clears the table of plans, as the last call before the interpreter ends.
void release_plans();

}  // namespace gatherum
