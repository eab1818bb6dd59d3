// What calls on the arrays of all frameworks on a CUDA device share.
#pragma once

#include "python/plan_table.hpp"

namespace gatherum {

// The largest power of two up to 16 that divides an address. No kernel distinguishes more.
int64_t device_alignment(uint64_t address);
inline int64_t device_alignment(const char* address) {
  return device_alignment(uint64_t{reinterpret_cast<uintptr_t>(address)});
}

// The addresses of the sorted keys and of their payload, if an earlier call on a stream has sorted the
// updates of a scatter by destination.
struct Order {
  uint64_t stream = 0, keys = 0, payload = 0;
};

// Returns the program of a plan for operands on a device, without `out` and fill value. With an order, the
// program reads the keys instead of the indices. If the plan has no such program, make_program(plan, device,
// is_ordered, alignments of data, indices, updates and out) makes it, and `made` is set. Returns an invalid
// object if make_program returns None.
nb::object device_program(const CachedPlan& cached, const Views& operands, int device, const Order* order,
                          const nb::object& make_program, bool& made);

}  // namespace gatherum
