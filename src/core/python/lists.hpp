// From Python objects to lists of rows.
#pragma once

#include "arrays.hpp"

namespace gatherum {

void bind_lists(nb::module_& m);

}  // namespace gatherum
