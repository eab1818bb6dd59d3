// A cache of rows, called from Python.
#pragma once

#include "arrays.hpp"

namespace gatherum {

void bind_row_caches(nb::module_& m);

}  // namespace gatherum
