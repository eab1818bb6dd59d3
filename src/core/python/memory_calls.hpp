// Calls on memory outside NumPy, for the adapters of other frameworks.
#pragma once

#include <functional>

#include "python/plan_table.hpp"

namespace gatherum {

// Returns the address of memory for a result of the given shape, in C order and of the data's dtype.
using Allocate = std::function<void*(const Shape&)>;

// Returns the number of an operand that no longer matches its view, or -1 if all match. Called if Python code
// may have changed operands.
using Changed = std::function<int()>;

// Returns the view of an array, or the view itself. None gives a view without memory.
View view_of_operand(nb::handle operand);

// Returns the plan of a call from the table of all frameworks. If the table does not have the plan, makes it
// and sets `is_new`.
CachedPlan plan_of(const Call& call, bool& is_new);

// Finds the plan of a call, and runs it. A missing `out` is allocated once the plan is known. `fill` contains
// the bytes of one item of the data's dtype. Any other object means zeros. The caller keeps the memory alive
// and holds the interpreter's lock, which a long run releases. Invalid calls raise the same errors as calls
// on NumPy arrays.
void find_plan_and_run_on_views(const Call& call, nb::handle fill, const Allocate& allocate,
                                const Changed& changed = {});

}  // namespace gatherum
