// Calls on PyTorch's tensors, through its DLPack exchange: nothing is copied, and building needs nothing from
// torch. A tensor may be more than its memory: tracked by a gradient, batched, traced, conjugated. torch's
// dispatcher handles such tensors, and calls back here when only memory is left.
#pragma once

#include "python/call.hpp"

namespace gatherum {

// Returns true if an object is a torch tensor or Parameter, but no other subclass. False until torch's
// adapter is set.
bool is_tensor(nb::handle object);

// Runs a call, with the arguments of `call`, on plain tensors that are nothing but memory. Returns an invalid
// object (not None) if it is not such a call, and torch's dispatcher has to handle it.
nb::object call_on_plain_tensors(const nb::handle* a);

// Runs the same on tensors that are known to be nothing but memory, as in a kernel of torch's dispatcher.
nb::object call_on_tensors(const nb::handle* a);

}  // namespace gatherum
