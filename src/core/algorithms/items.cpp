#include "algorithms/items.hpp"

#include "algorithms/algorithms.hpp"
#include "model/widths.hpp"

namespace gatherum {
namespace {

// Appends the reason why a scatter of items keeps no accumulators. Appends nothing if it would keep
// accumulators.
void append_why_no_slab(const Program& p, const Items& items, std::string* why) {
  append(why, items.updates, " updates", items.is_one_unit ? "" : " per batch", " go to ", p.destinations,
         " destinations, ");
  if (!fits_slots(items))
    append(why, "which are too many for an accumulator of ", items.slot_bytes, " bytes each");
  else if (items.slots_bytes > thresholds().shared_cache_bytes && !items.is_small && !items.is_one_unit)
    append(why, "whose accumulators would not fit in the cache");
  else
    append(why, "for which accumulators would not be faster");
}

}  // namespace

bool gathers_items(const Program& p, std::string* why) {
  const Nest& nest = p.nest;
  if (nest.components == 0) return append(why, "the call has no index components, so it is a copy"), false;
  if (nest.row_rank() > 0 || !is_width(nest.block))
    return append(why, "each index tuple moves ", row_bytes(nest),
                  " bytes, which are copied in the order of the indices"),
           false;
  if (nest.components > 1)
    return append(why, "each index tuple has ", int64_t{nest.components},
                  " components, so items are copied one by one"),
           false;
  if (p.bytes / 2 >= thresholds().small_call_bytes) return true;
  append(why, "the call moves ", p.bytes / 2, " bytes; other algorithms are faster from ",
         thresholds().small_call_bytes, " bytes on");
  return false;
}

RunResult run_units_of(const Split& s, const Execution& call, const GatherTask& task) {
  std::atomic<bool> all_valid{true};
  const bool finished = run_split(s, call.poll, [&](int64_t begin, int64_t end, int worker) {
    if (all_valid.load(std::memory_order_relaxed) && !task(begin, end, worker))
      all_valid.store(false, std::memory_order_relaxed);
  });
  return {finished, all_valid.load()};
}

bool scatters_items(const Program& p, std::string* why) {
  const Nest& nest = p.nest;
  if (nest.row_rank() > 0 || nest.block != p.item || !is_width(p.item))
    return append(why, "each index tuple moves a row of ", row_bytes(nest), " bytes"), false;
  if (p.fold_rule.skips_nan && !has_skipping_slabs(p.fold_rule))
    return append(why, "the fold has no slabs that skip NaN"), false;
  if (p.destinations == 0) return append(why, "every update is dropped"), false;
  if (p.step == 0) return append(why, "the destinations are not evenly spaced"), false;
  return true;
}

Items items_of(const Program& p) {
  const Nest& nest = p.nest;
  const Loop& line = nest.line_loop();
  Items items{};
  items.units = points(nest, p.unit_loops);
  items.updates = points(nest, nest.line) / items.units;
  if (!p.split_line) items.updates = limited_product(items.updates, line.extent);
  items.columns = p.split_line ? line.extent : 1;
  items.is_one_unit = items.units == 1 && !p.split_line;
  items.is_small = p.bytes / 2 < thresholds().small_call_bytes;
  items.slot_bytes = chosen_kernels().slab_bytes(p.fold_rule, p.item, 1);
  items.slots_bytes = limited_product(p.destinations, items.slot_bytes);
  return items;
}

int64_t busy_bytes(const Program& p, int64_t destinations, int64_t otherwise) {
  if (!row_of(p.fold_rule.reduction).exact) return otherwise;
  return limited_product(destinations,
                         window_bytes(p.fold_rule.value) + (needs_counter(p.fold_rule) ? 8 : 0));
}

bool fits_slots(const Items& items) {
  return items.slots_bytes <= std::max<int64_t>(limited_product(16, items.updates), 1024);
}

void append_why_no_accumulators(const Program& p, std::string* why) {
  if (why != nullptr && scatters_items(p, why)) append_why_no_slab(p, items_of(p), why);
}

int64_t slab_bytes(const Program& p, int64_t slots) {
  return chosen_kernels().slab_bytes(p.fold_rule, p.item, slots);
}

bool keeps_one_slab(const Program& p, std::string* why) {
  if (!scatters_items(p, nullptr)) return false;
  const Items items = items_of(p);
  const bool pays = needs_accumulator(p.fold_rule) || items.updates >= thresholds().many_updates;
  if (!items.is_one_unit || !fits_slots(items) || !pays) return false;
  append(why, items.updates, " updates go to ", p.destinations,
         " destinations, which are few enough for an accumulator of ", items.slot_bytes, " bytes each");
  return true;
}

}  // namespace gatherum
