// Module functions with a fixed number of positional arguments, as plain CPython functions (METH_FASTCALL): a
// nanobind call with the same number of arguments takes twice as long.
#pragma once

#include "python/guarded.hpp"

namespace gatherum {

// Defines a function that passes its N arguments to Body(const nb::handle*). `described` is the signature for
// Python's inspect module: "name(a, b, /)\n--\n\n".
template <size_t N, auto Body>
void def_positional(nb::module_& m, const char* name, const char* described) {
  static PyMethodDef method = {name, nullptr, METH_FASTCALL, described};
  const auto function = [](PyObject*, PyObject* const* arguments, Py_ssize_t n) -> PyObject* {
    if (n != static_cast<Py_ssize_t>(N))
      return PyErr_Format(PyExc_TypeError, "gatherum: %s takes %zd arguments here, got %zd", method.ml_name,
                          static_cast<Py_ssize_t>(N), n);
    static_assert(sizeof(nb::handle) == sizeof(PyObject*));  // a handle is just a pointer
    return guarded([arguments] { return Body(reinterpret_cast<const nb::handle*>(arguments)); });
  };
  PyObject* (*const vectorcall)(PyObject*, PyObject* const*, Py_ssize_t) = function;
  method.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(vectorcall));
  m.attr(name) = checked(PyCFunction_New(&method, nullptr));
}

}  // namespace gatherum
