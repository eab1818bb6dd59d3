// A scatter point by point in the order of the nest. Independent units go to threads; where there is one unit
// only, each thread takes the updates of its own share of the destinations.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

// Appends why no accumulators are kept for a scatter of items; nothing if they would be.
void append_why_no_slab(const Program& p, const Items& items, std::string* why) {
  append(why, items.updates, " updates", items.alone ? "" : " per unit", " go to ", p.destinations,
         " destinations, ");
  if (!fits_slots(items))
    append(why, "too many to keep an accumulator of ", items.slot, " bytes for each");
  else if (items.slots_bytes > thresholds().cache && !items.small && !items.alone)
    append(why, "whose accumulators would outgrow the cache");
  else
    append(why, "too little work for accumulators to pay");
}

}  // namespace

bool scatters_items(const Program& p, std::string* why) {
  const Nest& nest = p.nest;
  if (nest.row_rank() > 0 || nest.block != p.item || !is_width(p.item))
    return append(why, "each index tuple moves a row of ", row_bytes(nest), " bytes"), false;
  if (p.destinations == 0) return append(why, "every update is dropped"), false;
  if (p.step == 0) return append(why, "the destinations do not lie at even steps"), false;
  return true;
}

Items items_of(const Program& p) {
  const Nest& nest = p.nest;
  const Loop& line = nest.line_loop();
  Items items{};
  items.units = points(nest, p.units);
  items.updates = points(nest, nest.line) / items.units;
  if (!p.split_line) items.updates = times(items.updates, line.extent);
  items.columns = p.split_line ? line.extent : 1;
  items.alone = items.units == 1 && !p.split_line;
  items.small = p.bytes / 2 < thresholds().small;
  items.slot = chosen_kernels().slab_bytes(p.combine, p.item, 1);
  items.slots_bytes = times(p.destinations, items.slot);
  return items;
}

int64_t busy_bytes(const Program& p, int64_t destinations, int64_t otherwise) {
  if (!row_of(p.combine.reduction).exact) return otherwise;
  return times(destinations, window_bytes(p.combine.value) + (needs_counter(p.combine) ? 8 : 0));
}

bool fits_slots(const Items& items) {
  return items.slots_bytes <= std::max<int64_t>(times(16, items.updates), 1024);
}

void append_why_no_accumulators(const Program& p, std::string* why) {
  if (why != nullptr && scatters_items(p, why)) append_why_no_slab(p, items_of(p), why);
}

bool applies_owned(const Program& p, int threads, std::string* why) {
  if (threads == 1 || !is_one_unit(p) || p.components_reach == 0) return false;
  append_why_no_accumulators(p, why);
  append(why, "; each of ", int64_t{threads},
         " threads reads every index, and writes its share of the places");
  return true;
}

Run run_owned(const Program& p, const Execution& call) {
  All valid;
  const bool finished = run_shares(p, call.threads, call.poll, [&](const Range& range, const Owned& owned) {
    valid &= chosen_kernels().scatter(p.nest, p.units, call.at, range, p.combine, owned);
  });
  return {finished, static_cast<bool>(valid)};
}

// A share of the columns: where it begins in a row, and how many bytes it has.
struct Columns {
  int64_t begin, bytes;
};

// The i-th of n shares, cut between cache lines of the output where rows lie evenly among them.
Columns columns_of(const Program& p, const char* out, int64_t i, int64_t n) {
  const auto cut = [&](int64_t share) {
    if (share == 0 || share == n) return share * p.nest.block / n;
    const int64_t about = p.nest.block * share / n;
    const auto past =
        static_cast<int64_t>((reinterpret_cast<uintptr_t>(out) + static_cast<uintptr_t>(about)) %
                             static_cast<uintptr_t>(kCacheLine));
    return (about - past) / p.item * p.item;
  };
  return {cut(i), cut(i + 1) - cut(i)};
}

bool applies_columns(const Program& p, int threads, std::string* why) {
  if (threads == 1 || !is_one_unit(p) || p.nest.row_rank() > 0) return false;
  if (p.nest.block < times(threads, thresholds().columns) || p.item > kCacheLine) return false;
  append_why_no_accumulators(p, why);
  append(why, "; each of ", int64_t{threads}, " threads writes its share of the columns");
  return true;
}

// Every thread walks all indices in order, so each element meets its updates in order. All threads together
// read an update once. If threads shared rows by destination, the processor would also fetch the rows beside
// them (1M rows of 64 float32 into 100k on an EPYC: 65 ms of two threads together, 45 by columns, 38 on one).
Run run_columns(const Program& p, const Execution& call) {
  All valid;
  const bool finished = run_tasks(call.threads, call.threads, call.poll, [&](int64_t i, int) {
    const Columns columns = columns_of(p, call.at.data, i, call.threads);
    Nest nest = p.nest;
    nest.block = columns.bytes;
    Operands at = call.at;
    at.data += columns.begin;
    at.other += columns.begin;
    const Range everything{nest.line_loop().extent, 0, 1};
    valid &= chosen_kernels().scatter(nest, p.units, at, everything, p.combine, {});
  });
  return {finished, static_cast<bool>(valid)};
}

bool applies_scatter_units(const Program& p, int, std::string* why) {
  append_why_no_accumulators(p, why);
  append(why, "; updates go straight to their places");
  return true;
}

Run run_scatter_units(const Program& p, const Execution& call) {
  const Nest& nest = p.nest;
  if (!is_long(p)) {  // over before anything could be cut
    const Range everything{nest.line_loop().extent, 0, points(nest, p.units)};
    return {.valid = chosen_kernels().scatter(nest, p.units, call.at, everything, p.combine, {})};
  }
  All valid;
  const bool finished = run_units(p, call.threads, call.poll, [&](const Range& range) {
    valid &= chosen_kernels().scatter(nest, p.units, call.at, range, p.combine, {});
  });
  return {finished, static_cast<bool>(valid)};
}

}  // namespace gatherum
