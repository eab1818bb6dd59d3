// The torch objects that the core uses, and torch's state.
#pragma once

#include <algorithm>
#include <vector>

#include "python/torch/dlpack.hpp"
#include "python/torch/tensor_storage.hpp"
#include "python/torch/torch_query.hpp"

namespace gatherum {

// The objects that torch's adapter has passed, once.
struct Torch {
  const dlpack::ExchangeApi* api = nullptr;
  nb::object tensor, parameter;      // the types
  nb::object int8, uint8;            // torch's dtypes that use the whole byte; others of the same width use
                                     // fewer bits
  std::vector<TorchQuery> watchers;  // whether something observes calls, such as a dispatch mode
  TorchQuery grad_enabled, requires_grad, is_neg;
  nb::object record;        // makes a call that records a gradient
  nb::object record_total;  // attaches the gradient to the result of a scatter into zeros
  nb::object forward_mode;  // a module with the level of forward mode, -1 for none
  nb::object refuse;        // raises for an operand without readable memory
};

inline Torch& torch() {
  static auto* t = new Torch;
  return *t;
}

inline TensorStorage& torch_storage() {
  static auto* s = new TensorStorage;
  return *s;
}

// Returns true if an object is a torch tensor or Parameter, but no other subclass. False until torch's
// adapter is set.
bool is_tensor(nb::handle object);

// Returns true if a level of forward mode is active, so that a tensor may carry a tangent.
inline bool in_forward_mode() {
  static PyObject* const name = kept_text("_current_level");
  PyObject* level = PyDict_GetItemWithError(PyModule_GetDict(torch().forward_mode.ptr()), name);
  if (level == nullptr) nb::raise_python_error();
  return PyLong_AsLong(level) >= 0;
}

// Returns true if something observes torch's calls, or if a tensor may have a tangent. Tensors are then not
// plain.
inline bool is_watched() {
  const auto says_yes = [](const TorchQuery& question) { return question(); };
  const std::vector<TorchQuery>& watchers = torch().watchers;
  return std::any_of(watchers.begin(), watchers.end(), says_yes) || in_forward_mode();
}

}  // namespace gatherum
