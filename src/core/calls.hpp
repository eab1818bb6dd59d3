// The way of a call from Python objects to the engine: a table of plans, probed by what the arguments
// look like, and the run of a plan on its operands.
#pragma once

#include <cstdint>

#include "arrays.hpp"
#include "engine.hpp"

namespace gatherum {

// A program together with what its result looks like; held by a Python Plan as `program`.
struct PlannedProgram {
  Program program;
  int rank = 0;
  npy_intp shape[NPY_MAXDIMS] = {};
};

// What Python does for a call; set once, at import.
struct Hooks {
  nb::object normalise;  // (11 arguments of call) -> the same as arrays and plain values, or raises
  nb::object
      make_plan;  // (op, data, indices, updates, axis, reduction, include_self, mode, negative, out) -> Plan
  nb::object check_out;      // (plan, data, indices, updates, out): raises when out cannot be written
  nb::object make_fill;      // (plan, fill_value) -> 0-d array of the data's dtype, or raises
  nb::object raise_invalid;  // (plan, position, component, value): raises IndexError
  nb::object raise_changed;  // (plan, number of an operand): raises ValueError
};

Hooks& hooks();

inline constexpr int kArguments = 11;

// One call of an operator. Arguments: op, data, indices, updates, axis, reduction, include_self, mode,
// negative, fill_value, out; op is the operator's name.
nb::object call(nb::handle* arguments);

// Runs a plan on arrays that look as it was made for.
nb::object run(nb::handle plan, nb::handle data, nb::handle indices, nb::handle updates,
               nb::handle fill_value, nb::handle out);

// Forgets every plan of the table.
void clear_plans();
// The same, as the last call before the interpreter ends.
void leave();

}  // namespace gatherum
