// Calls on PyTorch's tensors, through its DLPack exchange: nothing is copied, and nothing of torch is needed
// to build. A tensor may be more than its memory: tracked by a gradient, batched, traced, conjugated. Such
// ones are left to torch's dispatcher, which comes back here when nothing but memory is left.
#pragma once

#include "python/call.hpp"

namespace gatherum {

// Whether an object is a tensor of torch, of no subclass but Parameter. False until torch's adapter is set.
bool is_tensor(nb::handle object);

// The result of a call, given as to `call`, on plain tensors of which only the memory matters. An invalid
// object (not None): it is not such a call, and torch's dispatcher has to handle it.
nb::object call_on_plain_tensors(const nb::handle* a);

// The same on tensors that are known to be no more than memory, which a kernel of torch's dispatcher gets.
nb::object call_on_tensors(const nb::handle* a);

}  // namespace gatherum
