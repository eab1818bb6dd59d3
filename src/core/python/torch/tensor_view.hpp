// Views of PyTorch tensors' memory.
#pragma once

#include <algorithm>

#include "model/nest.hpp"
#include "python/torch/torch_state.hpp"
#include "python/views.hpp"

namespace gatherum {

// DLPack reports torch.int4 and similar dtypes as 8-bit integers.
inline bool is_whole(nb::handle tensor, DType dtype) {
  if (dtype != DType::int8 && dtype != DType::uint8) return true;
  static PyObject* const name = kept_text("dtype");
  const nb::object torch_dtype = checked(PyObject_GetAttr(tensor.ptr(), name));
  return torch_dtype.is(dtype == DType::int8 ? torch().int8 : torch().uint8);
}

// A tensor's memory in the core's form. The sizes are copied, because they belong to the tensor and may
// change.
struct TensorView {
  npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
  dlpack::DataType type = {};
  dlpack::Device device = {};
  bool complex = false;

  // Returns false if the tensor has no plain memory, or has a dtype that the core lacks. The memory must be
  // host memory or, if `or_cuda` is true, the memory of a CUDA device.
  bool read(nb::handle object, View& view, bool or_cuda = false) {
    dlpack::Tensor t;
    if (torch().api->view(object.ptr(), &t) != 0) {
      PyErr_Clear();
      return false;
    }
    DType dtype;
    if ((t.device.type != dlpack::kCpu && !(or_cuda && t.device.type == dlpack::kCuda)) ||
        t.ndim > NPY_MAXDIMS || t.dtype.lanes != 1 || !find_dtype(t.dtype.code, t.dtype.bits, dtype) ||
        dtype == DType::complex32 || !torch_storage().holds(object, t) || !is_whole(object, dtype))
      return false;
    type = t.dtype;
    device = t.device;
    complex = t.dtype.code == static_cast<uint8_t>(DLPack::complex);
    view.item = bytes_of(dtype);
    view.dtype = static_cast<int>(dtype);
    view.rank = t.ndim;
    int64_t items = 1;
    for (int i = 0; i < t.ndim; ++i) {
      shape[i] = static_cast<npy_intp>(t.shape[i]);
      strides[i] = static_cast<npy_intp>(t.strides[i] * view.item);
      items *= t.shape[i];
    }
    view.shape = shape;
    view.strides = strides;
    view.address = static_cast<char*>(t.data) + t.byte_offset;
    view.writable = true;
    return t.data != nullptr || items == 0;  // zero tensors without memory have no address
  }
};

inline bool is_floating(dlpack::DataType type) {
  return type.code == static_cast<uint8_t>(DLPack::floating) ||
         type.code == static_cast<uint8_t>(DLPack::bfloat);
}

inline bool is_contiguous(const View& view) {
  if (std::find(view.shape, view.shape + view.rank, 0) != view.shape + view.rank) return true;
  int64_t stride = view.item;
  for (int i = view.rank - 1; i >= 0; --i) {
    if (view.shape[i] != 1 && view.strides[i] != stride) return false;
    stride *= view.shape[i];
  }
  return true;
}

// Returns a view of zeros with the given shape. It is one item with strides of 0.
inline View zeros_like(const View& updates, int rank, const npy_intp* shape) {
  static char zeros[kWidestBlock] = {};
  static const npy_intp steps[NPY_MAXDIMS] = {};
  View view = updates;
  view.address = zeros;
  view.rank = rank;
  view.shape = shape;
  view.strides = steps;
  return view;
}

}  // namespace gatherum
