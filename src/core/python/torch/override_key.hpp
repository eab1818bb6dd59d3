// The arguments of a call by torch's dispatcher, without the values in its tensors.
#pragma once

#include <memory>
#include <vector>

#include "python/plan_table.hpp"
#include "python/torch/tensor_view.hpp"

namespace gatherum {

// The words that distinguish calls to one operator, and the tensors of the call in their order. The words
// also record which tensors have the same address.
class OverrideKey {
 public:
  struct Argument {
    nb::handle object;
    char* address;  // null for a tensor without elements
    int dtype, rank;
    const char *low, *high;  // the bytes from the first to the last element
  };

  // Returns false for a call with many arguments, or with arguments other than plain tensors in host memory,
  // lists of such tensors, numbers and strings.
  bool read(PyObject* positional, PyObject* named);

  const int64_t* words() const { return words_; }
  int size() const { return n_; }
  uint64_t hash() const { return hash_of(words_, n_); }

  const Argument& tensor(int i) const { return tensors_[i]; }
  const Argument& last_tensor() const { return tensors_[tensor_count_ - 1]; }
  // Returns the number of the first tensor with this address and dtype, or -1.
  int tensor_at(const char* address, int dtype) const;
  // Returns true if the memory of a tensor intersects a tensor with a different address or dtype.
  bool meets_others(int tensor) const;
  nb::handle positional() const { return positional_; }

 private:
  static constexpr int kMostWords = 256, kMostTensors = 16;
  static constexpr int kLongest = 2 * NPY_MAXDIMS + 1;  // the most words of an argument
  // The first word of an argument that is not a tensor. The first word of a tensor is smaller.
  enum class Tag : int64_t { none = int64_t{1} << 32, no, yes, integer, real, complex, text, list };

  bool add(PyObject* argument);
  bool add_tensor(PyObject* tensor);
  bool add_text(PyObject* text);
  bool add_items(PyObject* const* items, Py_ssize_t count);
  void add(Tag tag) { words_[n_++] = static_cast<int64_t>(tag); }
  void add(double value) { std::memcpy(&words_[n_++], &value, sizeof value); }

  int n_ = 0, tensor_count_ = 0;
  int64_t words_[kMostWords + kLongest];
  Argument tensors_[kMostTensors];
  nb::handle positional_;
};

// How a remembered call runs if its tensors contain different values.
class RememberedCall {
 public:
  virtual ~RememberedCall() = default;
  // Returns the result, or an invalid object if Python has to run the call. Nothing is written then.
  virtual nb::object run(const OverrideKey& call, nb::handle torch_kernel) const = 0;
};
using Remembered = std::shared_ptr<const RememberedCall>;

// The fields of the description of a call, which is a tuple.
class CallFields {
 public:
  explicit CallFields(const nb::tuple& tuple) : tuple_(tuple.ptr()) {}
  // Throws an error if Python describes calls with fields other than those that the core reads.
  void check_count(Py_ssize_t expected) const {
    if (PyTuple_GET_SIZE(tuple_) != expected) throw nb::value_error("the fields of a call have changed");
  }
  nb::handle operator[](int i) const { return PyTuple_GET_ITEM(tuple_, i); }
  int64_t number(int i) const { return PyLong_AsLongLong(PyTuple_GET_ITEM(tuple_, i)); }

 private:
  PyObject* tuple_;
};

// Returns null for a call that the core does not remember.
Remembered remember_scatter(const OverrideKey& call, const CallFields& fields, nb::handle target);
Remembered remember_bags(const OverrideKey& call, const CallFields& fields);

}  // namespace gatherum
