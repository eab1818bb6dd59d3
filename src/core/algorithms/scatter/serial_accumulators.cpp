// Kernel: kernels/scatter_slabs.hpp. One unit: one slab has accumulators for all destinations.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {

bool applies_serial_accumulators(const Program& p, int, std::string* why) { return keeps_one_slab(p, why); }

int64_t scratch_serial_accumulators(const Program& p, int) { return slab_bytes(p, p.destinations); }

RunResult run_serial_accumulators(const Program& p, const Execution& call) {
  return run_in_ranges(p, call, 1);
}

}  // namespace gatherum
