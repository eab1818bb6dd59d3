// How calls on tensors run: in the core, or through torch's dispatcher.
#pragma once

#include "python/torch/tensor_view.hpp"

namespace gatherum {

// The reason why the core declines a call on tensors. torch's dispatcher then runs the call.
enum class Declined : uint8_t { no, type, watched, memory, complex, negated, tracked };

// How a call on tensors runs: in the core, recorded by autograd or not, or declined because of an operand.
struct Route {
  Declined declined = Declined::no;
  uint8_t operand = 0;
  bool recorded = false;
};

// Returns the route that follows from the operands' types and torch's state.
Route route_of_types(const nb::handle* operands, size_t n);

// Reads the operands' memory, and returns the route that it allows. `recorded`: autograd records the call.
Route route_of_memory(const nb::handle* operands, size_t n, bool recorded, TensorView* tensors, View* views);

}  // namespace gatherum
