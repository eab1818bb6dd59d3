// Calls of operators for Python: their checks, the roles of dimensions, and the loops.
#pragma once

#include "arrays.hpp"

namespace gatherum {

void bind_lowering(nb::module_& m);

}  // namespace gatherum
