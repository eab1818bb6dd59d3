// Calls on memory that is not NumPy's, for the adapters of other frameworks.
#pragma once

#include <functional>

#include "python/plan_table.hpp"

namespace gatherum {

// Gives the address of memory for a result of that shape, in C order and of the dtype of data.
using Allocate = std::function<void*(const Shape&)>;

// Returns the number of an operand that no longer matches its view, -1 for none. Called if Python code has
// run meanwhile.
using Changed = std::function<int()>;

// The plan of a call among those of all frameworks; Python makes it where `is_new`.
CachedPlan plan_of(const Call& call, bool& is_new);

// Finds the plan of a call, and runs it. An `out` that is not given is allocated when the plan is known.
// `fill`: bytes of an item of the dtype of data; anything else stands for zeros. The caller holds the
// interpreter's lock, which a long run gives up, and keeps the memory alive; what cannot be done raises what
// the call on NumPy's arrays raises.
void run_in_memory(const Call& call, nb::handle fill, const Allocate& allocate, const Changed& changed = {});

}  // namespace gatherum
