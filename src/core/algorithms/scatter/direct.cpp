// Kernel: kernels/scatter_rows.hpp, kernels/scatter_lines.hpp. Applies updates point by point in the order of
// the nest. Threads share the independent batches. It applies to every scatter.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {

bool applies_scatter_direct(const Program& p, int, std::string* why) {
  append_why_no_accumulators(p, why);
  append(why, "; updates are applied directly to the destinations");
  return true;
}

RunResult run_scatter_direct(const Program& p, const Execution& call) {
  const Nest& nest = p.nest;
  if (!is_long(p)) {  // too short to be divided
    const Range everything{.chunk = nest.line_loop().extent, .begin = 0, .end = points(nest, p.unit_loops)};
    return {.valid =
                chosen_kernels().scatter(nest, p.unit_loops, call.operands, everything, p.fold_rule, {})};
  }
  All valid;
  const bool finished = run_units(p, call.threads, call.poll, [&](const Range& range) {
    valid &= chosen_kernels().scatter(nest, p.unit_loops, call.operands, range, p.fold_rule, {});
  });
  return {finished, static_cast<bool>(valid)};
}

}  // namespace gatherum
