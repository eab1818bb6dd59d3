// The first step of every call: finds the code that runs the call, by the types of its operands.
#include "python/dispatch.hpp"

#include <algorithm>
#include <utility>

#include "platform/system.hpp"
#include "python/callbacks.hpp"
#include "python/device/device_arrays.hpp"
#include "python/jax/jax_call_cache.hpp"
#include "python/numpy/array_calls.hpp"
#include "python/plan_table.hpp"
#include "python/runs.hpp"
#include "python/torch/tensors.hpp"
#include "python/torch/torch_state.hpp"

namespace gatherum {

Callbacks& callbacks() {
  static auto* functions = new Callbacks;
  return *functions;
}

namespace {

// Converts a list of Python integers, or a list of such lists of equal length, to an int64 array. Returns an
// empty object for any other list, which Python then converts.
nb::object array_of_integers(nb::handle list) {
  if (PyList_GET_SIZE(list.ptr()) == 0) return {};
  const bool nested = PyList_CheckExact(PyList_GET_ITEM(list.ptr(), 0));
  const npy_intp shape[] = {PyList_GET_SIZE(list.ptr()),
                            nested ? PyList_GET_SIZE(PyList_GET_ITEM(list.ptr(), 0)) : 1};
  nb::object array = checked(PyArray_SimpleNew(nested ? 2 : 1, shape, NPY_INT64));
  auto* to = reinterpret_cast<int64_t*>(PyArray_BYTES(as_array(array)));
  const auto read = [&to](PyObject* item) {
    int overflow = 0;
    if (!PyLong_CheckExact(item)) return false;
    *to++ = PyLong_AsLongLongAndOverflow(item, &overflow);
    return overflow == 0;
  };
  for (npy_intp i = 0; i < shape[0]; ++i) {
    PyObject* row = PyList_GET_ITEM(list.ptr(), i);
    if (nested && (!PyList_CheckExact(row) || PyList_GET_SIZE(row) != shape[1])) return {};
    for (npy_intp j = 0; j < shape[1]; ++j)
      if (!read(nested ? PyList_GET_ITEM(row, j) : row)) return {};
  }
  return array;
}

template <size_t... I>
nb::object call_with(const nb::object& function, const nb::handle* arguments, std::index_sequence<I...>) {
  return function(arguments[I]...);
}

// Calls Python to convert and check the arguments, and to run the call.
GATHERUM_NOINLINE nb::object convert_in_python(const nb::handle* arguments) {
  return call_with(callbacks().convert_and_run, arguments, std::make_index_sequence<kArgumentCount>());
}

// Runs a call with the function that ran the last call on such arrays. Returns an empty object if there is no
// such function.
nb::object replay_jax_call(const nb::handle* arguments) {
  if (!arguments[kOut].is_none()) return {};
  return replay({arguments[kOp],
                 arguments[kData],
                 arguments[kIndices],
                 arguments[kUpdates],
                 {arguments[kAxis], arguments[kReduction], arguments[kIncludeSelf], arguments[kMode],
                  arguments[kNegative], arguments[kFill]}});
}

// Runs a call on NumPy arrays. Calls on all other values run in Python.
nb::object run_on_arrays(const nb::handle* arguments) {
  nb::object result = call_on_arrays(arguments);
  if (!result.is_valid()) result = convert_in_python(arguments);
  return result;
}

}  // namespace

nb::object dispatch_call(const nb::handle* arguments) {
  if (!is_ndarray_or_memmap(arguments[kData].ptr())) {
    nb::object result;
    if (is_tensor(arguments[kData]) && fills_with_zeros(arguments[kFill]))
      result = call_on_plain_tensors(arguments);
    if (!result.is_valid()) result = call_on_device_arrays(arguments);
    if (!result.is_valid()) result = replay_jax_call(arguments);
    if (result.is_valid()) return result;
  }
  if (!PyList_CheckExact(arguments[kIndices].ptr())) return run_on_arrays(arguments);
  const nb::object listed = array_of_integers(arguments[kIndices]);
  if (!listed.is_valid()) return run_on_arrays(arguments);
  Arguments converted;
  std::copy_n(arguments, kArgumentCount, converted.begin());
  converted[kIndices] = listed;
  return run_on_arrays(converted.data());
}

void release_plans() {
  take_plans();
  forget_calls();
}

}  // namespace gatherum
