// Keeps C++ exceptions out of C callers: a failed allocation becomes MemoryError.
#pragma once

#include <new>
#include <utility>

#include "python/numpy/arrays.hpp"

namespace gatherum {

// Returns the result of body(), or null with Python's exception set.
template <class Body>
PyObject* guarded(const Body& body) {
  try {
    return body().release().ptr();
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError,
                    e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

// Allocates an object of a class that nanobind binds. nanobind registers it in a table that may have to grow,
// and does not catch exceptions there.
inline PyObject* new_guarded(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([type] { return nb::inst_alloc(reinterpret_cast<PyObject*>(type)); });
}
inline PyType_Slot guarded_slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_guarded)}, {0, nullptr}};

// Creates an object of such a class. (nb::cast of a C++ object does not catch exceptions either.)
template <class T, class... Arguments>
nb::object make_bound(Arguments&&... arguments) {
  nb::object object = nb::inst_alloc(nb::type<T>());
  new (nb::inst_ptr<T>(object)) T(std::forward<Arguments>(arguments)...);
  nb::inst_mark_ready(object);
  return object;
}

}  // namespace gatherum
