// The functions that Python calls, of Python's own kind: a call of nanobind's, with as many arguments, takes
// twice as long.
#pragma once

#include "arrays.hpp"

namespace gatherum {

// The function that calls one operator: its arguments are all given, in the order of the operator's
// signature.
nb::object entry_of(nb::str name, bool scatters);

// The function that runs a plan on arrays: (plan, data, indices, updates, out, fill_value). The hook sees to
// it that they look as it was made for.
nb::object entry_of_plans();

// Has the core answer calls of a Python function whose body is no more than a call of such an entry, from
// CPython 3.12 on: binding arguments to its parameters takes Python longer than a small gather (60 ns of
// 250). All else about the function stays as it is, and its body runs for arguments that do not fit, for
// Python to say so, and where torch.compile traces it.
void answer_calls_of(nb::handle function, bool scatters);
void answer_runs_of(nb::handle function);

}  // namespace gatherum
