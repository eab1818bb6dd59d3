// Kernel: kernels/scatter_private.hpp. One unit: each thread folds a piece of the updates into a slab, and
// the slabs are merged. It applies if the order of folding cannot change the result.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

// Returns true if each thread computes exact sums in tables. The tables must fit in the cache, so there must
// be few destinations. There must be many updates, so that clearing and reading the tables takes only a small
// part of the time.
bool has_tables(const Program& p, int threads) {
  constexpr int64_t most_destinations = 1024, most_bytes = int64_t{8} << 20;
  const int64_t table = row_of(p.fold_rule.reduction).exact ? table_bytes(p.fold_rule.value) : 0;
  const int64_t bytes = limited_product(p.destinations, table);
  return table != 0 && !needs_counter(p.fold_rule) && p.destinations <= most_destinations &&
         bytes <= most_bytes &&
         p.tuples / threads >= limited_product(bytes / 8, thresholds().updates_per_table_word);
}

int64_t private_slab_bytes(const Program& p, int threads) {
  const int64_t bytes = chosen_kernels().private_bytes(p.fold_rule, p.destinations, has_tables(p, threads));
  return bytes / kCacheLine * kCacheLine + kCacheLine;
}

}  // namespace

PrivateScatter private_scatter_of(const Program& p, const Execution& call, Nest& numbering,
                                  int64_t slab_bytes) {
  const Loop& line = numbering.line_loop();
  numbering.far = busy_bytes(p, p.destinations, slab_bytes) >= kFarSlabBytes;
  PrivateScatter slabs{};
  slabs.numbering = &numbering;
  slabs.chunk = std::min(kPieceChunk, line.extent);
  slabs.units = numbering.outer_count() * ((line.extent - 1) / slabs.chunk + 1);
  slabs.piece_units = (slabs.units + call.threads - 1) / call.threads;
  slabs.pieces = (slabs.units + slabs.piece_units - 1) / slabs.piece_units;
  slabs.destinations = p.destinations;
  slabs.step = p.step;
  slabs.source = call.source;
  slabs.fold_rule = p.fold_rule;
  slabs.slab_bytes = slab_bytes;
  return slabs;
}

bool applies_private_accumulators(const Program& p, int threads, std::string* why) {
  const bool tables = has_tables(p, threads), alone = threads == 1 && !needs_counter(p.fold_rule);
  if ((alone && !tables) || !keeps_one_slab(p, nullptr) || !are_few(p, threads)) return false;
  if (chosen_kernels().private_bytes(p.fold_rule, p.destinations, tables) == 0) return false;
  keeps_one_slab(p, why);
  if (tables) append(why, " and a table of ", table_bytes(p.fold_rule.value), " bytes");
  if (threads > 1) append(why, ", for each of ", int64_t{threads}, " threads");
  append(why, "; the result does not depend on the order of the updates");
  return true;
}

int64_t scratch_private_accumulators(const Program& p, int threads) {
  return limited_product(private_slab_bytes(p, threads), threads);
}

// Nothing is written before all indices have been checked. If a scatter with keys found a NaN that keys
// cannot represent, it is repeated in order, with accumulators that count their updates.
RunResult run_private_accumulators(const Program& p, const Execution& call) {
  Nest numbering = number_destinations(p.nest);
  PrivateScatter slabs = private_scatter_of(p, call, numbering, private_slab_bytes(p, call.threads));
  slabs.tables = has_tables(p, call.threads);
  FoundNaNs nans;
  slabs.nans = &nans;
  slabs.streams = limited_product(p.destinations / call.threads + 1, p.step) >= thresholds().streamed_bytes;
  const WorkerScratch scratch(limited_product(slabs.slab_bytes, slabs.pieces), 1);
  if (!scratch) return {.has_memory = false};
  slabs.slabs = scratch.memory_of(0);
  All valid;
  RunResult run;
  run.finished = run_tasks(slabs.pieces, call.threads, call.poll, [&](int64_t piece, int) {
    valid &= chosen_kernels().private_take(slabs, call.operands, piece) == FoldedUpdates::all;
  });
  if (run.finished && nans.any_lost) return run_divided_accumulators(p, call);
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.invalid_is_error)) return run;
  share_destinations(p, call.threads, [&](int64_t begin, int64_t end) {
    chosen_kernels().private_write(slabs, call.operands, begin, end);
  });
  return run;
}

bool locates_items(const Program& p, int threads) {
  int64_t items = 1;
  for (int i = 0; i < p.result.rank; ++i) items = limited_product(items, p.result.extent[i]);
  const bool all = p.destinations == items && p.step == p.item;  // every item is a destination
  return all && scatters_items(p, nullptr) && items_of(p).is_one_unit && are_few(p, threads) &&
         !p.fold_rule.include_self && fits_32_bits(p.tuples) && p.tuples >= thresholds().many_updates;
}

RunResult locate_items(const Program& p, const Execution& call, int64_t* positions, int64_t none) {
  Nest numbering = number_destinations(p.nest);
  const int64_t bytes = chosen_kernels().located_bytes(p.fold_rule, p.destinations);
  PrivateScatter slabs =
      private_scatter_of(p, call, numbering, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
  slabs.positions = positions;
  slabs.none = none;
  const WorkerScratch scratch(limited_product(slabs.slab_bytes, slabs.pieces), 1);
  if (!scratch) return {.has_memory = false};
  slabs.slabs = scratch.memory_of(0);
  All valid;
  RunResult run;
  run.finished = run_tasks(slabs.pieces, call.threads, call.poll, [&](int64_t piece, int) {
    valid &= chosen_kernels().located_take(slabs, call.operands, piece) == FoldedUpdates::all;
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.invalid_is_error)) return run;
  share_destinations(p, call.threads,
                     [&](int64_t begin, int64_t end) { chosen_kernels().located_write(slabs, begin, end); });
  return run;
}

}  // namespace gatherum
