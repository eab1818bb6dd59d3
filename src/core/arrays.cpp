// Results: ordinary arrays that own their memory. Large ones get theirs from memory.cpp through
// NumPy's own allocator hook (NEP 49), which each array remembers for when it is freed.
#include "arrays.hpp"

#include <cstdlib>
#include <cstring>

#include "memory.hpp"

namespace gatherum {
namespace {

void* allocate(void*, size_t bytes) {
  return bytes >= kLargeResult ? allocate_large(bytes) : std::malloc(bytes != 0 ? bytes : 1);
}

void* allocate_zeroed(void*, size_t count, size_t item) {
  if (item != 0 && count > SIZE_MAX / item) return nullptr;
  void* p = allocate(nullptr, count * item);
  if (p != nullptr) std::memset(p, 0, count * item);
  return p;
}

void release(void*, void* p, size_t) {
  if (p != nullptr && !free_large(p)) std::free(p);
}

// ndarray.resize: only ever from one size to another of the same array.
void* reallocate(void*, void* p, size_t bytes) {
  const size_t had = p == nullptr ? 0 : resize_large(p, bytes);
  if (had == 0) return std::realloc(p, bytes != 0 ? bytes : 1);
  if (bytes <= had) return p;
  void* fresh = allocate(nullptr, bytes);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, p, had);
  free_large(p);
  return fresh;
}

PyDataMem_Handler handler = {"gatherum", 1, {nullptr, allocate, allocate_zeroed, reallocate, release}};

PyObject* handler_capsule() {
  static PyObject* capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
  return capsule;
}

bool is_large(const PyArray_Descr* dtype, int rank, const npy_intp* shape) {
  size_t bytes = static_cast<size_t>(PyDataType_ELSIZE(dtype));
  for (int i = 0; i < rank; ++i) bytes *= static_cast<size_t>(shape[i]);  // the plan excludes overflow
  return bytes >= kLargeResult;
}

}  // namespace

// NumPy makes one-character strings of empty ones wherever it allocates; as a field they stay empty.
nb::object new_empty_strings(PyArray_Descr* dtype, int rank, const npy_intp* shape) {
  nb::list extents, fields;
  for (int i = 0; i < rank; ++i) extents.append(static_cast<long long>(shape[i]));
  fields.append(nb::make_tuple("text", nb::borrow(reinterpret_cast<PyObject*>(dtype))));
  const nb::object records = nb::module_::import_("numpy").attr("zeros")(nb::tuple(extents), fields);
  return records[nb::str("text")];
}

nb::object new_array(PyArray_Descr* dtype, int rank, const npy_intp* shape) {
  if (PyDataType_ELSIZE(dtype) == 0 && PyDataType_ISSTRING(dtype))
    return new_empty_strings(dtype, rank, shape);
  PyObject* previous = nullptr;
  const bool large = is_large(dtype, rank, shape);
  if (large && (previous = PyDataMem_SetHandler(handler_capsule())) == nullptr) nb::raise_python_error();
  Py_INCREF(reinterpret_cast<PyObject*>(dtype));
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, dtype, rank, shape, nullptr, nullptr, 0, nullptr);
  if (large) {
    PyObject* ours = PyDataMem_SetHandler(previous);
    Py_XDECREF(ours);
    Py_DECREF(previous);
  }
  if (array == nullptr) nb::raise_python_error();
  return nb::steal(array);
}

}  // namespace gatherum
