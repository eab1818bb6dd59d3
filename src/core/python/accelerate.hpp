// Python functions whose calls the core runs without their bodies.
#pragma once

#include "arrays.hpp"

namespace gatherum {

// Lets the core run the calls of a Python function, from CPython 3.12 on, if the function does no more than
// pass its parameters to `call` or `run`: binding the arguments takes Python longer than a small gather (60
// ns of 250). The names of the parameters say which argument each one is, and one named `self` is a plan.
// Nothing else about the function changes. Its body still runs for arguments that do not fit, so that Python
// raises the error, and where torch.compile traces it. Any other object is left as it is.
void accelerate(nb::handle function);

}  // namespace gatherum
