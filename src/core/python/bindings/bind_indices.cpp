// Binds the functions that map arrays of indices to the elements that they address.
#include "python/bindings/bindings.hpp"
#include "python/runs.hpp"

namespace gatherum {
namespace {

// Runs `body(indices, poll)` on the memory of an array, which the caller keeps alive and in place.
template <class Body>
gatherum_status run_on_indices(const BoundProgram& program, nb::handle indices, const gatherum_error& error,
                               const Body& body) {
  const char* const start = PyArray_BYTES(checked_array(indices));
  return run_without_lock_if_long(gatherum_program_is_long(program.core()) != 0, error,
                                  [&](const gatherum_poll* poll) { return body(start, poll); });
}

// Returns (numbers, invalid). `numbers` contains the number of the element that each tuple addresses, in
// row-major order, or -1 if the tuple is invalid. `invalid` is the number of invalid tuples.
nb::object element_numbers(const BoundProgram& program, nb::handle indices, int64_t tuples) {
  const auto shape = static_cast<npy_intp>(tuples);
  const nb::object numbers = new_array(PyArray_DescrFromType(NPY_INT64), 1, &shape);
  auto* const to = reinterpret_cast<int64_t*>(PyArray_BYTES(as_array(numbers)));
  int64_t invalid = 0;
  const auto write = [&](const char* start, const gatherum_poll*) {
    invalid = gatherum_number(program.core(), start, to);
    return invalid < 0 ? GATHERUM_NO_MEMORY : GATHERUM_OK;  // new memory shares nothing with the indices
  };
  if (tuples > 0) run_on_indices(program, indices, {}, write);
  return nb::make_tuple(numbers, invalid);
}

// Returns (position, component, value) of the first invalid index, or None if there is none. The position is
// -1 if the index has changed meanwhile.
nb::object first_invalid(const BoundProgram& program, nb::handle indices) {
  gatherum_error error{};
  const auto find = [&](const char* start, const gatherum_poll* poll) {
    return gatherum_first_invalid(program.core(), start, poll, &error);
  };
  if (run_on_indices(program, indices, error, find) == GATHERUM_OK) return nb::none();
  return nb::make_tuple(error.position, error.component, index_value(program, error.value));
}

}  // namespace

void bind_indices(nb::module_& m) {
  m.def("element_numbers", &element_numbers, nb::arg("program"), nb::arg("indices"), nb::arg("tuples"));
  m.def("first_invalid", &first_invalid, nb::arg("program"), nb::arg("indices"));
}

}  // namespace gatherum
