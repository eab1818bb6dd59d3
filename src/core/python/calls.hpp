// The way of a call from Python objects to the engine: a table of plans, probed by what the arguments
// look like, and the run of a plan on its operands.
#pragma once

#include <cstdint>
#include <functional>

#include "arrays.hpp"
#include "programs.hpp"

namespace gatherum {

// What Python does for a call; set once, at import.
struct Hooks {
  // (11 arguments of call) -> a tuple of the same as arrays and plain values, or raises; what is no tuple is
  // the result, of a call on another framework's arrays.
  nb::object normalise;
  nb::object
      make_plan;  // (op, data, indices, updates, axis, reduction, include_self, mode, negative, out) -> Plan
  nb::object check_operands;  // (plan, data, indices, updates, out): raises for arrays that do not fit it
  nb::object check_out;       // (plan, data, indices, updates, out): raises when out cannot be written
  nb::object make_fill;       // (plan, fill_value) -> 0-d array of the data's dtype, or raises
  nb::object raise_invalid;   // (plan, position, component, value): raises IndexError
  nb::object raise_changed;   // (plan, number of an operand): raises ValueError
};

Hooks& hooks();

inline constexpr int kArguments = 11;

// One call of an operator. Arguments: op, data, indices, updates, axis, reduction, include_self, mode,
// negative, fill_value, out; op is the operator's name.
nb::object call(nb::handle* arguments);

// The function that calls one operator: its arguments are all given, in the order of the operator's
// signature.
nb::object entry_of(nb::str name, bool scatters);

// Runs a plan on arrays; the hook sees to it that they look as it was made for.
nb::object run(nb::handle plan, nb::handle data, nb::handle indices, nb::handle updates,
               nb::handle fill_value, nb::handle out);

// The program of a Python Plan, which keeps it alive.
const BoundProgram& program_of(nb::handle plan);
// Runs a program: without the interpreter's lock where it takes long, and then with a poll that answers
// Ctrl-C. Raises what Python says of a call that is not done.
void run_released(nb::handle plan, const BoundProgram& program,
                  const std::function<gatherum_status(const gatherum_poll*, gatherum_error*)>& run);

// Forgets every plan of the table.
void clear_plans();
// The same, as the last call before the interpreter ends.
void leave();

}  // namespace gatherum
