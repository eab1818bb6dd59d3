// Implements a scatter of squared distances from exact means. Kernel: kernels/scatter_spreads.hpp.
#include "algorithms/items.hpp"

namespace gatherum {

bool finds_spreads(const Program& p) {
  int64_t items = 1;
  for (int i = 0; i < p.result.rank; ++i) items = times(items, p.result.extent[i]);
  const bool exact = p.scatter && p.combine.reduction == Reduction::fmean && !p.combine.include_self;
  if (!exact || !has_spreads(p.combine.value) || !p.has_points || !scatters_items(p, nullptr)) return false;
  Items sizes = items_of(p);
  sizes.slots_bytes = chosen_kernels().spread_bytes(p.combine.value, p.destinations);
  return sizes.alone && fits_slots(sizes) && p.destinations == items && p.step == p.item;
}

Outcome find_spreads(const Program& p, const char* index, const char* updates, const Spreads& to,
                     const Poll& poll) {
  const Outcome addressable = check_addressable(p, index);
  if (addressable.status != Status::done) return addressable;
  const auto& kernels = chosen_kernels();
  Operands operands;
  operands.index = index;
  operands.moved = const_cast<char*>(updates);
  operands.data = reinterpret_cast<char*>(to.squares);  // addresses are computed from it
  const int threads = threads_for(work_bytes(p));
  // Most updates access only a small part of an accumulator, so two threads are rarely faster than one.
  const int64_t busy = busy_bytes(p, p.destinations, 0);
  const int64_t tasks = shares_slots(p, threads, busy) ? std::min<int64_t>(threads, p.destinations) : 1;
  Nest numbering = number_destinations(p.nest);
  numbering.far = busy >= kFarSlabBytes;
  numbering.fetches_indices = tasks > 1;
  SlabScatter slabs{};
  slabs.numbering = &numbering;
  slabs.units = p.units;
  slabs.chunk = numbering.line_loop().extent;
  slabs.destinations = p.destinations;
  slabs.step = p.step;
  slabs.range_size = (p.destinations - 1) / tasks + 1;
  slabs.ranges = (p.destinations - 1) / slabs.range_size + 1;
  slabs.combine = p.combine;
  const WorkerScratch scratch(kernels.spread_bytes(p.combine.value, slabs.range_size),
                              static_cast<int>(slabs.ranges));
  if (!scratch) return {Status::no_memory, {}};
  All valid;
  Run run;
  run.finished = run_tasks(slabs.ranges, threads, poll, [&](int64_t task, int) {
    valid &= kernels.spread_take(slabs, operands, to, task, scratch.of(static_cast<int>(task)));
  });
  run.valid = static_cast<bool>(valid);
  return outcome_of(run, p, index, poll);
}

}  // namespace gatherum
