// The functions that Python calls, as plain CPython functions (METH_FASTCALL): nanobind takes twice as long
// for a call with as many arguments.
#pragma once

#include "arrays.hpp"

namespace gatherum {

// The function that calls one operator. All arguments are given, in the order of the operator's signature.
nb::object entry_of(nb::str name, bool scatters);

// The function that runs a plan on arrays: (plan, data, indices, updates, out, fill_value). The callback
// checks that they match the plan's specs.
nb::object entry_of_plans();

// Lets the core run the calls of a Python function, from CPython 3.12 on, if the function does no more than
// call such an entry with its parameters: binding the arguments takes Python longer than a small gather (60
// ns of 250). The names of the parameters say which argument each one is, and one named `self` is a plan.
// Nothing else about the function changes. Its body still runs for arguments that do not fit, so that Python
// raises the error, and where torch.compile traces it. Any other object is left as it is.
void accelerate(nb::handle function);

}  // namespace gatherum
