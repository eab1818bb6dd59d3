// Calls on tensors on a CUDA device, which replay device programs.
#pragma once

#include "python/call.hpp"
#include "python/device/device_calls.hpp"
#include "python/torch/tensor_view.hpp"

namespace gatherum {

// Returns true if calls on tensors on CUDA devices may be replayed, because torch's adapter has passed the
// functions.
bool runs_on_cuda();

inline bool is_same_device(const TensorView& a, const TensorView& b) {
  return a.device.type == b.device.type && a.device.id == b.device.id;
}

// Runs a call without `out` and fill value on plain tensors of one CUDA device. `tensors` are data, indices
// and updates; data is None for a scatter into zeros, whose view is `zeros_like`. Returns an invalid object
// for a call that torch's dispatcher has to handle: one with an invalid index, or with no program. A scatter
// may have an order of its updates, which is used if the call runs on the same stream as the order's sort.
nb::object run_on_cuda(const nb::handle* tensors, const Call& call, dlpack::Device device,
                       const Order* order);

}  // namespace gatherum
