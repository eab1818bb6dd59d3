// Kernel: kernels/scatter_slabs.hpp. One unit: one slab has accumulators for all destinations.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {

// Returns true if there is only one unit and it keeps accumulators for all its destinations.
bool keeps_one_slab(const Program& p, std::string* why) {
  if (!scatters_items(p, nullptr)) return false;
  const Items items = items_of(p);
  const bool pays = needs_accumulator(p.combine) || items.updates >= thresholds().many_updates;
  if (!items.is_one_unit || !fits_slots(items) || !pays) return false;
  append(why, items.updates, " updates go to ", p.destinations,
         " destinations, which are few enough for an accumulator of ", items.slot_bytes, " bytes each");
  return true;
}

bool applies_serial_accumulators(const Program& p, int, std::string* why) { return keeps_one_slab(p, why); }

int64_t scratch_serial_accumulators(const Program& p, int) { return slab_bytes(p, p.destinations); }

RunResult run_serial_accumulators(const Program& p, const Execution& call) {
  return run_in_ranges(p, call, 1);
}

}  // namespace gatherum
