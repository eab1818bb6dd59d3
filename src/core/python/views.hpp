// Views: the address, dtype, shape and strides of an operand from NumPy or another framework.
#pragma once

#include <array>

#include "engine/overlaps.hpp"
#include "include/gatherum.h"
#include "model/dtypes.hpp"
#include "python/numpy/arrays.hpp"

namespace gatherum {

inline constexpr int kOperandCount = 4;  // data, indices, updates, out
inline constexpr int kSwapped = 64;
static_assert(kDTypeCount <= kSwapped);

// An operand. A missing operand has rank -1.
struct View {
  char* address = nullptr;
  int rank = -1;
  const npy_intp* shape = nullptr;
  const npy_intp* strides = nullptr;  // in bytes
  int dtype = kNoDType;  // a DType, plus kSwapped in the opposite byte order; kNoDType: see `numpy`
  int64_t item = 0;      // bytes of an element
  bool writable = false;
  PyArray_Descr* numpy = nullptr;  // the dtype of a NumPy array

  bool is_present() const { return rank >= 0; }
};
using Views = std::array<View, kOperandCount>;
using OperandHandles = std::array<nb::handle, kOperandCount>;  // None for a missing operand

// The object of each NumPy dtype, and its number in dtypes.hpp.
struct Builtin {
  PyArray_Descr* numpy = nullptr;
  int dtype = kNoDType;
};
inline std::array<Builtin, NPY_HALF + 1> builtins;
void find_builtins();  // at import

// Returns the number of a NumPy dtype (see View::dtype), or kNoDType if it is not one of the core's dtypes.
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

// Views of arrays. They are valid only until Python code runs, because Python code can change the shape of an
// array.
inline Views views_of(const OperandHandles& operands) {
  const auto view = [&](size_t i) { return operands[i].is_none() ? View{} : view_of(as_array(operands[i])); };
  return {view(0), view(1), view(2), view(3)};
}

// Returns true if two operands consist of the same elements in memory.
bool is_same_place(const View& a, const View& b);
// Returns true if two operands may share bytes: the ranges of their addresses intersect.
bool may_overlap(const View& a, const View& b);
// All the bytes of an operand.
gatherum_buffer memory_of(const View& view);
// The same without the bytes between elements.
Footprint footprint_of(const View& view);

// Returns true if `out` is the data of a scatter, which then works in place. Only scatters have updates.
bool is_in_place(const Views& operands);
// Returns the number of the first operand that shares memory with `out`, or -1. In a call in place, `out` is
// the data.
int first_overlap(const Views& operands);

}  // namespace gatherum
