// Kernel: kernels/scatter_partition.hpp.
// A scatter into more destinations than the cache holds. Updates are first sorted, stably, into buckets
// of neighbouring destinations; then each bucket is folded in a slab (scatter_partition.hpp).
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

// The size of a bucket: about the size of a core's private cache. Buckets of this size are
// a tenth faster than buckets of 2 MiB.
constexpr int64_t kBucketBytes = int64_t{1} << 20;
constexpr int64_t kMaxBuckets = 1024;

// Returns the size of a bucket's slab in bytes.
int64_t bucket_bytes(const Program& p, int shift) {
  return chosen_kernels().slab_bytes(p.fold_rule, p.nest.item, int64_t{1} << shift);
}

// Returns log2 of the bucket size: the largest size that fits in a slab and results in enough buckets for
// every thread.
int bucket_shift(const Program& p, int threads) {
  int shift = 6;
  while (shift < 31 && busy_bytes(p, int64_t{1} << (shift + 1), bucket_bytes(p, shift + 1)) <= kBucketBytes &&
         (p.destinations >> (shift + 1)) >= 4 * threads)
    ++shift;
  while ((p.destinations >> shift) >= kMaxBuckets) ++shift;
  return shift;
}

// Divides the updates into pieces, and the memory of their lists into runs. Part of the last run of each list
// is unused. The pieces are so few and the runs so short that less than an eighth of the memory is unused.
struct Cut {
  int64_t chunk, units, pieces, piece_units, run, runs;
};

Cut cut_updates(const Program& p, const Nest& numbering, int threads, int64_t buckets) {
  constexpr int64_t kShortestRun = 16, kLongestRun = 1024;
  const Loop& line = numbering.line_loop();
  Cut c{};
  c.chunk = std::min(kPieceChunk, line.extent);
  c.units = limited_product(numbering.outer_count(), (line.extent - 1) / c.chunk + 1);
  const int64_t most = std::max<int64_t>(1, p.tuples / (8 * kShortestRun * buckets));
  const int64_t pieces = std::min({c.units, int64_t{4} * threads, most});
  c.piece_units = (c.units + pieces - 1) / pieces;
  c.pieces = (c.units + c.piece_units - 1) / c.piece_units;
  c.run = std::clamp(p.tuples / (8 * c.pieces * buckets), kShortestRun, kLongestRun);
  c.runs = p.tuples / c.run + c.pieces * buckets;
  return c;
}

}  // namespace

bool applies_partitioned(const Program& p, int, std::string* why) {
  if (!scatters_items(p, nullptr)) return false;
  const Items items = items_of(p);
  // Reading a window of an exact sum from memory takes longer than writing an accumulator there. For a mean,
  // half of an accumulator is the count, which is fetched together with the sum (10M float64 into 1M: on two
  // threads 28 ms with buckets and 22 ms without; on one thread 42 and 27 ms).
  const ReductionRow row = row_of(p.fold_rule.reduction);
  const int64_t far = thresholds().far_bytes, most = row.exact ? far / 8 : row.divides ? far * 2 : far;
  const bool is_far = busy_bytes(p, p.destinations, items.slots_bytes) > most &&
                      limited_product(items.updates, 8) >= p.destinations && p.item <= 8;
  if (!items.is_one_unit || items.updates < thresholds().many_updates || !is_far) return false;
  append(why, items.updates, " updates, at least ", thresholds().many_updates, ", go to ", p.destinations,
         " destinations, which do not fit in the cache: the updates are first grouped by blocks of "
         "destinations, and each block is then reduced in the cache");
  return true;
}

int64_t scratch_partitioned(const Program& p, int threads) {
  // Slabs of exact sums also have states, but few states are used.
  const bool exact = row_of(p.fold_rule.reduction).exact;
  const int64_t slabs = exact ? limited_product(bucket_bytes(p, bucket_shift(p, threads)), threads) : 0;
  // The unused ends of the lists take up to an eighth of the memory of the pairs. The links between runs and
  // the cursors of the lists take up to three quarters of a byte per update.
  return slabs + limited_product(items_of(p).updates, 9 * (4 + p.item) + 6) / 8;
}

// Nothing is written before all indices have been checked.
RunResult run_partitioned(const Program& p, const Execution& call) {
  const int threads = call.threads;
  const Nest numbering = number_destinations(p.nest);
  PartitionScatter part{};
  part.numbering = &numbering;
  part.shift = bucket_shift(p, threads);
  part.buckets = ((p.destinations - 1) >> part.shift) + 1;
  const Cut cut = cut_updates(p, numbering, threads, part.buckets);
  part.chunk = cut.chunk;
  part.units = cut.units;
  part.pieces = cut.pieces;
  part.piece_units = cut.piece_units;
  part.run_bytes = cut.run * (PartitionScatter::kLocalBytes + p.item);
  part.destinations = p.destinations;
  part.step = p.step;
  part.source = call.source;
  part.fold_rule = p.fold_rule;
  const int64_t lists = part.pieces * part.buckets;
  const WorkerScratch runs(limited_product(cut.runs, part.run_bytes), 1);
  const WorkerScratch chains((cut.runs + 3 * lists) * 8, 1);
  const WorkerScratch slabs(bucket_bytes(p, part.shift), threads);
  if (!runs || !chains || !slabs) return {.has_memory = false};
  std::atomic<int64_t> taken{0};
  part.taken = &taken;
  part.runs = runs.memory_of(0);
  part.next = reinterpret_cast<int64_t*>(chains.memory_of(0));
  part.first = part.next + cut.runs;
  part.cursors = reinterpret_cast<PartitionScatter::Cursor*>(part.first + lists);

  All valid;
  RunResult run;
  run.finished = run_tasks(part.pieces, threads, call.poll, [&](int64_t piece, int) {
    valid &= chosen_kernels().partition_distribute(part, call.operands, piece);
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.invalid_is_error)) return run;
  run.finished = run_tasks(part.buckets, threads, call.poll, [&](int64_t b, int worker) {
    chosen_kernels().partition_apply(part, call.operands, b, slabs.memory_of(worker));
  });
  return run;
}

}  // namespace gatherum
