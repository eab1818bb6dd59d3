// Kernel: kernels/scatter_slabs.hpp. One unit: each thread has a slab for a range of the destinations, and
// reads every index.
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
                      p.tuples >= times(kSharedUpdates, thresholds().many_updates);
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
  return times(slab_bytes(p, ranges.size), ranges.count);
}

// One unit: its destinations are divided into ranges, and the task of each range reads every index. Nothing
// is written before all indices have been checked.
RunResult run_in_ranges(const Program& p, const Execution& call, int64_t most) {
  Nest numbering = number_destinations(p.nest);
  const Ranges ranges = ranges_of(p, most);
  numbering.far = busy_bytes(p, p.destinations, slab_bytes(p, p.destinations)) >= kFarSlabBytes;
  // With one range, the hardware prefetches indices during the folds, and a software prefetch would delay
  // them (5M updates of 256 bins: 6.6 ms with it, 5.1 without).
  numbering.fetches_indices = ranges.count > 1;
  const SlabScatter slabs{&numbering,
                          p.unit_loops,
                          numbering.line_loop().extent,
                          p.destinations,
                          p.step,
                          ranges.count,
                          ranges.size,
                          call.source,
                          p.combine,
                          call.fresh,
                          times(ranges.size, p.step) >= thresholds().streamed_bytes};
  const WorkerScratch scratch(slab_bytes(p, ranges.size), static_cast<int>(ranges.count));
  if (!scratch) return {.has_memory = false};
  All valid;
  RunResult run;
  run.finished = run_tasks(ranges.count, call.threads, call.poll, [&](int64_t range, int) {
    valid &=
        chosen_kernels().slab_take(slabs, call.operands, range, scratch.memory_of(static_cast<int>(range)));
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.invalid_is_error)) return run;
  run_tasks(ranges.count, call.threads, {}, [&](int64_t range, int) {
    chosen_kernels().slab_write(slabs, call.operands, range, scratch.memory_of(static_cast<int>(range)));
  });
  return run;
}

RunResult run_divided_accumulators(const Program& p, const Execution& call) {
  return run_in_ranges(p, call, sharing_threads(p, call.threads));
}

}  // namespace gatherum
