// Builds lists of rows, and reduces the rows of each list, on several threads. One thread reduces all rows of
// a destination, in order.
#include "lists/row_lists.hpp"

#include <cstring>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/index_checks.hpp"
#include "engine/levels.hpp"
#include "engine/schedule.hpp"
#include "engine/thresholds.hpp"
#include "lists/edges.hpp"

namespace gatherum {
namespace {

// Replaces the counts by positions in the lists. For each destination, the edges of a piece begin after the
// edges of earlier pieces. Returns the number of edges.
template <class Number>
int64_t positions_of_counts(const ListStage& stage, char* to, int threads) {
  // If there are at least this many counts, threads share the destinations. Each of these threads reads its
  // counts twice.
  constexpr int64_t kSharedCounts = int64_t{1} << 18;
  auto* const starts = reinterpret_cast<Number*>(to);
  auto* const counts = reinterpret_cast<Number*>(stage.counts);
  const int64_t shares = limited_product(stage.pieces, stage.destinations) >= kSharedCounts ? threads : 1;
  std::vector<Number> first(static_cast<size_t>(shares) + 1);  // the position of the first edge of each share
  const auto each_share = [&](const auto& work) {
    run_tasks(shares, threads, {}, [&](int64_t share, int) {
      const int64_t begin = stage.destinations * share / shares;
      work(static_cast<size_t>(share), begin, stage.destinations * (share + 1) / shares);
    });
  };
  const auto sum = [&](size_t share, int64_t begin, int64_t end) {
    Number edges = 0;
    for (int64_t piece = 0; piece < stage.pieces; ++piece)
      for (int64_t d = begin; d < end; ++d) edges += counts[piece * stage.destinations + d];
    first[share + 1] = edges;
  };
  const auto replace = [&](size_t share, int64_t begin, int64_t end) {
    Number at = first[share];
    for (int64_t d = begin; d < end; ++d) {
      if (starts != nullptr) starts[d] = at;
      for (int64_t piece = 0; piece < stage.pieces; ++piece)
        at += std::exchange(counts[piece * stage.destinations + d], at);
    }
    if (shares == 1) first[1] = at;
  };
  if (shares > 1) each_share(sum);
  std::partial_sum(first.begin(), first.end(), first.begin());
  each_share(replace);
  if (starts != nullptr) starts[stage.destinations] = first.back();
  return static_cast<int64_t>(first.back());
}

int64_t number_at(const OwnedMemory& numbers, bool wide, int64_t i) {
  if (wide) return reinterpret_cast<const int64_t*>(numbers.get())[i];
  return reinterpret_cast<const uint32_t*>(numbers.get())[i];
}

}  // namespace

void cut_in_pieces(ListStage& stage, int64_t edges, int threads) {
  // Either there is only one piece, or all pieces together have at most four times as many counters as edges.
  const int64_t most = std::clamp<int64_t>(4 * edges / std::max<int64_t>(stage.destinations, 1), 1, threads);
  stage.piece_units = (stage.units + most - 1) / most;
  stage.pieces = (stage.units + stage.piece_units - 1) / stage.piece_units;
}

Ordered order_edges(ListStage stage, char* starts, const char* targets, const char* sources, int threads,
                    const Poll& poll) {
  std::vector<EdgeOrder> orders(static_cast<size_t>(stage.pieces));
  stage.orders = orders.data();
  All valid;
  Ordered ordered{};
  ordered.finished = run_tasks(stage.pieces, threads, poll, [&](int64_t piece, int) {
    valid &= chosen_kernels().list_stage(stage, targets, sources, piece);
  });
  ordered.valid = static_cast<bool>(valid);
  if (!ordered.finished) return ordered;
  ordered.kept_edges = stage.wide ? positions_of_counts<uint64_t>(stage, starts, threads)
                                  : positions_of_counts<uint32_t>(stage, starts, threads);
  // With `starts`, callers do not need the final counts, so edges that are already in order are stored
  // without updates of the counts.
  stage.in_order = starts != nullptr && are_in_order(orders);
  ordered.in_place = stage.in_order && stage.edge_row != nullptr && stage.edges == nullptr;
  if (ordered.in_place) return ordered;
  ordered.finished = run_tasks(stage.pieces, threads, poll,
                               [&](int64_t piece, int) { chosen_kernels().list_place(stage, piece); });
  return ordered;
}

bool RowLists::are_ends_of_edges(int64_t destinations, const Program& targets, const Program* sources) {
  if (targets.tuples == 0) return sources == nullptr || sources->tuples == 0;
  if (!has_element_numbers(targets) || targets.checks.component[0].size != destinations) return false;
  if (sources == nullptr) return true;
  if (!has_element_numbers(*sources) || sources->checks.rank != targets.checks.rank ||
      sources->checks.line != targets.checks.line)
    return false;
  for (int i = 0; i < targets.checks.rank; ++i)
    if (sources->checks.loops[i].extent != targets.checks.loops[i].extent) return false;
  return targets.checks.line == targets.checks.rank - 1;
}

namespace {

// Checks that the indices of both ends can be resolved. `invalid` is the number of the end that cannot: 0 for
// targets, 1 for sources.
Outcome check_ends(const EdgeEnds& targets, const EdgeEnds& sources, int& invalid) {
  const EdgeEnds* const both[] = {&targets, &sources};
  for (invalid = 1; invalid >= 0; --invalid) {
    const EdgeEnds& ends = *both[invalid];
    if (ends.program == nullptr) continue;
    const Outcome outcome = check_addressable(*ends.program, ends.indices);
    if (outcome.status != Status::done) return outcome;
  }
  return {};
}

// Returns the first invalid index of an end.
Outcome find_invalid_end(const EdgeEnds& targets, const EdgeEnds& sources, const Poll& poll, int& invalid) {
  Outcome outcome;
  if (sources.program) outcome = check_indices(*sources.program, sources.indices, poll);
  invalid = 1;
  if (outcome.status != Status::done) return outcome;
  outcome = check_indices(*targets.program, targets.indices, poll);
  invalid = 0;
  return {outcome.status == Status::done ? Status::invalid_index : outcome.status, outcome.invalid};
}

}  // namespace

// Prepares the sort of the edges by list.
ListStage RowLists::stage_of(const EdgeEnds& targets, const EdgeEnds& sources, int threads) const {
  const Nest& nest = targets.program->checks;
  const Loop& line = nest.line_loop();
  ListStage stage{};
  stage.numbering = &nest;
  stage.sources = sources.program ? &sources.program->checks : nullptr;
  stage.chunk = std::min(kPieceChunk, line.extent);
  stage.units = nest.outer_count() * ((line.extent - 1) / stage.chunk + 1);
  stage.destinations = lists_;
  stage.bucket_size = bucket_size_;
  stage.wide = wide_;
  cut_in_pieces(stage, targets.program->tuples, threads);
  return stage;
}

Outcome RowLists::make(int64_t destinations, int64_t bucket_size, const EdgeEnds& targets,
                       const EdgeEnds& sources, bool numbered, const Poll& poll, int& invalid) {
  destinations_ = destinations;
  bucket_size_ = bucket_size;
  lists_ = (destinations + bucket_size - 1) / bucket_size;
  const int64_t edges = targets.program->tuples;
  const int64_t table = sources.program && edges > 0 ? sources.program->checks.component[0].size : 0;
  const Outcome checked = check_ends(targets, sources, invalid);
  if (checked.status != Status::done) return checked;
  table_rows_ = sources.program ? table : edges;
  wide_ = !fits_32_bits(std::max({edges, destinations_, table}));
  const int64_t width = wide_ ? 8 : 4;
  const int threads = threads_for(limited_product(edges, 4 * kTupleBytes));
  ListStage stage = stage_of(targets, sources, threads);

  starts_ = OwnedMemory(limited_product(lists_ + 1, width));
  if (edges == 0) return std::memset(starts_.get(), 0, static_cast<size_t>(starts_.bytes())), Outcome{};
  rows_ = OwnedMemory(limited_product(edges, width));
  if (numbered || bucket_size_ > 1) edges_ = OwnedMemory(limited_product(edges, width));
  const bool has_edge_rows = stage.sources != nullptr || bucket_size_ > 1;
  const OwnedMemory edge_destination(limited_product(edges, width));
  OwnedMemory edge_row(has_edge_rows ? limited_product(edges, width) : 0);
  const OwnedMemory counts(limited_product(limited_product(stage.pieces, lists_), width));
  stage.edge_destination = edge_destination.get();
  stage.edge_row = has_edge_rows ? edge_row.get() : nullptr;
  stage.counts = counts.get();
  stage.rows = rows_.get();
  stage.edges = edges_.get();

  const Ordered ordered = order_edges(stage, starts_.get(), targets.indices, sources.indices, threads, poll);
  if (!ordered.finished) return {Status::interrupted, {}};
  kept_edges_ = ordered.kept_edges;
  if (ordered.in_place) std::swap(rows_, edge_row);
  if (!ordered.valid && targets.program->invalid_is_error)
    return find_invalid_end(targets, sources, poll, invalid);
  if (bucket_size_ > 1 && !pack(edges, threads, poll)) return {Status::interrupted, {}};
  return {};
}

// Packs the lists of buckets into the smallest integer types, because reading the lists determines the speed
// of the reduction.
bool RowLists::pack(int64_t edges, int threads, const Poll& poll) {
  stretches_ = (edges + kUpdatesPerStretch - 1) / kUpdatesPerStretch;
  bounds_ = OwnedMemory(limited_product(limited_product(lists_, stretches_ + 1), 8));
  OwnedMemory slots(limited_product(kept_edges_, is_narrow() ? 2 : 4)),
      numbers(limited_product(kept_edges_, 2));
  const bool finished = run_tasks(lists_, threads, poll, [&](int64_t list, int) {
    auto* const bounds = reinterpret_cast<int64_t*>(bounds_.get()) + list * (stretches_ + 1);
    const int64_t end = number_at(starts_, wide_, list + 1);
    int64_t s = 0;
    for (int64_t i = number_at(starts_, wide_, list); i < end; ++i) {
      const int64_t edge = number_at(edges_, wide_, i), slot = number_at(rows_, wide_, i);
      for (; s <= edge / kUpdatesPerStretch; ++s) bounds[s] = i;
      reinterpret_cast<uint16_t*>(numbers.get())[i] = static_cast<uint16_t>(edge % kUpdatesPerStretch);
      if (is_narrow())
        reinterpret_cast<uint16_t*>(slots.get())[i] = static_cast<uint16_t>(slot);
      else
        reinterpret_cast<uint32_t*>(slots.get())[i] = static_cast<uint32_t>(slot);
    }
    for (; s <= stretches_; ++s) bounds[s] = end;
  });
  std::swap(rows_, slots);
  std::swap(edges_, numbers);
  return finished;
}

int64_t RowLists::start_of(int64_t destination) const { return number_at(starts_, wide_, destination); }
int64_t RowLists::row_at(int64_t position) const { return number_at(rows_, wide_, position); }

bool RowLists::fold(ListFold call, const Poll& poll) const {
  call.wide = wide_;
  call.starts = starts_.get();
  call.numbers = rows_.get();
  call.edges = edges_.get();
  call.kept_edges = kept_edges_;
  call.far = distance(table_rows_, call.table_step) > thresholds().private_cache_bytes;
  call.destinations = destinations_;
  call.bucket_size = bucket_size_;
  call.stretches = stretches_;
  call.narrow = is_narrow();
  call.bounds = reinterpret_cast<const int64_t*>(bounds_.get());
  return bucket_size_ > 1 ? fold_buckets(call, poll) : fold_rows(call, poll);
}

// Each bucket has one slab. If the accumulators have the stored type, the slab is the memory of the result.
bool RowLists::fold_buckets(const ListFold& call, const Poll& poll) const {
  const int64_t slab = chosen_kernels().slab_bytes(call.fold_rule, call.rows->item, bucket_size_);
  const int threads =
      threads_for(limited_product(kept_edges_ + destinations_, call.rows->item + kTupleBytes));
  const WorkerScratch slabs(slab, threads);
  if (!slabs) throw std::bad_alloc();
  return run_tasks(lists_, threads, poll, [&](int64_t list, int worker) {
    chosen_kernels().list_items(call, list, slabs.memory_of(worker));
  });
}

bool RowLists::fold_rows(ListFold& call, const Poll& poll) const {
  const Shares shares = shares_of(*call.rows, kept_edges_, destinations_);
  OwnedMemory weights;
  if (call.weights != nullptr) {
    weights = OwnedMemory(limited_product(kept_edges_, call.rows->item));
    const int64_t piece =
        std::max<int64_t>(kPieceChunk, kept_edges_ / (kSharesPerThread * shares.threads) + 1);
    const bool ordered =
        run_tasks((kept_edges_ + piece - 1) / piece, shares.threads, poll, [&](int64_t i, int) {
          chosen_kernels().list_weights(call, weights.get(), i * piece,
                                        std::min((i + 1) * piece, kept_edges_));
        });
    if (!ordered) return false;
    call.weights = weights.get();
  }
  const auto begin_of_share = [&](int64_t share) {
    return first_destination_of(share, shares.count, kept_edges_, destinations_,
                                [this](int64_t d) { return number_at(starts_, wide_, d); });
  };
  return run_tasks(shares.count, shares.threads, poll, [&](int64_t share, int) {
    chosen_kernels().list_fold(call, begin_of_share(share), begin_of_share(share + 1));
  });
}

}  // namespace gatherum
