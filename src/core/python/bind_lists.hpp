// Lists of rows, called from Python.
#pragma once

#include "arrays.hpp"

namespace gatherum {

void bind_lists(nb::module_& m);

}  // namespace gatherum
