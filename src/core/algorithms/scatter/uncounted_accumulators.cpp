// Kernel: kernels/scatter_uncounted.hpp. Sums, maxima and minima of many updates without the old values, in
// accumulators without counters (scatter_uncounted.hpp).
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

int64_t uncounted_bytes(const Program& p) {
  return chosen_kernels().uncounted_bytes(p.fold_rule, p.destinations);
}

// Returns true if each thread has accumulators for all destinations.
bool has_own_sums(const Program& p, int threads) {
  return threads > 1 && chosen_kernels().uncounted_is_any_order(p.fold_rule) && are_few(p, threads) &&
         uncounted_bytes(p) <= thresholds().shared_cache_bytes;
}

// Returns the number of destinations of a task; the sums of this many destinations fill complete cache lines.
// Returns 0 if each task has all destinations.
int64_t range_of(const Program& p, int threads) {
  if (has_own_sums(p, threads)) return 0;
  if (!shares_slots(p, threads, uncounted_bytes(p))) return p.destinations;
  return ((p.destinations - 1) / threads / kCacheLine + 1) * kCacheLine;
}

// run_counted repeats the scatter if counters are needed after all. scratch_counted returns the number of
// additional bytes that run_counted needs.
RunResult run_counted(const Program& p, const Execution& call) {
  if (applies_partitioned(p, call.threads, nullptr)) return run_partitioned(p, call);
  return applies_private_accumulators(p, call.threads, nullptr) ? run_private_accumulators(p, call)
                                                                : run_divided_accumulators(p, call);
}

int64_t scratch_counted(const Program& p, int threads) {
  if (applies_partitioned(p, threads, nullptr)) return scratch_partitioned(p, threads);
  if (applies_private_accumulators(p, threads, nullptr)) return scratch_private_accumulators(p, threads);
  return scratch_divided_accumulators(p, threads);
}

// Returns true if each thread has accumulators for all destinations that hold keys (private_accumulators).
// Keys of floats are compared as integers, which is faster (maxima of 400,000 updates on one thread: float32
// into 10,000 destinations takes 0.42 ms with keys and 0.53 ms without; float64 into 90,000 destinations 1.1
// and 1.5 ms).
bool folds_keys_faster(const Program& p, int threads) {
  return applies_private_accumulators(p, threads, nullptr) && !applies_partitioned(p, threads, nullptr);
}

}  // namespace

bool applies_uncounted_accumulators(const Program& p, int threads, std::string* why) {
  if (p.fold_rule.include_self || !scatters_items(p, nullptr)) return false;
  const int64_t bytes = uncounted_bytes(p);
  const bool pays = items_of(p).is_one_unit && p.tuples >= thresholds().many_updates && are_few(p, 1);
  if (bytes == 0 || bytes > thresholds().far_bytes || !pays || folds_keys_faster(p, threads)) return false;
  if (!has_own_sums(p, threads) && applies_in_rounds(p, threads, nullptr)) return false;
  append(why, p.tuples, " updates go to ", p.destinations, " destinations, whose old values are not used: ");
  append(why, "each destination has an accumulator without a counter");
  return true;
}

int64_t scratch_uncounted_accumulators(const Program& p, int threads) {
  return limited_product(uncounted_bytes(p), has_own_sums(p, threads) ? threads : 1) +
         scratch_counted(p, threads);
}

// Nothing is written before all indices have been checked, and no sum needs a counter.
RunResult run_uncounted_accumulators(const Program& p, const Execution& call) {
  const auto& kernels = chosen_kernels();
  Nest numbering = number_destinations(p.nest);
  const int64_t bytes = (uncounted_bytes(p) + kCacheLine - 1) / kCacheLine * kCacheLine;
  PrivateScatter slabs = private_scatter_of(p, call, numbering, bytes);
  slabs.range_size = range_of(p, call.threads);
  const int64_t tasks = slabs.range_size == 0 ? slabs.pieces : (p.destinations - 1) / slabs.range_size + 1;
  const WorkerScratch scratch(limited_product(bytes, slabs.range_size == 0 ? tasks : 1), 1);
  if (!scratch) return {.has_memory = false};
  slabs.slabs = scratch.memory_of(0);
  const auto all_destinations = [&](auto kernel) {
    All all;
    share_destinations(p, call.threads,
                       [&](int64_t begin, int64_t end) { all &= kernel(slabs, call.operands, begin, end); });
    return static_cast<bool>(all);
  };
  if (!all_destinations(kernels.uncounted_is_suitable)) return run_counted(p, call);
  All valid, plain;
  RunResult run;
  run.finished = run_tasks(tasks, call.threads, call.poll, [&](int64_t task, int) {
    valid &= kernels.uncounted_take(slabs, call.operands, task);
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.invalid_is_error)) return run;
  if (!all_destinations(kernels.uncounted_merge)) {
    run_tasks(slabs.pieces, call.threads, {}, [&](int64_t piece, int) {
      plain &= kernels.uncounted_is_unambiguous(slabs, call.operands, piece);
    });
    if (!plain) return run_counted(p, call);
  }
  share_destinations(p, call.threads, [&](int64_t begin, int64_t end) {
    kernels.uncounted_write(slabs, call.operands, begin, end);
  });
  return run;
}

}  // namespace gatherum
