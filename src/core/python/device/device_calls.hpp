// What calls on the arrays of all frameworks on a CUDA device share.
#pragma once

#include "python/plan_table.hpp"

namespace gatherum {

// The largest power of two up to 16 that divides an address. No kernel distinguishes more.
int64_t device_alignment(const char* address);

// Returns the program of a plan for operands on a device, without `out` and fill value. If the plan has none,
// make_program(plan, device, alignments of data, indices, updates and out) makes it, and `made` is set.
// Returns an invalid object if make_program returns None.
nb::object device_program(const CachedPlan& cached, const Views& operands, int device,
                          const nb::object& make_program, bool& made);

}  // namespace gatherum
