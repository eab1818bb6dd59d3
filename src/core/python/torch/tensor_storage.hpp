// Checks that tensors are inside their storage. The storage of a tensor can become smaller, and torch does
// not check the tensor again: `tensor.untyped_storage().resize_(0)` is the usual way to free the memory of
// parameters.
#pragma once

#include <cstring>

#include "python/numpy/arrays.hpp"
#include "python/torch/dlpack.hpp"

namespace gatherum {

class TensorStorage {
 public:
  // `size` and `offset` are the addresses of C functions of torch's stable interface, or 0. These functions
  // return in a few nanoseconds. Their argument is the address of a tensor's handle inside its Python object.
  // The position of `handle` in `example` gives the position of a handle in such an object. If a function or
  // the handle is not found, the Python function `measure` is used.
  void find(intptr_t size, intptr_t offset, nb::handle example, intptr_t handle, nb::handle measure) {
    measure_ = nb::borrow(measure);
    const auto* const object = reinterpret_cast<const char*>(example.ptr());
    const auto end = static_cast<size_t>(Py_TYPE(example.ptr())->tp_basicsize);
    handle_offset_ = sizeof(PyObject);
    while (handle_offset_ + sizeof handle <= end &&
           std::memcmp(object + handle_offset_, &handle, sizeof handle) != 0)
      handle_offset_ += sizeof handle;
    const bool usable = size != 0 && offset != 0 && handle_offset_ + sizeof handle <= end;
    size_ = usable ? reinterpret_cast<Getter>(size) : nullptr;
    offset_ = usable ? reinterpret_cast<Getter>(offset) : nullptr;
  }

  // Returns true if all elements of a tensor are inside its storage. Torch's strides are never negative.
  bool holds(nb::handle tensor, const dlpack::Tensor& t) const {
    int64_t last = 0;  // in items
    for (int i = 0; i < t.ndim; ++i) {
      if (t.shape[i] == 0) return true;
      last += (t.shape[i] - 1) * t.strides[i];
    }
    const int64_t item = (t.dtype.bits * t.dtype.lanes + 7) / 8;
    return (last + 1) * item <= bytes_behind(tensor, item);
  }

 private:
  using Getter = int32_t (*)(void* handle, int64_t* value);

  // Returns the number of bytes from a tensor's first element to the end of its storage, or a negative number
  // for a tensor without storage.
  int64_t bytes_behind(nb::handle tensor, int64_t item) const {
    if (size_ == nullptr) return nb::cast<int64_t>(measure_(tensor));
    void* const handle = reinterpret_cast<char*>(tensor.ptr()) + handle_offset_;
    int64_t size = 0, offset = 0;
    if (size_(handle, &size) != 0 || offset_(handle, &offset) != 0) return -1;
    return size - offset * item;
  }

  Getter size_ = nullptr, offset_ = nullptr;
  size_t handle_offset_ = 0;
  nb::object measure_;
};

}  // namespace gatherum
