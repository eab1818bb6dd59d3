// NumPy's C API for the files that use Python objects. Exactly one of them (module.cpp) defines
// GATHERUM_OWNS_NUMPY_API and imports it.
#pragma once

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL gatherum_numpy_api
#ifndef GATHERUM_OWNS_NUMPY_API
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "engine/memory.hpp"

namespace gatherum {

namespace nb = nanobind;

inline PyArrayObject* as_array(nb::handle h) { return reinterpret_cast<PyArrayObject*>(h.ptr()); }
// The same for any object. Raises TypeError if it is not an array.
inline PyArrayObject* checked_array(nb::handle h) {
  if (!PyArray_Check(h.ptr())) throw nb::type_error("gatherum: not an array");
  return as_array(h);
}
inline PyArrayObject* contiguous_array(nb::handle h) {
  if (!PyArray_Check(h.ptr()) || !PyArray_ISCARRAY_RO(as_array(h)))
    throw nb::type_error("gatherum: not a contiguous array");
  return as_array(h);
}

// Takes ownership of a new Python object. Throws Python's exception if it is null.
inline nb::object checked(PyObject* object) {
  if (object == nullptr) nb::raise_python_error();
  return nb::steal(object);
}
inline nb::object text(const char* characters) { return checked(PyUnicode_FromString(characters)); }
// Integers as a tuple.
template <class T>
nb::object tuple_of(const T* numbers, int64_t n) {
  nb::object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(n)));
  for (int64_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(tuple.ptr(), i, checked(PyLong_FromLongLong(numbers[i])).release().ptr());
  return tuple;
}
// Returns the interned string equal to `name`. An operator's name must be interned.
inline nb::object interned(nb::handle name) {
  if (!PyUnicode_CheckExact(name.ptr())) throw nb::type_error("gatherum: a name must be a string");
  PyObject* one = nb::borrow(name).release().ptr();
  PyUnicode_InternInPlace(&one);
  return nb::steal(one);
}
// Returns an interned string that is never freed.
inline PyObject* kept_text(const char* characters) {
  return checked(PyUnicode_InternFromString(characters)).release().ptr();
}

// Allocates a C-contiguous array of the given shape. Large ones use huge pages, from the cache if possible.
nb::object new_array(PyArray_Descr* dtype, int rank, const npy_intp* shape);

}  // namespace gatherum
