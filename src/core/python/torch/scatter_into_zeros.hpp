// Scatters of views into zeros.
#pragma once

#include "python/call.hpp"
#include "python/torch/dlpack.hpp"

namespace gatherum {

// Runs a scatter whose data are `zeros_like`, and returns the tensor of the result. Returns None if the core
// does not plan the call, or if an index is invalid.
nb::object run_into_zeros(const Call& call, dlpack::DataType type);

}  // namespace gatherum
