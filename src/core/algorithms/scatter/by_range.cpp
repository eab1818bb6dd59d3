// Kernel: kernels/scatter_shares.hpp. One unit: each thread reads every index, and applies the updates of its
// share of the destinations.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {

bool applies_by_range(const Program& p, int threads, std::string* why) {
  if (threads == 1 || !is_one_unit(p) || p.components_reach == 0) return false;
  append_why_no_accumulators(p, why);
  append(why, "; each of ", int64_t{threads},
         " threads reads all indices, and writes its share of the destinations");
  return true;
}

RunResult run_by_range(const Program& p, const Execution& call) {
  All valid;
  const bool finished =
      run_shares(p, call.threads, call.poll, [&](const Range& range, const DestinationRange& owned) {
        valid &= chosen_kernels().scatter(p.nest, p.unit_loops, call.operands, range, p.fold_rule, owned);
      });
  return {finished, static_cast<bool>(valid)};
}

}  // namespace gatherum
