// Binds exp, log and cumulative functions of arrays, and the floating-point mode of kernels.
#include "platform/processor.hpp"
#include "python/bindings/bindings.hpp"
#include "python/runs.hpp"

namespace gatherum {
namespace {

// Below this number of items the interpreter's lock is kept, because releasing it takes longer.
constexpr int64_t kLongArrayItems = 1 << 12;

constexpr const char* kOtherArrays = "gatherum: not the arrays of this function";

// Applies a function to each item of an array and writes the results to another array of the same size. Both
// are contiguous.
void map(const char* function, const char* value, nb::handle from, nb::handle to) {
  PyArrayObject *const in = contiguous_array(from), *const out = contiguous_array(to);
  const int64_t n = PyArray_SIZE(in);
  if (!PyArray_ISWRITEABLE(out) || PyArray_SIZE(out) != n || PyArray_ITEMSIZE(in) != PyArray_ITEMSIZE(out))
    throw nb::value_error(kOtherArrays);
  run_without_lock_if_long(n >= kLongArrayItems, error_of("gatherum: no such function of this type"),
                           [&](const gatherum_poll* poll) {
                             return gatherum_map(function, value, PyArray_DATA(in), PyArray_DATA(out), n,
                                                 poll);
                           });
}

// Writes a cumulative function of the values of each group to another array (gatherum_cumulate). All arrays
// are contiguous and have one item for each value; `factors` may be None. Returns false if the
// function is not defined for this type.
bool cumulate(const char* function, const char* value, nb::handle values, nb::handle factors,
              nb::handle groups, int64_t group_count, nb::handle to) {
  PyArrayObject *const in = contiguous_array(values), *const out = contiguous_array(to);
  PyArrayObject* const numbers = contiguous_array(groups);
  PyArrayObject* const scales = factors.is_none() ? in : contiguous_array(factors);
  const int64_t n = PyArray_SIZE(in);
  for (PyArrayObject* const array : {scales, out})
    if (PyArray_SIZE(array) != n || PyArray_ITEMSIZE(array) != PyArray_ITEMSIZE(in))
      throw nb::value_error(kOtherArrays);
  if (!PyArray_ISWRITEABLE(out) || PyArray_SIZE(numbers) != n || !PyArray_ISSIGNED(numbers))
    throw nb::value_error(kOtherArrays);
  const gatherum_cumulation of = {function,
                                  value,
                                  PyArray_DATA(in),
                                  factors.is_none() ? nullptr : PyArray_DATA(scales),
                                  PyArray_DATA(numbers),
                                  PyArray_ITEMSIZE(numbers),
                                  group_count};
  bool applies = true;
  run_without_lock_if_long(n >= kLongArrayItems, error_of("gatherum: not the groups of this function"),
                           [&](const gatherum_poll* poll) {
                             const auto status = gatherum_cumulate(&of, PyArray_DATA(out), n, poll);
                             applies = status != GATHERUM_INVALID_PROGRAM;
                             return applies ? status : GATHERUM_OK;
                           });
  return applies;
}

// Writes the positions of values to `order`, in the order of gatherum_order. `values` may be None. Returns
// false if values of this dtype have no order.
bool order(const char* value, nb::handle values, nb::handle groups, int64_t group_count, nb::handle order) {
  PyArrayObject *const numbers = contiguous_array(groups), *const out = contiguous_array(order);
  PyArrayObject* const in = values.is_none() ? numbers : contiguous_array(values);
  const int64_t n = PyArray_SIZE(numbers);
  for (PyArrayObject* const array : {numbers, out})
    if (PyArray_TYPE(array) != NPY_INT64 || PyArray_SIZE(array) != n || PyArray_SIZE(in) != n)
      throw nb::value_error(kOtherArrays);
  if (!PyArray_ISWRITEABLE(out)) throw nb::value_error(kOtherArrays);
  const gatherum_grouped_values of = {value, values.is_none() ? nullptr : PyArray_DATA(in),
                                      static_cast<const int64_t*>(PyArray_DATA(numbers)), group_count};
  bool applies = true;
  gatherum_error error{};
  run_without_lock_if_long(n >= kLongArrayItems, error, [&](const gatherum_poll* poll) {
    const auto status = gatherum_order(&of, static_cast<int64_t*>(PyArray_DATA(out)), n, poll, &error);
    applies = status != GATHERUM_INVALID_PROGRAM;
    if (status == GATHERUM_INVALID_INDEX) error.message = "gatherum: `groups` changed during the call";
    return !applies ? GATHERUM_OK : status == GATHERUM_INVALID_INDEX ? GATHERUM_INVALID_CALL : status;
  });
  return applies;
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
  m.def("cumulate", &cumulate, nb::arg("function"), nb::arg("value"), nb::arg("values"),
        nb::arg("factors").none(), nb::arg("groups"), nb::arg("group_count"), nb::arg("to"));
  m.def("order", &order, nb::arg("value"), nb::arg("values").none(), nb::arg("groups"),
        nb::arg("group_count"), nb::arg("order"));
}

}  // namespace gatherum
