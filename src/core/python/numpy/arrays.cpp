// Allocates results: ordinary arrays that own their memory. memory.cpp allocates large results through
// NumPy's allocator hook (NEP 49). Each array keeps the hook that frees it.
#include "python/numpy/arrays.hpp"

#include <cstdlib>
#include <cstring>

#include "include/gatherum.h"

namespace gatherum {
namespace {

void* allocate(void*, size_t bytes) {
  return bytes >= static_cast<size_t>(kLargeResult) ? gatherum_allocate(bytes)
                                                    : std::malloc(bytes != 0 ? bytes : 1);
}

void* allocate_zeroed(void*, size_t count, size_t item) {
  if (item != 0 && count > SIZE_MAX / item) return nullptr;
  void* p = allocate(nullptr, count * item);
  if (p != nullptr) std::memset(p, 0, count * item);
  return p;
}

void release(void*, void* p, size_t) {
  if (p != nullptr && gatherum_free(p) == 0) std::free(p);
}

// For ndarray.resize, which only changes the size of one array.
void* reallocate(void*, void* p, size_t bytes) {
  const size_t had = p == nullptr ? 0 : gatherum_resize(p, bytes);
  if (had == 0) return std::realloc(p, bytes != 0 ? bytes : 1);
  if (bytes <= had) return p;
  void* fresh = allocate(nullptr, bytes);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, p, had);
  gatherum_free(p);
  return fresh;
}

PyDataMem_Handler handler = {"gatherum", 1, {nullptr, allocate, allocate_zeroed, reallocate, release}};

PyObject* handler_capsule() {
  static PyObject* const capsule = checked(PyCapsule_New(&handler, "mem_handler", nullptr)).release().ptr();
  return capsule;
}

bool is_large(const PyArray_Descr* dtype, int rank, const npy_intp* shape) {
  size_t bytes = static_cast<size_t>(PyDataType_ELSIZE(dtype));
  for (int i = 0; i < rank; ++i) bytes *= static_cast<size_t>(shape[i]);  // the plan excludes overflow
  return bytes >= static_cast<size_t>(kLargeResult);
}

}  // namespace

// If an array of zero-length strings is created, NumPy replaces the dtype with one-character strings. As a
// field of a structure, the strings keep length zero.
nb::object new_empty_strings(PyArray_Descr* dtype, int rank, const npy_intp* shape) {
  nb::list fields;
  fields.append(nb::make_tuple("text", nb::borrow(reinterpret_cast<PyObject*>(dtype))));
  const nb::object records = nb::module_::import_("numpy").attr("zeros")(tuple_of(shape, rank), fields);
  return records[text("text")];
}

nb::object new_array(PyArray_Descr* dtype, int rank, const npy_intp* shape) {
  if (PyDataType_ELSIZE(dtype) == 0 && PyDataType_ISSTRING(dtype))
    return new_empty_strings(dtype, rank, shape);
  const bool large = is_large(dtype, rank, shape);
  // Owned from here on, because a garbage collection may run code that changes the dtype of `data`.
  nb::object owned = nb::borrow(reinterpret_cast<PyObject*>(dtype)), previous;
  if (large) previous = checked(PyDataMem_SetHandler(handler_capsule()));
  owned.release();  // PyArray_NewFromDescr takes it over
  nb::object array =
      nb::steal(PyArray_NewFromDescr(&PyArray_Type, dtype, rank, shape, nullptr, nullptr, 0, nullptr));
  if (large) {
    const nb::error_scope reason;  // the error of the failed allocation, if any
    previous = nb::steal(PyDataMem_SetHandler(previous.ptr()));
  }
  if (array.is_valid() && large && !previous.is_valid()) PyErr_NoMemory();
  if (!array.is_valid() || (large && !previous.is_valid())) nb::raise_python_error();
  return array;
}

}  // namespace gatherum
