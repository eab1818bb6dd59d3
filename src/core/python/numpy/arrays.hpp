// NumPy's C API for the files that touch Python objects. Exactly one of them (module.cpp) defines
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

namespace gatherum {

// Results of at least this many bytes come from the core; smaller ones from NumPy's own allocator.
inline constexpr int64_t kLargeResult = int64_t{2} << 20;

namespace nb = nanobind;

inline PyArrayObject* as_array(nb::handle h) { return reinterpret_cast<PyArrayObject*>(h.ptr()); }
// The same of what may be any object; TypeError where it is no array.
inline PyArrayObject* checked_array(nb::handle h) {
  if (!PyArray_Check(h.ptr())) throw nb::type_error("gatherum: not an array");
  return as_array(h);
}
inline PyArrayObject* contiguous_array(nb::handle h) {
  if (!PyArray_Check(h.ptr()) || !PyArray_ISCARRAY_RO(as_array(h)))
    throw nb::type_error("gatherum: not a contiguous array");
  return as_array(h);
}

// A new object of Python's, or its exception where there is none.
inline nb::object checked(PyObject* made) {
  if (made == nullptr) nb::raise_python_error();
  return nb::steal(made);
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
// The same string as the one object that Python keeps of it, which an operator's name must be.
inline nb::object interned(nb::handle name) {
  if (!PyUnicode_CheckExact(name.ptr())) throw nb::type_error("gatherum: a name must be a string");
  PyObject* one = nb::borrow(name).release().ptr();
  PyUnicode_InternInPlace(&one);
  return nb::steal(one);
}
// A text of which there is one, for the life of the process.
inline PyObject* kept_text(const char* characters) {
  return checked(PyUnicode_InternFromString(characters)).release().ptr();
}

// A new C-contiguous array of that shape; large ones on huge pages, from the cache where it can.
nb::object new_array(PyArray_Descr* dtype, int rank, const npy_intp* shape);

}  // namespace gatherum
