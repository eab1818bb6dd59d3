// A snapshot of a call's operands, and references that keep their memory alive. Between the checks of a call
// and its run, Python code may change the operands: code that converts a fill value, or a finalizer that the
// garbage collector calls while a result is allocated.
#pragma once

#include <vector>

#include "python/views.hpp"

namespace gatherum {

// Addresses, dtypes, shapes and strides of operands, on which plans and the checks of `out` depend.
class OperandSnapshot {
 public:
  explicit OperandSnapshot(const OperandHandles& operands) {
    int64_t* to = words_;
    for (nb::handle h : operands)
      if (!h.is_none()) to = record(as_array(h), to);
  }

  // Returns the number of the first operand that has changed since the snapshot, or -1 if no operand has
  // changed.
  int first_change(const OperandHandles& operands) const {
    const int64_t* from = words_;
    for (int i = 0; i < kOperandCount; ++i) {
      const nb::handle h = operands[static_cast<size_t>(i)];
      if (!h.is_none() && !(from = compare(as_array(h), from))) return i;
    }
    return -1;
  }

 private:
  static int64_t address(const void* p) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(p)); }
  static int64_t properties(PyArrayObject* a) {
    return (int64_t{PyArray_ITEMSIZE(a)} << 8) + PyArray_NDIM(a) * 2 + (PyArray_ISWRITEABLE(a) ? 1 : 0);
  }

  static int64_t* record(PyArrayObject* a, int64_t* to) {
    *to++ = address(PyArray_DATA(a));
    *to++ = address(PyArray_DESCR(a));
    *to++ = properties(a);
    const int rank = PyArray_NDIM(a);
    for (int i = 0; i < rank; ++i) {  // the compiler would turn two loops into calls of memcpy, of a few
                                      // bytes each
      *to++ = PyArray_DIM(a, i);
      *to++ = PyArray_STRIDE(a, i);
    }
    return to;
  }

  // Compares an array with its words. Returns the words that follow them, or null if the array differs.
  static const int64_t* compare(PyArrayObject* a, const int64_t* from) {
    if (from[0] != address(PyArray_DATA(a)) || from[1] != address(PyArray_DESCR(a)) ||
        from[2] != properties(a))
      return nullptr;
    from += 3;
    const int rank = PyArray_NDIM(a);
    for (int i = 0; i < rank; ++i, from += 2)
      if (from[0] != PyArray_DIM(a, i) || from[1] != PyArray_STRIDE(a, i)) return nullptr;
    return from;
  }

  int64_t words_[kOperandCount * (3 + 2 * NPY_MAXDIMS)];  // only the words that the operands need are set
};

// Weak references to operands, and to the arrays that own their memory. ndarray.resize raises an error for an
// array with a weak reference, even with refcheck=False. A signal handler or another thread therefore cannot
// free the memory with ndarray.resize while a long call uses it without the interpreter's lock.
class Pins {
 public:
  explicit Pins(const OperandHandles& operands) {
    for (nb::handle h : operands)
      for (PyObject* o = h.ptr(); o != nullptr && PyArray_Check(o);
           o = PyArray_BASE(reinterpret_cast<PyArrayObject*>(o))) {
        references_.push_back(nb::steal(PyWeakref_NewRef(o, nullptr)));
        if (!references_.back().is_valid()) nb::raise_python_error();
      }
  }

 private:
  std::vector<nb::object> references_;
};

}  // namespace gatherum
