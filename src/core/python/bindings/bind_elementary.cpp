// Binds exp and log of arrays, and the floating-point mode of kernels.
#include "platform/processor.hpp"
#include "python/bindings/bindings.hpp"
#include "python/runs.hpp"

namespace gatherum {
namespace {

// Below this number of items the interpreter's lock is kept, because releasing it takes longer.
constexpr int64_t kLongArrayItems = 1 << 12;

// Applies a function to each item of an array and writes the results to another array of the same size. Both
// are contiguous.
void map(const char* function, const char* value, nb::handle from, nb::handle to) {
  PyArrayObject *const in = contiguous_array(from), *const out = contiguous_array(to);
  const int64_t n = PyArray_SIZE(in);
  if (!PyArray_ISWRITEABLE(out) || PyArray_SIZE(out) != n || PyArray_ITEMSIZE(in) != PyArray_ITEMSIZE(out))
    throw nb::value_error("gatherum: not the arrays of this function");
  run_without_lock_if_long(n >= kLongArrayItems, error_of("gatherum: no such function of this type"),
                           [&](const gatherum_poll* poll) {
                             return gatherum_map(function, value, PyArray_DATA(in), PyArray_DATA(out), n,
                                                 poll);
                           });
}

// Sets the floating-point control register as for kernels, for arithmetic outside the core, and returns its
// previous value. The result is allocated first, so a failed call leaves the register unchanged.
nb::object set_nearest() {
  const nb::object previous = nb::steal(PyLong_FromUnsignedLongLong(float_control()));
  if (!previous.is_valid()) throw nb::python_error();
  set_float_control(kNearest);
  return previous;
}

}  // namespace

void bind_elementary(nb::module_& m) {
  m.def("set_nearest", &set_nearest);
  m.def("set_float_control", &set_float_control, nb::arg("control"));
  m.def("map", &map, nb::arg("function"), nb::arg("value"), nb::arg("from_"), nb::arg("to"));
}

}  // namespace gatherum
