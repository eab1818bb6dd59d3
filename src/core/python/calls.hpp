// Calls of the operators, from Python objects to the engine.
#pragma once

#include "arrays.hpp"

namespace gatherum {

inline constexpr int kArguments = 11;
enum Argument {
  kOp,
  kData,
  kIndices,
  kUpdates,
  kAxis,
  kReduction,
  kIncludeSelf,
  kMode,
  kNegative,
  kFill,
  kOut
};

// One call of an operator; kOp is its name, interned.
nb::object call(nb::handle* arguments);

// A run of a plan on arrays; a callback checks that they match the plan's specs.
nb::object run_plan(nb::handle plan, nb::handle data, nb::handle indices, nb::handle updates,
                    nb::handle fill_value, nb::handle out);

// Forgets every plan, as the last call before the interpreter ends.
void leave();

}  // namespace gatherum
