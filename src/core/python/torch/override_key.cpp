#include "python/torch/override_key.hpp"

#include "python/torch/tensors.hpp"

namespace gatherum {

bool OverrideKey::read(PyObject* positional, PyObject* named) {
  positional_ = positional;
  if (!add_items(&PyTuple_GET_ITEM(positional, 0), PyTuple_GET_SIZE(positional))) return false;
  PyObject *name, *value;
  for (Py_ssize_t at = 0; named != nullptr && PyDict_Next(named, &at, &name, &value) != 0;)
    if (!add(name) || !add(value)) return false;
  return true;
}

bool OverrideKey::add(PyObject* argument) {
  if (n_ >= kMostWords) return false;
  if (is_tensor(argument)) return add_tensor(argument);
  if (argument == Py_None) return add(Tag::none), true;
  if (PyBool_Check(argument)) return add(argument == Py_True ? Tag::yes : Tag::no), true;
  if (PyUnicode_CheckExact(argument)) return add_text(argument);
  if (PyList_CheckExact(argument)) {
    add(Tag::list);
    words_[n_++] = PyList_GET_SIZE(argument);
    return add_items(PySequence_Fast_ITEMS(argument), PyList_GET_SIZE(argument));
  }
  if (PyLong_CheckExact(argument)) {
    int overflow = 0;
    add(Tag::integer);
    words_[n_++] = PyLong_AsLongLongAndOverflow(argument, &overflow);
    return overflow == 0;
  }
  if (PyFloat_CheckExact(argument)) return add(Tag::real), add(PyFloat_AS_DOUBLE(argument)), true;
  return false;
}

bool OverrideKey::add_items(PyObject* const* items, Py_ssize_t count) {
  return std::all_of(items, items + count, [this](PyObject* item) { return add(item); });
}

bool OverrideKey::add_tensor(PyObject* object) {
  TensorView tensor;
  View view;
  if (tensor_count_ == kMostTensors || !tensor.read(object, view)) return false;
  const bool is_empty = std::find(view.shape, view.shape + view.rank, 0) != view.shape + view.rank;
  char* const address = is_empty ? nullptr : view.address;
  words_[n_++] = tensor_at(address, view.dtype);
  Argument& argument = tensors_[tensor_count_++] = {object, address, view.dtype, view.rank, address, address};
  for (int i = 0; i < view.rank && !is_empty; ++i) {
    const npy_intp reach = (view.shape[i] - 1) * view.strides[i];
    (reach < 0 ? argument.low : argument.high) += reach;
  }
  argument.high += is_empty ? 0 : view.item;
  each_word(view, [this](int64_t word) { words_[n_++] = word; });
  return true;
}

bool OverrideKey::add_text(PyObject* text) {
  Py_ssize_t size = 0;
  const char* const characters = PyUnicode_AsUTF8AndSize(text, &size);
  if (characters == nullptr) PyErr_Clear();
  constexpr Py_ssize_t most = (kLongest - 2) * static_cast<Py_ssize_t>(sizeof(int64_t));
  if (characters == nullptr || size > most) return false;
  add(Tag::text);
  words_[n_++] = size;
  for (Py_ssize_t at = 0; at < size; at += sizeof(int64_t)) {
    int64_t& word = words_[n_++] = 0;
    std::memcpy(&word, characters + at, std::min<size_t>(sizeof word, static_cast<size_t>(size - at)));
  }
  return true;
}

int OverrideKey::tensor_at(const char* address, int dtype) const {
  const Argument* const end = tensors_ + tensor_count_;
  const Argument* const at = std::find_if(tensors_, end, [&](const Argument& tensor) {
    return address != nullptr && tensor.address == address && tensor.dtype == dtype;
  });
  return at == end ? -1 : static_cast<int>(at - tensors_);
}

bool OverrideKey::meets_others(int tensor) const {
  const Argument& one = tensors_[tensor];
  return std::any_of(tensors_, tensors_ + tensor_count_, [&](const Argument& other) {
    const bool is_same = other.address == one.address && other.dtype == one.dtype;
    return !is_same && other.low < one.high && one.low < other.high;
  });
}

}  // namespace gatherum
