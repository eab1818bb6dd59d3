// Calls on PyTorch tensors, through PyTorch's DLPack exchange. Nothing is copied, and the build needs nothing
// from torch. Plain tensors are not tracked by a gradient, batched, traced or conjugated. torch's dispatcher
// handles all other tensors, and calls these functions with the plain tensors inside them.
#pragma once

#include "python/call.hpp"

namespace gatherum {

// Lets Python raise the error for a tensor that cannot be read.
[[noreturn]] void refuse_tensor(nb::handle op, const char* operand, nb::handle tensor);

// Returns the position of the first of n operands that has changed, or -1 if none has. An operand can change
// because Python code can resize a tensor. See TensorView::read for `or_cuda`.
int first_change(const nb::handle* operands, const View* before, int n, bool or_cuda = false);

// Runs a call, with the arguments of `call`, on plain tensors. Returns an invalid object (not None) for any
// other call, which torch's dispatcher has to handle.
nb::object call_on_plain_tensors(const nb::handle* arguments);

// Runs a scatter in the same way, but only on a CUDA device, with the updates sorted by an earlier call.
// `arguments` are the arguments of a call up to kNegative, then a tuple of the stream of the sort and the
// addresses of the sorted keys and of their payload. Returns None for a call that the core cannot run.
nb::object scatter_ordered(const nb::handle* arguments);

}  // namespace gatherum
