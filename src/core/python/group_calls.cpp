// Runs scatters for functions over groups: positions of maxima and minima, spreads, and folds that skip NaN.
#include "python/bindings/bindings.hpp"
#include "python/memory_calls.hpp"
#include "python/runs.hpp"

namespace gatherum {
namespace {

// Calls `run`, which runs a program by a function of the C interface. Returns false if the function has no
// kernel for the program.
template <class Run>
bool run_if_it_has_a_kernel(nb::handle plan, const BoundProgram& program, const Run& run) {
  bool has_kernel = true;
  run_without_lock_if_long(plan, program, [&](const gatherum_poll* poll, gatherum_error* error) {
    const gatherum_status status = run(poll, error);
    has_kernel = status != GATHERUM_INVALID_PROGRAM;
    return has_kernel ? status : GATHERUM_OK;
  });
  return has_kernel;
}

// Runs the plan of a scatter of maxima or minima on arrays or views, and writes the positions in addition to
// the result. If `out` is None, only the positions are written. Both are contiguous. Returns false if the
// core has no kernel for the call, which skips NaN.
bool extremes(nb::handle plan, nb::handle data, nb::handle indices, nb::handle updates, nb::handle out,
              nb::handle positions, int64_t none, bool skips_nan) {
  const BoundProgram& program = program_of(plan);
  const OperandHandles operands = {data, indices, updates, out};
  const Pins pins(operands), of_positions({positions, nb::none(), nb::none(), nb::none()});
  gatherum_operands buffers = {};
  buffers.data = memory_of(view_of_operand(data));
  buffers.indices = memory_of(view_of_operand(indices));
  buffers.updates = memory_of(view_of_operand(updates));
  if (!out.is_none()) buffers.out = memory_of(view_of_operand(out));
  buffers.fresh = 1;
  const gatherum_buffer position_buffer = memory_of(view_of_operand(positions));
  const auto find = skips_nan ? gatherum_extremes_skip_nan : gatherum_extremes;
  const bool has_kernel =
      run_if_it_has_a_kernel(plan, program, [&](const gatherum_poll* poll, gatherum_error* error) {
        return find(program.core(), &buffers, &position_buffer, none, poll, error);
      });
  if (!has_kernel && !skips_nan) throw nb::value_error("gatherum: not a plan of maxima or minima");
  return has_kernel;
}

// Runs the plan of a scatter of means on arrays or views, and writes the squared distances and the counts
// (gatherum_spreads, or gatherum_spreads_skip_nan). If `squares` is None, only the counts are written.
// Returns false if the core has no kernel for it.
bool spreads(nb::handle plan, nb::handle indices, nb::handle updates, nb::handle squares, nb::handle counts,
             bool skips_nan) {
  const BoundProgram& program = program_of(plan);
  const Pins pins({indices, updates, squares, counts});
  gatherum_operands buffers = {};
  buffers.indices = memory_of(view_of_operand(indices));
  buffers.updates = memory_of(view_of_operand(updates));
  const gatherum_buffer square_buffer =
                            squares.is_none() ? gatherum_buffer{} : memory_of(view_of_operand(squares)),
                        count_buffer = memory_of(view_of_operand(counts));
  const auto find = skips_nan ? gatherum_spreads_skip_nan : gatherum_spreads;
  return run_if_it_has_a_kernel(plan, program, [&](const gatherum_poll* poll, gatherum_error* error) {
    return find(program.core(), &buffers, &square_buffer, &count_buffer, poll, error);
  });
}

// Runs the plan of a scatter on arrays or views, without the updates that are NaN (gatherum_skip_nan).
// Returns false if the core has no kernel for it.
bool skip_nan(nb::handle plan, nb::handle data, nb::handle indices, nb::handle updates, nb::handle out) {
  const BoundProgram& program = program_of(plan);
  const Pins pins({data, indices, updates, out});
  gatherum_operands buffers = {};
  buffers.data = memory_of(view_of_operand(data));
  buffers.indices = memory_of(view_of_operand(indices));
  buffers.updates = memory_of(view_of_operand(updates));
  buffers.out = memory_of(view_of_operand(out));
  buffers.fresh = 1;
  return run_if_it_has_a_kernel(plan, program, [&](const gatherum_poll* poll, gatherum_error* error) {
    return gatherum_skip_nan(program.core(), &buffers, poll, error);
  });
}

}  // namespace

void bind_group_calls(nb::module_& m) {
  m.def("extremes", &extremes, nb::arg("plan"), nb::arg("data"), nb::arg("indices"), nb::arg("updates"),
        nb::arg("out").none(), nb::arg("positions"), nb::arg("none"), nb::arg("skips_nan"));
  m.def("skip_nan", &skip_nan, nb::arg("plan"), nb::arg("data"), nb::arg("indices"), nb::arg("updates"),
        nb::arg("out"));
  m.def("spreads", &spreads, nb::arg("plan"), nb::arg("indices"), nb::arg("updates"),
        nb::arg("squares").none(), nb::arg("counts"), nb::arg("skips_nan"));
}

}  // namespace gatherum
