// From Python's arrays of indices to what they address.
#pragma once

#include "arrays.hpp"

namespace gatherum {

void bind_indices(nb::module_& m);

}  // namespace gatherum
