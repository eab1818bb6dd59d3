// Calls on arrays on a CUDA device that only have __cuda_array_interface__.
#pragma once

#include "python/call.hpp"

namespace gatherum {

// Runs a call, with the arguments of `call`, on arrays of types that Python has named. Returns an invalid
// object for any other call, which Python has to run.
nb::object call_on_device_arrays(const nb::handle* arguments);

}  // namespace gatherum
