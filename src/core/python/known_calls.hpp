// A cache of calls on another framework's arrays, with the functions that run them.
#pragma once

#include <array>

#include "arrays.hpp"

namespace gatherum {

// What an operator is called with: its arrays, and its attributes in the order of `call`.
struct GivenCall {
  nb::handle op, data, indices, updates;
  std::array<nb::handle, 6> attributes;  // axis, reduction, include_self, mode, negative, fill_value
};

// Runs a call by what ran the last one of its operator, or returns nothing: only where all arrays have the
// type of those, and every attribute is the same object.
nb::object run_as_before(const GivenCall& call);

// Forgets them all, with the programs that they keep alive.
void forget_calls();

void bind_known_calls(nb::module_& m);

}  // namespace gatherum
