// Scatters into accumulators in cache, one slab per unit (scatter_slabs.hpp, scatter_private.hpp).
//
// One unit has one slab, or one slab per thread. The slabs of threads each hold a range of the destinations
// (shared) or, where the order of folding does not matter, each fold a piece of the updates (private).
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

// From this many bytes on a slab's cache misses cost more than reading every index on every thread. By
// eights: indices are compared eight at a time; two threads then take as long as one that folds updates one
// by one, unless that one's accumulators outgrow its own cache (10M updates of 10,000 float64: one
// thread 12.6 ms, two 15.7; of 100,000: 16.5 and 18.3; 20M of 1M float32: 33 and 22). One by one, two would
// take longer than one.
constexpr int64_t kSharedByTwo = int64_t{1} << 20, kSharedByEights = int64_t{32} << 10,
                  kSharedOneByOne = int64_t{2} << 20;
// A multiple of the threshold `many`: 1.2M updates fold as fast on one thread, which leaves a processor free.
constexpr int64_t kSharedUpdates = 16;

int64_t slab_bytes(const Program& p, int64_t slots) {
  return chosen_kernels().slab_bytes(p.combine, p.item, slots);
}

// Whether the one unit that there is gets accumulators for all its destinations.
bool keeps_one_slab(const Program& p, std::string* why) {
  if (!scatters_items(p, nullptr)) return false;
  const Items items = items_of(p);
  const bool pays = needs_accumulator(p.combine) || items.updates >= thresholds().many;
  if (!items.alone || !fits_slots(items) || !pays) return false;
  append(why, items.updates, " updates go to ", p.destinations,
         " destinations: few enough for an accumulator of ", items.slot, " bytes each");
  return true;
}

struct Ranges {
  int64_t count, size;
};

// Ranges of destinations for so many threads, or one of all of them.
Ranges ranges_of(const Program& p, int threads) {
  if (!applies_shared_slabs(p, threads, nullptr)) return {1, p.destinations};
  const int64_t size = (p.destinations + threads - 1) / threads;
  return {(p.destinations + size - 1) / size, size};
}

// Columns of a unit, where the line moves the data: as many as stay in cache.
int64_t chunk_of(const Program& p) {
  if (!p.split_line) return 0;
  return columns_in_cache(slab_bytes(p, p.destinations), p.item, p.nest.line_loop().extent);
}

// Whether each thread makes exact sums by tables: for few destinations, or they leave the cache, and for
// updates enough that clearing and reading tables takes little beside them.
bool has_tables(const Program& p, int threads) {
  constexpr int64_t most_destinations = 1024, most_bytes = int64_t{8} << 20;
  const int64_t table = row_of(p.combine.reduction).exact ? table_bytes(p.combine.value) : 0;
  const int64_t bytes = times(p.destinations, table);
  return table != 0 && !needs_counter(p.combine) && p.destinations <= most_destinations &&
         bytes <= most_bytes && p.tuples / threads >= times(bytes / 8, thresholds().tables);
}

int64_t private_slab_bytes(const Program& p, int threads) {
  const int64_t bytes = chosen_kernels().private_bytes(p.combine, p.destinations, has_tables(p, threads));
  return bytes / kCacheLine * kCacheLine + kCacheLine;
}

}  // namespace

bool shares_slots(const Program& p, int threads, int64_t bytes) {
  const bool eights = chosen_kernels().chooses_slots(p.nest, p.destinations) &&
                      p.tuples >= times(kSharedUpdates, thresholds().many);
  if (threads < 3) return eights && threads == 2 && bytes >= kSharedByTwo;
  return bytes >= (eights ? kSharedByEights : kSharedOneByOne);
}

PrivateScatter privately(const Program& p, const Execution& call, Nest& ids, int64_t slab_bytes) {
  const Loop& line = ids.line_loop();
  ids.far = busy_bytes(p, p.destinations, slab_bytes) >= kFarSlabBytes;
  PrivateScatter slabs{};
  slabs.ids = &ids;
  slabs.chunk = std::min(kPieceChunk, line.extent);
  slabs.units = ids.outer_count() * ((line.extent - 1) / slabs.chunk + 1);
  slabs.piece_units = (slabs.units + call.threads - 1) / call.threads;
  slabs.pieces = (slabs.units + slabs.piece_units - 1) / slabs.piece_units;
  slabs.destinations = p.destinations;
  slabs.step = p.step;
  slabs.source = call.source;
  slabs.combine = p.combine;
  slabs.slab_bytes = slab_bytes;
  return slabs;
}

bool applies_private_slabs(const Program& p, int threads, std::string* why) {
  const bool tables = has_tables(p, threads), alone = threads == 1 && !needs_counter(p.combine);
  if ((alone && !tables) || !keeps_one_slab(p, nullptr) || !are_few(p, threads)) return false;
  if (chosen_kernels().private_bytes(p.combine, p.destinations, tables) == 0) return false;
  keeps_one_slab(p, why);
  if (tables) append(why, " and a table of ", table_bytes(p.combine.value));
  if (threads > 1) append(why, ", for each of ", int64_t{threads}, " threads");
  append(why, ": the order of folding cannot matter");
  return true;
}

int64_t scratch_private_slabs(const Program& p, int threads) {
  return times(private_slab_bytes(p, threads), threads);
}

// Nothing is written before all indices have been found valid. Where a scatter with keys has met a NaN that
// keys cannot keep, it is done in order, by accumulators that know how many updates they have had.
Run run_private_slabs(const Program& p, const Execution& call) {
  Nest ids = number_destinations(p.nest);
  PrivateScatter slabs = privately(p, call, ids, private_slab_bytes(p, call.threads));
  slabs.tables = has_tables(p, call.threads);
  MetNaN met;
  slabs.met = &met;
  slabs.streams = times(p.destinations / call.threads + 1, p.step) >= thresholds().stream;
  const WorkerScratch scratch(times(slabs.slab_bytes, slabs.pieces), 1);
  if (!scratch) return {.memory = false};
  slabs.slabs = scratch.of(0);
  All valid;
  Run run;
  run.finished = run_tasks(slabs.pieces, call.threads, call.poll, [&](int64_t piece, int) {
    valid &= chosen_kernels().private_take(slabs, call.at, piece) == Took::all;
  });
  if (run.finished && met.lost) return run_ranges(p, call);
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.raises)) return run;
  share_destinations(p, call.threads, [&](int64_t begin, int64_t end) {
    chosen_kernels().private_write(slabs, call.at, begin, end);
  });
  return run;
}

bool locates_items(const Program& p, int threads) {
  int64_t items = 1;
  for (int i = 0; i < p.result.rank; ++i) items = times(items, p.result.extent[i]);
  const bool all = p.destinations == items && p.step == p.item;  // every item is a destination
  return all && scatters_items(p, nullptr) && items_of(p).alone && are_few(p, threads) &&
         !p.combine.include_self && p.tuples < int64_t{0xFFFFFFFF} && p.tuples >= thresholds().many;
}

Run locate_items(const Program& p, const Execution& call, int64_t* positions, int64_t none) {
  Nest ids = number_destinations(p.nest);
  const int64_t bytes = chosen_kernels().located_bytes(p.combine, p.destinations);
  PrivateScatter slabs = privately(p, call, ids, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
  slabs.positions = positions;
  slabs.none = none;
  const WorkerScratch scratch(times(slabs.slab_bytes, slabs.pieces), 1);
  if (!scratch) return {.memory = false};
  slabs.slabs = scratch.of(0);
  All valid;
  Run run;
  run.finished = run_tasks(slabs.pieces, call.threads, call.poll, [&](int64_t piece, int) {
    valid &= chosen_kernels().located_take(slabs, call.at, piece) == Took::all;
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.raises)) return run;
  share_destinations(p, call.threads,
                     [&](int64_t begin, int64_t end) { chosen_kernels().located_write(slabs, begin, end); });
  return run;
}

bool applies_shared_slabs(const Program& p, int threads, std::string* why) {
  if (!keeps_one_slab(p, nullptr)) return false;
  if (!shares_slots(p, threads, slab_bytes(p, p.destinations))) return false;
  keeps_one_slab(p, why);
  append(why, ", shared by ", int64_t{threads}, " threads: each reads every index");
  return true;
}

int64_t scratch_shared_slabs(const Program& p, int threads) {
  const Ranges ranges = ranges_of(p, threads);
  return times(slab_bytes(p, ranges.size), ranges.count);
}

bool applies_one_slab(const Program& p, int, std::string* why) { return keeps_one_slab(p, why); }

int64_t scratch_one_slab(const Program& p, int) { return slab_bytes(p, p.destinations); }

// One unit: its destinations are cut into ranges, and the task of each range reads every index. Nothing is
// written before all indices have been found valid.
Run run_ranges(const Program& p, const Execution& call) {
  Nest ids = number_destinations(p.nest);
  const Ranges ranges = ranges_of(p, call.threads);
  ids.far = busy_bytes(p, p.destinations, slab_bytes(p, p.destinations)) >= kFarSlabBytes;
  // One thread folds while the processor's own prefetch goes on; a burst of ours would make it wait (5M
  // updates of 256 bins: 6.6 ms with it, 5.1 without).
  ids.fetches_indices = ranges.count > 1;
  const SlabScatter slabs{&ids,
                          p.units,
                          ids.line_loop().extent,
                          p.destinations,
                          p.step,
                          ranges.count,
                          ranges.size,
                          call.source,
                          p.combine,
                          call.fresh,
                          times(ranges.size, p.step) >= thresholds().stream};
  const WorkerScratch scratch(slab_bytes(p, ranges.size), static_cast<int>(ranges.count));
  if (!scratch) return {.memory = false};
  All valid;
  Run run;
  run.finished = run_tasks(ranges.count, call.threads, call.poll, [&](int64_t range, int) {
    valid &= chosen_kernels().slab_take(slabs, call.at, range, scratch.of(static_cast<int>(range)));
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.raises)) return run;
  run_tasks(ranges.count, call.threads, {}, [&](int64_t range, int) {
    chosen_kernels().slab_write(slabs, call.at, range, scratch.of(static_cast<int>(range)));
  });
  return run;
}

bool applies_slabs(const Program& p, int, std::string* why) {
  if (!scatters_items(p, nullptr)) return false;
  const Items items = items_of(p);
  if (items.alone || !fits_slots(items)) return false;
  const bool pays = !items.small && items.slots_bytes <= thresholds().cache && items.updates >= 64;
  if (!needs_accumulator(p.combine) && !pays) return false;
  append(why, items.updates, " updates per unit go to ", p.destinations,
         " destinations: few enough to accumulate in cache, unit by unit");
  return true;
}

int64_t scratch_slabs(const Program& p, int threads) {
  return times(slab_bytes(p, times(p.destinations, std::max<int64_t>(chunk_of(p), 1))), threads);
}

// Many units: each thread fills one slab after the other. The indices were checked before, or the result is
// thrown away after an error.
Run run_slabs(const Program& p, const Execution& call) {
  Nest ids = number_destinations(p.nest);
  const Split s = split(points(ids, p.units), ids.line_loop().extent, p.split_line, chunk_of(p),
                        work_bytes(p), call.threads);
  ids.far = slab_bytes(p, p.destinations) >= kFarSlabBytes;
  const SlabScatter slabs{&ids,
                          p.units,
                          s.chunk,
                          p.destinations,
                          p.step,
                          1,
                          p.destinations,
                          call.source,
                          p.combine,
                          true,
                          times(p.destinations, p.step) >= thresholds().stream};
  const int64_t columns = p.split_line ? s.chunk : 1;
  const WorkerScratch scratch(slab_bytes(p, times(p.destinations, columns)), s.threads);
  if (!scratch) return {.memory = false};
  All valid;
  Run run;
  run.finished = run_split(s, call.poll, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t unit = begin; unit < end; ++unit) {
      valid &= chosen_kernels().slab_take(slabs, call.at, unit, scratch.of(worker));
      chosen_kernels().slab_write(slabs, call.at, unit, scratch.of(worker));
    }
  });
  run.valid = static_cast<bool>(valid);
  return run;
}

}  // namespace gatherum
