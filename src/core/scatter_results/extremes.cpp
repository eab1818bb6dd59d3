// Implements a scatter of maxima or minima with argmax or argmin.
#include "algorithms/copies.hpp"
#include "algorithms/execute.hpp"
#include "algorithms/items.hpp"
#include "engine/index_checks.hpp"
#include "scatter_results/scatter_results.hpp"

namespace gatherum {
namespace {

// Sorts the updates by destination, then processes one destination at a time.
Outcome by_groups(const Program& p, const Execution& call, const char* source, const Extremes& extremes) {
  if (p.invalid_is_error) {
    const Outcome checked = check_indices(p, call.operands.index, call.poll);
    if (checked.status != Status::done) return checked;
  }
  if (extremes.result != nullptr && p.has_copy && !run_copy(p.copy, source, extremes.result, call.poll))
    return {Status::interrupted, {}};
  const int64_t items = p.result.items();
  if (!fill(extremes.positions, items, extremes.none, call.poll)) return {Status::interrupted, {}};
  if (!p.has_points) return {};
  const RunResult run =
      run_shares_of_groups(p, call, [&](const GroupedScatter& groups, const GroupShare& share) {
        chosen_kernels().group_extremes(groups, extremes, share);
      });
  return outcome_of(run, p, call.operands.index, call.poll);
}

}  // namespace

bool has_positions(const Program& p) {
  return p.scatter && row_of(p.fold_rule.reduction).gradient == Gradient::extreme;
}

bool has_positions_of_numbers(const Program& p) {
  return has_positions(p) && skips_nan_in_rows(p.fold_rule) && !locates_items(p, threads_for(work_bytes(p)));
}

Outcome find_extremes(const Program& p, const char* index, const char* source, const Extremes& extremes,
                      const Poll& poll) {
  const Outcome addressable = check_addressable(p, index);
  if (addressable.status != Status::done) return addressable;
  Operands operands;
  operands.index = index;
  operands.data = extremes.result;
  operands.moved = const_cast<char*>(extremes.updates);
  const Execution call{.operands = operands,
                       .source = nullptr,
                       .fresh = true,
                       .threads = threads_for(work_bytes(p)),
                       .poll = poll};
  if (!p.has_points || p.fold_rule.skips_nan || !locates_items(p, call.threads))
    return by_groups(p, call, source, extremes);
  const RunResult run = locate_items(p, call, extremes.positions, extremes.none);
  const Outcome outcome = outcome_of(run, p, index, poll);
  if (outcome.status != Status::done || extremes.result == nullptr) return outcome;
  return execute(p, operands, source, true, poll);
}

}  // namespace gatherum
