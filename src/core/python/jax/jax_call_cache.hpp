// A cache of calls on another framework's arrays, with the functions that run them.
#pragma once

#include <array>

#include "python/numpy/arrays.hpp"

namespace gatherum {

// The arguments of a call: the operator's arrays, and its attributes in the order of `dispatch_call`.
struct GivenCall {
  nb::handle op, data, indices, updates;
  std::array<nb::handle, 6> attributes;  // axis, reduction, include_self, mode, negative, fill_value
};

// Runs a call with the function that ran the operator's last call, if all arrays have the same types as in
// that call and every attribute is the same object. Otherwise returns an empty object.
nb::object replay(const GivenCall& call);

// Clears the cache, with the programs that it keeps alive.
void forget_calls();

}  // namespace gatherum
