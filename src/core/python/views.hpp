// Views: the address, dtype, shape and strides of an operand, NumPy's or another framework's.
#pragma once

#include <array>

#include "include/gatherum.h"
#include "model/dtypes.hpp"
#include "python/numpy/arrays.hpp"

namespace gatherum {

inline constexpr int kOperands = 4;  // data, indices, updates, out
inline constexpr int kNoDType = -1;

// An operand; one that is not given has rank -1.
struct View {
  char* address = nullptr;
  int rank = -1;
  const npy_intp* shape = nullptr;
  const npy_intp* strides = nullptr;  // in bytes
  int dtype = kNoDType;               // a DType; kNoDType: what `numpy` says
  int64_t item = 0;                   // bytes of an element
  bool writable = false;
  PyArray_Descr* numpy = nullptr;  // of an array of NumPy

  bool given() const { return rank >= 0; }
};
using Views = std::array<View, kOperands>;
using OperandHandles = std::array<nb::handle, kOperands>;  // None where there is none

// NumPy's own object of each of its dtypes, and our number of it.
struct Builtin {
  PyArray_Descr* numpy = nullptr;
  int dtype = kNoDType;
};
inline std::array<Builtin, NPY_HALF + 1> builtins;
void find_builtins();  // at import

// The dtype of NumPy's arrays, where it is one of ours in native byte order; kNoDType for any other.
int find_dtype(PyArray_Descr* dtype);
inline int dtype_of(PyArray_Descr* dtype) {
  const auto number = static_cast<size_t>(dtype->type_num);
  return number < builtins.size() && builtins[number].numpy == dtype ? builtins[number].dtype
                                                                     : find_dtype(dtype);
}

inline View view_of(PyArrayObject* a) {
  PyArray_Descr* dtype = PyArray_DESCR(a);
  return {PyArray_BYTES(a),
          PyArray_NDIM(a),
          PyArray_DIMS(a),
          PyArray_STRIDES(a),
          dtype_of(dtype),
          static_cast<int64_t>(PyDataType_ELSIZE(dtype)),
          PyArray_ISWRITEABLE(a) != 0,
          dtype};
}

// Arrays as views: only as long as no Python code runs, which can give an array another shape.
inline Views views_of(const OperandHandles& operands) {
  const auto view = [&](size_t i) { return operands[i].is_none() ? View{} : view_of(as_array(operands[i])); };
  return {view(0), view(1), view(2), view(3)};
}

// Whether two operands are the same elements.
bool is_same_place(const View& a, const View& b);
// Whether the bytes of two operands may be the same ones: whether the stretches that they lie in meet.
bool may_overlap(const View& a, const View& b);
// All the bytes of an operand.
gatherum_buffer memory_of(const View& view);
// An array of NumPy on the memory of a view, which it does not own; None for what is not given.
nb::object array_on(const View& view);
// (shape, dtype of ours, strides) for Python, None for what is not given.
nb::object described(const View& view);

}  // namespace gatherum
