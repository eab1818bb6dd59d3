// Kernel: kernels/scatter_slabs.hpp. Many units: each thread fills one slab after another.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {

namespace {

// Returns the number of columns of a unit that fit in cache, or 0 if the line loop does not move the data.
int64_t chunk_of(const Program& p) {
  if (!p.split_line) return 0;
  return columns_in_cache(slab_bytes(p, p.destinations), p.item, p.nest.line_loop().extent);
}

}  // namespace

bool applies_batch_accumulators(const Program& p, int, std::string* why) {
  if (!scatters_items(p, nullptr)) return false;
  const Items items = items_of(p);
  if (items.is_one_unit || !fits_slots(items)) return false;
  const bool pays =
      !items.is_small && items.slots_bytes <= thresholds().shared_cache_bytes && items.updates >= 64;
  if (!needs_accumulator(p.fold_rule) && !pays) return false;
  append(why, items.updates, " updates per batch go to ", p.destinations,
         " destinations, whose accumulators fit in the cache: one batch is reduced after another");
  return true;
}

int64_t scratch_batch_accumulators(const Program& p, int threads) {
  return limited_product(slab_bytes(p, limited_product(p.destinations, std::max<int64_t>(chunk_of(p), 1))),
                         threads);
}

// Many units: each thread fills one slab after another. Either the indices were checked before, or the result
// is discarded after an error.
RunResult run_batch_accumulators(const Program& p, const Execution& call) {
  Nest numbering = number_destinations(p.nest);
  const Split s = split(points(numbering, p.unit_loops), numbering.line_loop().extent, p.split_line,
                        chunk_of(p), work_bytes(p), call.threads);
  numbering.far = slab_bytes(p, p.destinations) >= kFarSlabBytes;
  const SlabScatter slabs{.numbering = &numbering,
                          .unit_loops = p.unit_loops,
                          .chunk = s.chunk,
                          .destinations = p.destinations,
                          .step = p.step,
                          .ranges = 1,
                          .range_size = p.destinations,
                          .source = call.source,
                          .fold_rule = p.fold_rule,
                          .direct = true,
                          .streams = limited_product(p.destinations, p.step) >= thresholds().streamed_bytes};
  const int64_t columns = p.split_line ? s.chunk : 1;
  const WorkerScratch scratch(slab_bytes(p, limited_product(p.destinations, columns)), s.threads);
  if (!scratch) return {.has_memory = false};
  All valid;
  RunResult run;
  run.finished = run_split(s, call.poll, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t unit = begin; unit < end; ++unit) {
      valid &= chosen_kernels().slab_take(slabs, call.operands, unit, scratch.memory_of(worker));
      chosen_kernels().slab_write(slabs, call.operands, unit, scratch.memory_of(worker));
    }
  });
  run.valid = static_cast<bool>(valid);
  return run;
}

}  // namespace gatherum
