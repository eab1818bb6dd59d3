// Scatters of plain tensors into zeros by plans that are known: what torch_scatter's functions and the
// gradient of a gather are.
#pragma once

#include "arrays.hpp"

namespace gatherum {

void bind_tensor_totals(nb::module_& m);

}  // namespace gatherum
