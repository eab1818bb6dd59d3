// Runs a plan on operands that match its specs.
#pragma once

#include "python/gil_release.hpp"
#include "python/operand_snapshot.hpp"
#include "python/plan_table.hpp"

namespace gatherum {

// Raises ValueError if `out` is read-only, or shares memory with an operand of a call that is not in place.
void check_out_memory(nb::handle plan, const Views& operands);
// Raises ValueError for the operand with this number, because it has changed. Does nothing for -1.
void raise_changed(nb::handle plan, int operand);
// Raises Python's error for a run that has not completed.
void raise_unless_done(nb::handle plan, gatherum_status status, const gatherum_error& error);

// An error that has only a message.
inline gatherum_error error_of(const char* message) { return {message, "", -1, 0, 0}; }

// Runs run(poll). If it takes long, releases the interpreter's lock and polls for Ctrl-C. Returns GATHERUM_OK
// or GATHERUM_INVALID_INDEX, and raises for any other status.
template <class Run>
gatherum_status run_without_lock_if_long(bool is_long, const gatherum_error& error, const Run& run) {
  const gatherum_status status = is_long ? run_without_lock(run) : run(nullptr);
  if (status != GATHERUM_INVALID_INDEX) raise_unless_done({}, status, error);
  return status;
}
// Runs a plan's program the same way, and raises Python's error for a call that has not completed.
template <class Run>
void run_without_lock_if_long(nb::handle plan, const BoundProgram& program, const Run& run) {
  gatherum_error error;
  const gatherum_status status =
      run_without_lock_if_long(gatherum_program_is_long(program.core()) != 0, error,
                               [&](const gatherum_poll* poll) { return run(poll, &error); });
  raise_unless_done(plan, status, error);
}

// Returns the operands in the core's form. The plan was made for these operands, so their sizes need no
// check. `result` is `out`, or new memory.
gatherum_operands operands_of(const BoundProgram& program, const Views& operands, void* result);

// Raises ValueError if the program can address a byte outside its operands.
void refuse_too_small(const BoundProgram& program, const gatherum_operands& operands);

// Returns true if a fill value is Python's integer 0, which represents an item whose bytes are all 0.
bool fills_with_zeros(nb::handle fill);

// Runs a plan on NumPy arrays, with None for missing operands. `before` is a snapshot of the operands when
// they matched the plan.
nb::object run_any_plan(const CachedPlan& cached, const OperandHandles& operands, nb::handle fill_value,
                        const OperandSnapshot& before);
// Runs a plan if no Python code can run during the call; see BoundProgram::runs_without_python.
nb::object run_plan_without_python(const BoundProgram& program, nb::handle plan, const Views& operands);

}  // namespace gatherum
