// The way of a call from Python objects to the engine.
#pragma once

#include "arrays.hpp"

namespace gatherum {

inline constexpr int kArguments = 11;

// One call of an operator. Arguments: op, data, indices, updates, axis, reduction, include_self, mode,
// negative, fill_value, out; op is the operator's name.
nb::object call(nb::handle* arguments);

// The function that calls one operator: its arguments are all given, in the order of the operator's
// signature.
nb::object entry_of(nb::str name, bool scatters);

// The function that runs a plan on arrays: (plan, data, indices, updates, fill_value, out). The hook sees to
// it that they look as it was made for.
nb::object entry_of_plans();

// Forgets every plan, as the last call before the interpreter ends.
void leave();

}  // namespace gatherum
