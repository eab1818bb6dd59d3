// Implements a scatter of squared distances from exact means. Kernels: kernels/scatter_spreads.hpp for items,
// kernels/group_spreads.hpp for rows.
#include "algorithms/copies.hpp"
#include "algorithms/items.hpp"
#include "engine/index_checks.hpp"
#include "scatter_results/scatter_results.hpp"

namespace gatherum {
namespace {

bool fits_slab(const Program& p) {
  if (!scatters_items(p, nullptr)) return false;
  Items sizes = items_of(p);
  sizes.slots_bytes = chosen_kernels().spread_bytes(p.fold_rule.value, p.destinations);
  return sizes.is_one_unit && fits_slots(sizes) && p.destinations == p.result.items() && p.step == p.item;
}

// Sorts the updates by destination, then processes one destination at a time.
Outcome by_groups(const Program& p, const Execution& call, const Spreads& to) {
  if (p.invalid_is_error) {
    const Outcome checked = check_indices(p, call.operands.index, call.poll);
    if (checked.status != Status::done) return checked;
  }
  constexpr int64_t zero = 0;
  const int64_t items = p.result.items();
  if ((to.squares != nullptr && !fill(reinterpret_cast<int64_t*>(to.squares), items, zero, call.poll)) ||
      !fill(to.counts, items, zero, call.poll))
    return {Status::interrupted, {}};
  const RunResult run =
      run_shares_of_groups(p, call, [&](const GroupedScatter& groups, const GroupShare& share) {
        chosen_kernels().group_spreads(groups, call.operands, to, share);
      });
  return outcome_of(run, p, call.operands.index, call.poll);
}

}  // namespace

bool finds_spreads(const Program& p) {
  const bool exact = p.scatter && p.fold_rule.reduction == Reduction::fmean && !p.fold_rule.include_self;
  if (!exact || !has_spreads(p.fold_rule.value) || !p.has_points) return false;
  return moves_items(p.nest) ? fits_slab(p) : true;
}

Outcome find_spreads(const Program& p, const char* index, const char* updates, bool skips_nan,
                     const Spreads& to, const Poll& poll) {
  const Outcome addressable = check_addressable(p, index);
  if (addressable.status != Status::done) return addressable;
  const auto& kernels = chosen_kernels();
  Operands operands;
  operands.index = index;
  operands.moved = const_cast<char*>(updates);
  operands.data = reinterpret_cast<char*>(to.counts);  // addresses are computed from it
  const int threads = threads_for(work_bytes(p));
  FoldRule fold_rule = p.fold_rule;
  fold_rule.skips_nan = skips_nan;
  if (!moves_items(p.nest)) {
    Program rows = p;
    rows.fold_rule = fold_rule;
    return by_groups(
        rows, {.operands = operands, .source = nullptr, .fresh = true, .threads = threads, .poll = poll}, to);
  }
  // Most updates access only a small part of an accumulator, so two threads are rarely faster than one.
  const int64_t busy = busy_bytes(p, p.destinations, 0);
  const int64_t tasks = shares_slots(p, threads, busy) ? std::min<int64_t>(threads, p.destinations) : 1;
  Nest numbering = number_destinations(p.nest);
  numbering.far = busy >= kFarSlabBytes;
  numbering.fetches_indices = tasks > 1;
  SlabScatter slabs{};
  slabs.numbering = &numbering;
  slabs.unit_loops = p.unit_loops;
  slabs.chunk = numbering.line_loop().extent;
  slabs.destinations = p.destinations;
  slabs.step = p.step;
  slabs.range_size = (p.destinations - 1) / tasks + 1;
  slabs.ranges = (p.destinations - 1) / slabs.range_size + 1;
  slabs.fold_rule = fold_rule;
  const WorkerScratch scratch(kernels.spread_bytes(p.fold_rule.value, slabs.range_size),
                              static_cast<int>(slabs.ranges));
  if (!scratch) return {Status::no_memory, {}};
  All valid;
  RunResult run;
  run.finished = run_tasks(slabs.ranges, threads, poll, [&](int64_t task, int) {
    valid &= kernels.spread_take(slabs, operands, to, task, scratch.memory_of(static_cast<int>(task)));
  });
  run.valid = static_cast<bool>(valid);
  return outcome_of(run, p, index, poll);
}

}  // namespace gatherum
