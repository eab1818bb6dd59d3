#include "bind_elementary.hpp"

#include <stdexcept>

#include "../include/gatherum.h"
#include "gil_release.hpp"

namespace gatherum {
namespace {

// Below this the interpreter's lock is kept: to give it up takes longer.
constexpr int64_t kShort = 1 << 12;

// Writes a function of each item of an array into another of the same size; both are contiguous.
void map(const char* function, const char* value, nb::handle from, nb::handle to) {
  for (nb::handle h : {from, to})
    if (!PyArray_Check(h.ptr()) || !PyArray_ISCARRAY_RO(as_array(h)))
      throw nb::type_error("gatherum: not a contiguous array");
  PyArrayObject *const in = as_array(from), *const out = as_array(to);
  const int64_t n = PyArray_SIZE(in);
  if (!PyArray_ISWRITEABLE(out) || PyArray_SIZE(out) != n || PyArray_ITEMSIZE(in) != PyArray_ITEMSIZE(out))
    throw nb::value_error("gatherum: not the arrays of this function");
  const auto run = [&](const gatherum_poll* poll) {
    return gatherum_map(function, value, PyArray_DATA(in), PyArray_DATA(out), n, poll);
  };
  const gatherum_status status = n < kShort ? run(nullptr) : run_without_lock(run);
  if (status == GATHERUM_INTERRUPTED) nb::raise_python_error();
  if (status != GATHERUM_OK) throw nb::value_error("gatherum: no such function of this type");
}

}  // namespace

void bind_elementary(nb::module_& m) {
  m.def("map", &map, nb::arg("function"), nb::arg("value"), nb::arg("from_"), nb::arg("to"));
}

}  // namespace gatherum
