// Kernel: kernels/scatter_grouped.hpp. First orders the updates by destination, with a counting sort or by
// comparison, so that each destination folds its updates in registers.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"
#include "lists/row_lists.hpp"

namespace gatherum {
namespace {

// Returns the number of updates of one unit.
int64_t updates_of(const Program& p) {
  return points(p.fold_nest, p.fold_nest.line + 1) / points(p.fold_nest, p.fold_unit_loops);
}

// The maximum number of destinations per update for a counting sort with 32-bit numbers. With more
// destinations, updates are sorted by comparison (200,000 updates of 500,000 rows: 1.5 ms instead of 14 ms).
constexpr int64_t kMostDestinationsPerUpdate = 8;

// If the updates of a unit have fewer bytes, they fit in cache, and prefetching only increases the time: by
// 40 % for rows of 8 items. Above this size, prefetching helps: for 128 MB of rows in order and 50
// destinations, the time falls from 43 ms to 37 ms (float16: from 91 ms to 27 ms).
constexpr int64_t kNearUpdateBytes = kPrivateCacheBytes;

// Returns true if a counting sort orders the updates.
bool uses_counting_sort(const Program& p) {
  const int64_t updates = updates_of(p);
  return p.destinations <= limited_product(kMostDestinationsPerUpdate, updates) && fits_32_bits(updates);
}

// Prepares the counting sort of the updates of a unit. All threads share it if there is only one unit.
ListStage stage_of(const Program& p, const Nest& numbering, int threads) {
  const int64_t line = numbering.line_loop().extent;
  ListStage stage{};
  stage.numbering = &numbering;
  stage.destinations = p.destinations;
  stage.chunk = std::min(kPieceChunk, line);
  stage.units = points(numbering, numbering.line) / points(numbering, p.fold_unit_loops) *
                ((line - 1) / stage.chunk + 1);
  cut_in_pieces(stage, updates_of(p), points(p.fold_nest, p.fold_unit_loops) == 1 ? threads : 1);
  return stage;
}

GroupedScatter grouped_scatter_of(const Program& p, const Nest& numbering, int64_t pieces) {
  const int64_t updates = updates_of(p);
  return {.nest = &p.fold_nest,
          .numbering = &numbering,
          .unit_loops = p.fold_unit_loops,
          .updates = updates,
          .destinations = p.destinations,
          .counted = uses_counting_sort(p),
          .pieces = pieces,
          .prefetches = limited_product(updates, row_bytes(p.fold_nest)) > kNearUpdateBytes,
          .fold_rule = p.fold_rule};
}

// The minimum number of updates per destination for which it is faster to sort rows by destination than to
// fold them directly into destinations outside the cache. Each destination is then read and written once. For
// 1M rows of 64 float32, this is 1.7 times as fast with 100,000 destinations, but takes 1.2 times as long
// with 10,000 destinations, which fit in cache.
constexpr int64_t kFewestUpdatesPerDestination = 4;

bool folds_rows_at_once(const Program& p) {
  const int64_t row = row_bytes(p.fold_nest);
  return p.fold_rule.reduction != Reduction::none && points(p.fold_nest, p.fold_unit_loops) == 1 &&
         uses_counting_sort(p) && row >= 2 * kCacheLine &&
         updates_of(p) >= limited_product(kFewestUpdatesPerDestination, p.destinations) &&
         limited_product(p.destinations, row) >= thresholds().far_bytes;
}

}  // namespace

bool applies_by_destination(const Program& p, int, std::string* why) {
  const bool needs = needs_accumulator(p.fold_rule) || p.fold_rule.skips_nan;
  if (!needs && !folds_rows_at_once(p)) return false;
  append_why_no_accumulators(p, why);
  append(why, needs ? "; the reduction needs accumulators" : "; each destination is read and written once",
         ", so the updates are first grouped by destination, ");
  if (uses_counting_sort(p))
    append(why, "with a counting sort over ", p.destinations, " destinations");
  else
    append(why, "with a sort by comparison");
  return true;
}

int64_t scratch_by_destination(const Program& p, int threads) {
  const int64_t units = points(p.fold_nest, p.fold_unit_loops);
  const GroupedScatter groups = grouped_scatter_of(p, p.fold_nest, stage_of(p, p.fold_nest, threads).pieces);
  return limited_product(chosen_kernels().grouped_bytes(groups), std::min<int64_t>(threads, units));
}

// With many units, each thread processes one unit after another. With a single unit, threads share its
// updates, and then its groups.
RunResult run_shares_of_groups(const Program& p, const Execution& call, const GroupWork& work) {
  const Nest numbering = number_destinations(p.fold_nest);
  const Split s = split(points(p.fold_nest, p.fold_unit_loops), p.fold_nest.line_loop().extent, false, 0,
                        work_bytes(p), call.threads);
  const ListStage stage = stage_of(p, numbering, s.threads);
  const GroupedScatter groups = grouped_scatter_of(p, numbering, stage.pieces);
  const bool alone = s.units == 1;
  const WorkerScratch scratch(chosen_kernels().grouped_bytes(groups), alone ? 1 : s.threads);
  if (!scratch) return {.has_memory = false};
  All valid;
  const auto order = [&](int64_t unit, int threads, char* to, const Poll& poll) {
    Ordered ordered{true, true, 0};
    if (groups.counted) {
      ListStage of_unit = stage;
      of_unit.first = unit * stage.units;
      of_unit.counts = to;
      of_unit.edge_destination = to + 4 * stage.pieces * stage.destinations;
      of_unit.rows = of_unit.edge_destination + 4 * groups.updates;
      ordered = order_edges(of_unit, nullptr, call.operands.index, nullptr, threads, poll);
    } else {
      ordered.kept_edges = chosen_kernels().sort_updates(groups, call.operands, unit, to);
    }
    valid &= ordered.kept_edges == groups.updates;
    return ordered;
  };
  RunResult run;
  if (alone) {
    const Ordered ordered = order(0, s.threads, scratch.memory_of(0), call.poll);
    const int64_t shares = s.threads > 1 ? kSharesPerThread * s.threads : 1;
    run.finished = ordered.finished && run_tasks(shares, s.threads, call.poll, [&](int64_t i, int) {
                     work(groups, {.unit = 0,
                                   .kept_updates = ordered.kept_edges,
                                   .share = i,
                                   .shares = shares,
                                   .scratch = scratch.memory_of(0)});
                   });
  } else {
    run.finished = run_split(s, call.poll, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t unit = begin; unit < end; ++unit)
        work(groups, {.unit = unit,
                      .kept_updates = order(unit, 1, scratch.memory_of(worker), {}).kept_edges,
                      .share = 0,
                      .shares = 1,
                      .scratch = scratch.memory_of(worker)});
    });
  }
  run.valid = static_cast<bool>(valid);
  return run;
}

RunResult run_by_destination(const Program& p, const Execution& call) {
  return run_shares_of_groups(p, call, [&](const GroupedScatter& groups, const GroupShare& share) {
    chosen_kernels().fold_groups(groups, call.operands, share);
  });
}

}  // namespace gatherum
