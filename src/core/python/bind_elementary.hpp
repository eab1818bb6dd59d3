// exp and log of arrays, called from Python.
#pragma once

#include "arrays.hpp"

namespace gatherum {

void bind_elementary(nb::module_& m);

}  // namespace gatherum
