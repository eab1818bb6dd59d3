// Kernel: kernels/scatter_slabs.hpp. One unit: each thread has a slab for a range of the destinations, and
// reads every index. Near updates are the exception: most of them have destinations near the destinations of
// the updates before and after them, as in sorted updates. Each thread then reads only the pieces of the
// updates whose lowest and highest destination do not exclude the thread's range.
#include <numeric>
#include <optional>

#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

// For slabs of at least this many bytes, cache misses cost more than reading every index on every thread.
// kSharedByEights is the limit if indices are compared eight at a time. Two threads then take as long as one
// thread that folds updates one by one, unless the accumulators of the one thread exceed its private cache
// (10M updates of 10,000 float64: 12.6 ms on one thread, 15.7 ms on two; of 100,000 float64: 16.5 and 18.3
// ms; 20M updates of 1M float32: 33 and 22 ms). If indices are compared one by one, two threads would take
// longer than one.
constexpr int64_t kSharedByTwo = int64_t{1} << 20, kSharedByEights = int64_t{32} << 10,
                  kSharedOneByOne = int64_t{2} << 20;
// A multiple of the threshold `many_updates`. Up to 1.2M updates are folded as fast on one thread, which
// leaves a processor free.
constexpr int64_t kSharedUpdates = 16;

struct Ranges {
  int64_t count, size;
};

// Divides the destinations into at most `most` ranges.
Ranges ranges_of(const Program& p, int64_t most) {
  const int64_t size = (p.destinations + most - 1) / most;
  return {(p.destinations + size - 1) / size, size};
}

// Returns the number of threads that share the destinations: one if sharing is not worthwhile.
int sharing_threads(const Program& p, int threads) {
  return applies_divided_accumulators(p, threads, nullptr) ? threads : 1;
}

}  // namespace

bool shares_slots(const Program& p, int threads, int64_t bytes) {
  const bool eights = chosen_kernels().chooses_slots(p.nest, p.destinations) &&
                      p.tuples >= limited_product(kSharedUpdates, thresholds().many_updates);
  if (threads < 3) return eights && threads == 2 && bytes >= kSharedByTwo;
  return bytes >= (eights ? kSharedByEights : kSharedOneByOne);
}

bool applies_divided_accumulators(const Program& p, int threads, std::string* why) {
  if (!keeps_one_slab(p, nullptr)) return false;
  if (!shares_slots(p, threads, slab_bytes(p, p.destinations))) return false;
  keeps_one_slab(p, why);
  append(why, ", divided among ", int64_t{threads}, " threads, each of which reads all indices");
  return true;
}

int64_t scratch_divided_accumulators(const Program& p, int threads) {
  const Ranges ranges = ranges_of(p, sharing_threads(p, threads));
  return limited_product(slab_bytes(p, ranges.size), ranges.count);
}

namespace {

// Runs a scatter with one unit. Its destinations are divided into ranges, and the task of each range reads
// every index, or only the pieces of near updates with destinations in the range. Nothing is written before
// all indices have been checked.
RunResult run_ranges(const Program& p, const Execution& call, const Ranges& ranges, const NearUpdates* near) {
  Nest numbering = number_destinations(p.nest);
  const int64_t bytes = slab_bytes(p, p.destinations);
  numbering.far = near == nullptr && busy_bytes(p, p.destinations, bytes) >= kFarSlabBytes;
  // With one range, the hardware prefetches indices during the folds, and a software prefetch would delay
  // them (5M updates of 256 bins: 6.6 ms with it, 5.1 without).
  numbering.fetches_indices = ranges.count > 1;
  const SlabScatter slabs{.numbering = &numbering,
                          .unit_loops = p.unit_loops,
                          .chunk = numbering.line_loop().extent,
                          .destinations = p.destinations,
                          .step = p.step,
                          .ranges = ranges.count,
                          .range_size = ranges.size,
                          .source = call.source,
                          .fold_rule = p.fold_rule,
                          .direct = call.fresh,
                          .streams = limited_product(ranges.size, p.step) >= thresholds().streamed_bytes,
                          .near = near};
  const WorkerScratch scratch(bytes + ranges.count * kCacheLine, 1);
  if (!scratch) return {.has_memory = false};
  // No two slabs share a cache line.
  const auto slab_of = [&](int64_t range) {
    const int64_t first = near != nullptr ? near->cuts[range] : range * ranges.size;
    return scratch.memory_of(0) + (slab_bytes(p, first) / kCacheLine + range) * kCacheLine;
  };
  All valid;
  RunResult run;
  run.finished = run_tasks(ranges.count, call.threads, call.poll, [&](int64_t range, int) {
    valid &= chosen_kernels().slab_take(slabs, call.operands, range, slab_of(range));
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.invalid_is_error)) return run;
  run_tasks(ranges.count, call.threads, {}, [&](int64_t range, int) {
    chosen_kernels().slab_write(slabs, call.operands, range, slab_of(range));
  });
  return run;
}

constexpr int64_t kMostRanges = 256, kMiddlesOfRange = 8;

// Divides the destinations into ranges with about equal numbers of pieces, and writes the ranges' cuts. A
// destination with more pieces than a range should have gets a separate range. Returns the number of ranges.
// Returns 0 if all ranges together read more than twice as many pieces as there are, or if one range reads
// more than one and a half threads' share of the pieces. Pieces of a single destination do not count for the
// share, because only one thread can fold them.
int64_t cut_near(const NearUpdates& all, int64_t destinations, int threads, int32_t* cuts) {
  const int64_t most = std::min({all.pieces / 4, int64_t{threads}, kMostRanges});
  if (most < 2) return 0;
  int32_t middles[kMostRanges * kMiddlesOfRange];
  const int64_t step = (all.pieces - 1) / (most * kMiddlesOfRange) + 1;
  int64_t n = 0, ranges = 0, read = 0, longest = 0;
  for (int64_t i = 0; i < all.pieces; i += step)
    if (all.lowest[i] <= all.highest[i]) middles[n++] = std::midpoint(all.lowest[i], all.highest[i]);
  std::sort(middles, middles + n);
  cuts[0] = 0;
  for (int64_t i = 1; i < most && n > 0; ++i) {
    const int32_t middle = middles[i * n / most], cut = middle + (middle == cuts[ranges] ? 1 : 0);
    if (cut > cuts[ranges] && cut < destinations) cuts[++ranges] = cut;
  }
  cuts[++ranges] = static_cast<int32_t>(destinations);
  for (int64_t range = 0; range < ranges; ++range) {
    const int32_t first = cuts[range], end = cuts[range + 1];
    int32_t here = 0, divisible = 0;
    for (int64_t i = 0; i < all.pieces; ++i) {
      const int32_t meets =
          static_cast<int32_t>(all.lowest[i] < end) & static_cast<int32_t>(all.highest[i] >= first);
      here += meets;
      divisible += meets & static_cast<int32_t>(all.lowest[i] < all.highest[i]);
    }
    read += here;
    longest = std::max<int64_t>(longest, divisible);
  }
  return read <= 2 * all.pieces && 2 * longest * most <= 3 * all.pieces ? ranges : 0;
}

// Returns the updates in pieces of about this many, at most `most`, without their destinations.
NearUpdates pieces_of(const Nest& numbering, int64_t updates, int64_t most) {
  NearUpdates all{};
  const int64_t line = numbering.line_loop().extent;
  all.chunk = std::min(updates, line);
  all.units = limited_product(numbering.outer_count(), (line - 1) / all.chunk + 1);
  all.piece_units = std::max((all.units - 1) / most + 1, updates / all.chunk);
  all.pieces = (all.units - 1) / all.piece_units + 1;
  return all;
}

// Returns true if a sample of the updates seems to be near.
bool seem_near(const Program& p, const Execution& call, const Nest& numbering) {
  constexpr int64_t pieces = 64, updates = 16;
  NearUpdates sample = pieces_of(numbering, updates, int64_t{1} << 62);
  const int64_t units = sample.units;
  sample.pieces = std::min(pieces, units);
  int32_t lowest[pieces], highest[pieces], cuts[kMostRanges + 1];
  for (int64_t i = 0; i < sample.pieces; ++i) {
    const int64_t unit = limited_product(units, i) / sample.pieces;
    chosen_kernels().find_lowest_and_highest(numbering, call.operands.index,
                                             {.chunk = sample.chunk, .begin = unit, .end = unit + 1},
                                             p.destinations, lowest + i, highest + i);
  }
  sample.lowest = lowest;
  sample.highest = highest;
  return cut_near(sample, p.destinations, call.threads, cuts) > 0;
}

}  // namespace

std::optional<RunResult> run_near(const Program& p, const Execution& call) {
  if (p.destinations >= int64_t{1} << 31) return std::nullopt;
  const Nest numbering = number_destinations(p.nest);
  if (!seem_near(p, call, numbering)) return std::nullopt;
  // Shorter pieces reduce the cost of a few updates that are far from the others.
  constexpr int64_t updates = 2048, most = 8192;
  NearUpdates all = pieces_of(numbering, updates, most);
  const WorkerScratch extremes(limited_product(2 * all.pieces, sizeof(int32_t)), 1);
  if (!extremes) return RunResult{.has_memory = false};
  auto* const lowest = reinterpret_cast<int32_t*>(extremes.memory_of(0));
  all.lowest = lowest;
  all.highest = lowest + all.pieces;
  All valid;
  RunResult run;
  const int64_t tasks = std::min(all.pieces, int64_t{4} * call.threads);
  run.finished = run_tasks(tasks, call.threads, call.poll, [&](int64_t task, int) {
    for (int64_t i = all.pieces * task / tasks; i < all.pieces * (task + 1) / tasks; ++i) {
      const int64_t begin = i * all.piece_units, end = std::min(begin + all.piece_units, all.units);
      valid &= chosen_kernels().find_lowest_and_highest(numbering, call.operands.index,
                                                        {.chunk = all.chunk, .begin = begin, .end = end},
                                                        p.destinations, lowest + i, lowest + all.pieces + i);
    }
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.invalid_is_error)) return run;
  int32_t cuts[kMostRanges + 1];
  const int64_t ranges = cut_near(all, p.destinations, call.threads, cuts);
  if (ranges == 0) return std::nullopt;
  all.cuts = cuts;
  return run_ranges(p, call, {ranges, (p.destinations - 1) / ranges + 1}, &all);
}

RunResult run_in_ranges(const Program& p, const Execution& call, int64_t most) {
  return run_ranges(p, call, ranges_of(p, most), nullptr);
}

RunResult run_divided_accumulators(const Program& p, const Execution& call) {
  const int threads = sharing_threads(p, call.threads);
  if (threads > 1)
    if (const std::optional<RunResult> run = run_near(p, call)) return *run;
  return run_in_ranges(p, call, threads);
}

}  // namespace gatherum
