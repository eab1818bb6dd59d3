// The bags of torch's `_embedding_bag` and of its gradient, for the kernels inside `reproducible`.
#pragma once

#include <memory>

#include "python/torch/override_call.hpp"

namespace gatherum {

// Returns true for a call of `_embedding_bag` that torch's kernel runs in order, or whose result has no
// order: sums of float32 or float64, and maxima.
bool is_in_order(const DispatchedArguments& arguments);

// Runs `_embedding_bag` for means of float32 or float64: divides the sums of torch's kernel, which adds in
// order. Returns torch's four tensors, or an invalid object for another call.
nb::object run_mean_bags(const DispatchedArguments& arguments, nb::handle torch_kernel);

// Runs `_embedding_bag` for sums of few rows of float32 or float64 that are multiplied by scales. Returns
// torch's four tensors, or an invalid object for another call.
nb::object run_weighted_bags(const DispatchedArguments& arguments);

// Writes the term of each index to the gradient of `_embedding_bag`: the gradient of its bag, divided by the
// bag's size for means, and multiplied by the index's scale. Returns null for a call with many terms, of
// another dtype or with operands that do not fit.
std::unique_ptr<char[]> terms_of_bags(const DispatchedArguments& arguments, const View& gradient,
                                      npy_intp indices);

}  // namespace gatherum
