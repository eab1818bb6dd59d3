// Gathers of quantized rows, called from Python.
#pragma once

#include "arrays.hpp"

namespace gatherum {

void bind_quantized(nb::module_& m);

}  // namespace gatherum
