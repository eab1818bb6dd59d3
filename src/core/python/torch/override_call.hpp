// Calls of torch's operators as scatters, for the kernels that replace torch's inside `reproducible`.
#pragma once

#include <memory>

#include "python/call.hpp"
#include "python/plan_table.hpp"
#include "python/torch/tensor_view.hpp"
#include "python/torch/tensors.hpp"

namespace gatherum {

// The operands of an operator, in their order.
enum class OverrideForm : uint8_t {
  slices,     // index_add: data, dim, index, source, [word], alpha=
  elements,   // scatter_add: the same; the index has an element for each element of the source
  flat,       // put_: data, index, source, [accumulate]
  indexed,    // _index_put_impl_: data, list of indices, values, [accumulate]
  embedding,  // embedding_dense_backward: gradient, indices, size, padding, scale
  counts,     // bincount: labels, weights, [least size]
  bags,       // _embedding_bag
  of_bags,    // _embedding_bag_dense_backward: gradient, indices, bags, sizes, maxima, size, ...
};

// An operator of torch that a kernel replaces.
struct Override {
  OverrideForm form;
  nb::dict words;  // the reductions of the operator's words; the reduction of "" if it has no words
  bool in_place;   // the operator changes and returns its first operand
};

// The arguments of a call by torch's dispatcher, which omits arguments that have their default.
class DispatchedArguments {
 public:
  DispatchedArguments(PyObject* positional, PyObject* named)
      : positional_(positional), named_(named), untaken_(named == nullptr ? 0 : PyDict_GET_SIZE(named)) {}

  // Returns a positional argument, or null if it is omitted.
  nb::handle operator[](Py_ssize_t i) const {
    return i < PyTuple_GET_SIZE(positional_) ? PyTuple_GET_ITEM(positional_, i) : nullptr;
  }
  // Returns a keyword argument, or null if it is omitted.
  nb::handle take(PyObject* name) {
    if (untaken_ == 0) return nullptr;
    PyObject* const value = PyDict_GetItemWithError(named_, name);
    if (value == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
    if (value != nullptr) --untaken_;
    return value;
  }
  // Returns true if every keyword argument has been taken.
  bool all_taken() const { return untaken_ == 0; }

 private:
  PyObject *positional_, *named_;
  Py_ssize_t untaken_;
};

// Reads an operand of a call. Returns false if it is not a plain tensor on the host.
inline bool read_plain(nb::handle object, TensorView& tensor, View& view) {
  return object.is_valid() && is_tensor(object) && tensor.read(object, view);
}

// A call of an operator as a scatter. It owns the storage of its views.
class OverrideCall {
 public:
  // Returns false for a call that the core does not support. Operands must be plain tensors on the host.
  bool read(const Override& op, DispatchedArguments& arguments);
  // Returns true if no place is written twice, so that torch's own kernel can run the call. `read` has
  // returned false.
  bool is_without_order() const { return is_masked_; }

  enum class Outcome : uint8_t {
    done,
    declined,  // nothing is written: the core rejects the call, or an index is invalid
    planned,   // the table has a new plan. Nothing is written, because Python code may have run since `read`.
  };
  // Runs the call. If it is done, sets `result`, which is `target` for a call in place.
  Outcome run(nb::handle target, nb::object& result);

 private:
  bool read_operands(nb::handle data, nb::handle index, nb::handle source);
  bool read_scaled(DispatchedArguments& arguments);
  bool read_along_axis(DispatchedArguments& arguments, const nb::dict& words);
  bool read_slices();
  bool read_elements();
  bool read_flat(const DispatchedArguments& arguments);
  bool read_indexed(const DispatchedArguments& arguments);
  bool read_tuples(nb::handle indices, const DispatchedArguments& arguments);
  bool read_embedding(const DispatchedArguments& arguments);
  bool read_counts(const DispatchedArguments& arguments);
  bool read_bag_gradient(const DispatchedArguments& arguments);
  bool use_zeros(nb::handle size, nb::handle padding);
  bool set_attributes(PyObject* op, nb::handle axis, nb::handle reduction, nb::handle include_self,
                      bool negative);

  View& data() { return call_.operands[0]; }
  View& index() { return call_.operands[1]; }
  View& source() { return call_.operands[2]; }

  Call call_;
  TensorView data_, index_, source_;
  std::unique_ptr<int64_t[]> tuples_;
  std::unique_ptr<char[]> terms_;
  nb::object scaled_;       // the source times `alpha`
  int64_t padding_ = -1;    // the row of zeros in the gradient of an embedding
  bool is_scalar_ = false;  // the result has no dimensions
  bool is_masked_ = false;  // the only index is a mask
};

}  // namespace gatherum
