// Tensors of torch as views of their memory, and what is asked before one is taken for no more than that.
#pragma once

#include <algorithm>
#include <vector>

#include "python/torch/dlpack.hpp"
#include "python/torch/tensor_storage.hpp"
#include "python/torch/torch_query.hpp"
#include "python/views.hpp"

namespace gatherum {

// What the adapter of torch has passed, once.
struct Torch {
  const dlpack::ExchangeApi* api = nullptr;
  nb::object tensor, parameter;      // the types
  nb::object int8, uint8;            // torch's dtypes of all bytes; it has others of fewer bits, as wide
  std::vector<TorchQuery> watchers;  // whether something watches calls, such as a dispatch mode
  TorchQuery grad_enabled, requires_grad, is_neg;
  nb::object record;        // makes a call of which a gradient is wanted
  nb::object record_total;  // gives the result of a scatter into zeros its gradient
  nb::object forward_mode;  // a module with the level of forward mode, -1 for none
  nb::object refuse;        // raises for an operand that has no memory to be read
};

inline Torch& torch() {
  static auto* t = new Torch;
  return *t;
}

inline TensorStorage& torch_storage() {
  static auto* s = new TensorStorage;
  return *s;
}

// Whether a level of forward mode is entered, so that a tensor may carry a tangent.
inline bool in_forward_mode() {
  static PyObject* const name = kept_text("_current_level");
  PyObject* level = PyDict_GetItemWithError(PyModule_GetDict(torch().forward_mode.ptr()), name);
  if (level == nullptr) nb::raise_python_error();
  return PyLong_AsLong(level) >= 0;
}

// DLPack calls torch.int4 and the like integers of 8 bits, of which all are used.
inline bool is_whole(nb::handle tensor, DType dtype) {
  if (dtype != DType::int8 && dtype != DType::uint8) return true;
  static PyObject* const name = kept_text("dtype");
  const nb::object found = checked(PyObject_GetAttr(tensor.ptr(), name));
  return found.is(dtype == DType::int8 ? torch().int8 : torch().uint8);
}

// A tensor's memory as the core sees it. Copies of its sizes: they are the tensor's own, which may change.
struct TensorView {
  npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
  dlpack::DataType type = {};
  bool complex = false;

  // False: it has no plain memory here, or of a dtype that the core does not have.
  bool read(nb::handle object, View& view) {
    dlpack::Tensor t;
    if (torch().api->view(object.ptr(), &t) != 0) {
      PyErr_Clear();
      return false;
    }
    DType dtype;
    if (t.device.type != dlpack::kCpu || t.ndim > NPY_MAXDIMS || t.dtype.lanes != 1 ||
        !find_dtype(t.dtype.code, t.dtype.bits, dtype) || dtype == DType::complex32 ||
        !torch_storage().holds(object, t) || !is_whole(object, dtype))
      return false;
    type = t.dtype;
    complex = t.dtype.code == static_cast<uint8_t>(Kind::complex);
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
    return t.data != nullptr || items == 0;  // zeros that are nowhere have no address
  }
};

// Whether something watches the calls of torch, or may have given a tensor a tangent: then it is more than
// its memory.
inline bool is_watched() {
  const auto says_yes = [](const TorchQuery& question) { return question(); };
  const std::vector<TorchQuery>& watchers = torch().watchers;
  return std::any_of(watchers.begin(), watchers.end(), says_yes) || in_forward_mode();
}

}  // namespace gatherum
