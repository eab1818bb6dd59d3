// Makes and folds lists of rows on several threads. Every destination meets its rows in order, on one thread.
#include "row_lists.hpp"

#include <cstring>
#include <new>
#include <vector>

#include "implementations/implementations.hpp"

namespace gatherum {
namespace {

// Destinations are dealt out in this many shares per thread: some have more rows than others.
constexpr int64_t kSharesPerThread = 8;

// The positions where each piece's edges begin in the lists: behind those of earlier pieces, destination by
// destination. Returns how many there are.
template <class Number>
int64_t count_out(const ListStage& stage, char* to) {
  auto* const starts = reinterpret_cast<Number*>(to);
  auto* const counts = reinterpret_cast<Number*>(stage.counts);
  Number at = 0;
  for (int64_t d = 0; d < stage.destinations; ++d) {
    if (starts != nullptr) starts[d] = at;
    for (int64_t piece = 0; piece < stage.pieces; ++piece)
      at += std::exchange(counts[piece * stage.destinations + d], at);
  }
  if (starts != nullptr) starts[stage.destinations] = at;
  return static_cast<int64_t>(at);
}

// Whether the lists of all edges ascend.
bool in_order(const std::vector<ListStage::Course>& courses) {
  bool all = true;
  for (size_t i = 0; i < courses.size(); ++i)
    all &= courses[i].ascends && (i == 0 || courses[i - 1].last <= courses[i].first);
  return all;
}

int64_t number(const OwnedMemory& numbers, bool wide, int64_t i) {
  if (wide) return reinterpret_cast<const int64_t*>(numbers.get())[i];
  return reinterpret_cast<const uint32_t*>(numbers.get())[i];
}

}  // namespace

void cut_in_pieces(ListStage& stage, int64_t edges, int threads) {
  // Counters of all pieces together are at most four times as many as edges, or there is one piece.
  const int64_t most = std::clamp<int64_t>(4 * edges / std::max<int64_t>(stage.destinations, 1), 1, threads);
  stage.piece_units = (stage.units + most - 1) / most;
  stage.pieces = (stage.units + stage.piece_units - 1) / stage.piece_units;
}

Ordered order_edges(ListStage stage, char* starts, const char* targets, const char* sources, int threads,
                    const Poll& poll) {
  std::vector<ListStage::Course> courses(static_cast<size_t>(stage.pieces));
  stage.courses = courses.data();
  All valid;
  Ordered ordered{};
  ordered.finished = run_tasks(stage.pieces, threads, poll, [&](int64_t piece, int) {
    valid &= chosen_kernels().list_stage(stage, targets, sources, piece);
  });
  ordered.valid = static_cast<bool>(valid);
  if (!ordered.finished) return ordered;
  ordered.kept = stage.wide ? count_out<uint64_t>(stage, starts) : count_out<uint32_t>(stage, starts);
  // Where there are starts, nothing but them is asked of the counts.
  stage.in_order = starts != nullptr && in_order(courses);
  ordered.finished = run_tasks(stage.pieces, threads, poll,
                               [&](int64_t piece, int) { chosen_kernels().list_place(stage, piece); });
  return ordered;
}

OwnedMemory::OwnedMemory(int64_t bytes)
    : start_(static_cast<char*>(static_cast<size_t>(bytes) >= kLargeResult
                                    ? allocate_large(static_cast<size_t>(bytes))
                                    : std::malloc(static_cast<size_t>(std::max<int64_t>(bytes, 1))))),
      bytes_(bytes) {
  if (start_ == nullptr) throw std::bad_alloc();
}

OwnedMemory::~OwnedMemory() {
  if (start_ != nullptr && !(static_cast<size_t>(bytes_) >= kLargeResult && free_large(start_)))
    std::free(start_);
}

bool RowLists::fit(int64_t destinations, const Program& targets, const Program* sources) {
  const auto numbers = [](const Program& p) {
    return p.checks.components == 1 && p.checks.component[0].stride == 1 && p.checks.component[0].offset == 0;
  };
  if (targets.tuples == 0) return sources == nullptr || sources->tuples == 0;
  if (!numbers(targets) || targets.checks.component[0].size != destinations) return false;
  if (sources == nullptr) return true;
  if (!numbers(*sources) || sources->checks.rank != targets.checks.rank ||
      sources->checks.line != targets.checks.line)
    return false;
  for (int i = 0; i < targets.checks.rank; ++i)
    if (sources->checks.loops[i].extent != targets.checks.loops[i].extent) return false;
  return targets.checks.line == targets.checks.rank - 1;
}

Outcome RowLists::make(int64_t destinations, int64_t block, const EdgeEnds& targets, const EdgeEnds& sources,
                       bool numbered, const Poll& poll, int& invalid) {
  destinations_ = destinations;
  block_ = block;
  lists_ = (destinations + block - 1) / block;
  const Program& to = *targets.program;
  const Nest& nest = to.checks;
  const Loop& line = nest.line_loop();
  const int64_t edges = to.tuples,
                table = sources.program && to.tuples > 0 ? sources.program->checks.component[0].size : 0;
  const EdgeEnds* const both[] = {&targets, &sources};
  for (invalid = 1; invalid >= 0; --invalid) {
    const EdgeEnds& ends = *both[invalid];
    if (ends.program == nullptr) continue;
    const Outcome outcome = check_addressable(*ends.program, ends.indices);
    if (outcome.status != Status::done) return outcome;
  }
  table_ = sources.program ? table : edges;
  wide_ = std::max({edges, destinations_, table}) >= int64_t{0xFFFFFFFF};
  const int64_t width = wide_ ? 8 : 4;
  const int threads = threads_for(times(edges, 4 * kTupleBytes));

  ListStage stage{};
  stage.targets = &nest;
  stage.sources = sources.program ? &sources.program->checks : nullptr;
  stage.chunk = std::min(kPieceChunk, line.extent);
  stage.units = nest.outer_count() * ((line.extent - 1) / stage.chunk + 1);
  stage.destinations = lists_;
  stage.block = block_;
  stage.wide = wide_;
  cut_in_pieces(stage, edges, threads);

  starts_ = OwnedMemory(times(lists_ + 1, width));
  if (edges == 0) return std::memset(starts_.get(), 0, static_cast<size_t>(starts_.bytes())), Outcome{};
  rows_ = OwnedMemory(times(edges, width));
  if (numbered || block_ > 1) edges_ = OwnedMemory(times(edges, width));
  const bool comes = stage.sources != nullptr || block_ > 1;
  const OwnedMemory went(times(edges, width)), came(comes ? times(edges, width) : 0);
  const OwnedMemory counts(times(times(stage.pieces, lists_), width));
  stage.went = went.get();
  stage.came = comes ? came.get() : nullptr;
  stage.counts = counts.get();
  stage.rows = rows_.get();
  stage.edges = edges_.get();

  const Ordered ordered = order_edges(stage, starts_.get(), targets.indices, sources.indices, threads, poll);
  if (!ordered.finished) return {Status::interrupted, {}};
  kept_ = ordered.kept;
  if (ordered.valid || !to.raises) {
    if (block_ > 1 && !pack(edges, threads, poll)) return {Status::interrupted, {}};
    return {};
  }
  Outcome found;
  if (sources.program) found = check_indices(*sources.program, sources.indices, poll);
  invalid = 1;
  if (found.status != Status::done) return found;
  found = check_indices(to, targets.indices, poll);
  invalid = 0;
  return {found.status == Status::done ? Status::invalid_index : found.status, found.invalid};
}

// Lists of blocks as short as they can be: the fold waits for them.
bool RowLists::pack(int64_t edges, int threads, const Poll& poll) {
  stretches_ = (edges + kStretch - 1) / kStretch;
  bounds_ = OwnedMemory(times(times(lists_, stretches_ + 1), 8));
  OwnedMemory places(times(kept_, is_narrow() ? 2 : 4)), numbers(times(kept_, 2));
  const bool finished = run_tasks(lists_, threads, poll, [&](int64_t list, int) {
    auto* const bounds = reinterpret_cast<int64_t*>(bounds_.get()) + list * (stretches_ + 1);
    const int64_t end = number(starts_, wide_, list + 1);
    int64_t s = 0;
    for (int64_t i = number(starts_, wide_, list); i < end; ++i) {
      const int64_t edge = number(edges_, wide_, i), place = number(rows_, wide_, i);
      for (; s <= edge / kStretch; ++s) bounds[s] = i;
      reinterpret_cast<uint16_t*>(numbers.get())[i] = static_cast<uint16_t>(edge % kStretch);
      if (is_narrow())
        reinterpret_cast<uint16_t*>(places.get())[i] = static_cast<uint16_t>(place);
      else
        reinterpret_cast<uint32_t*>(places.get())[i] = static_cast<uint32_t>(place);
    }
    for (; s <= stretches_; ++s) bounds[s] = end;
  });
  std::swap(rows_, places);
  std::swap(edges_, numbers);
  return finished;
}

bool RowLists::fold(ListFold call, const Poll& poll) const {
  call.wide = wide_;
  call.starts = starts_.get();
  call.numbers = rows_.get();
  call.edges = edges_.get();
  call.kept = kept_;
  call.far = distance(table_, call.table_step) > thresholds().own;
  call.destinations = destinations_;
  call.block = block_;
  call.stretches = stretches_;
  call.narrow = is_narrow();
  call.bounds = reinterpret_cast<const int64_t*>(bounds_.get());
  return block_ > 1 ? fold_blocks(call, poll) : fold_rows(call, poll);
}

// A block is a slab; where accumulators are what is stored, the result itself is it.
bool RowLists::fold_blocks(const ListFold& call, const Poll& poll) const {
  const int64_t slab = chosen_kernels().slab_bytes(call.combine, call.rows->item, block_);
  const int threads = threads_for(times(kept_ + destinations_, call.rows->item + kTupleBytes));
  const WorkerScratch slabs(slab, threads);
  if (!slabs) throw std::bad_alloc();
  return run_tasks(lists_, threads, poll, [&](int64_t list, int worker) {
    chosen_kernels().list_items(call, list, slabs.of(worker));
  });
}

bool RowLists::fold_rows(ListFold& call, const Poll& poll) const {
  const int64_t row = times(points(*call.rows, call.rows->rank), call.rows->block);
  const int64_t work = times(kept_ + destinations_, row + kTupleBytes);
  const int threads = threads_for(work);
  const int64_t shares =
      std::clamp<int64_t>(threads > 1 ? kSharesPerThread * threads : work / kLongestTask, 1, 1 << 16);
  OwnedMemory weights;
  if (call.weights != nullptr) {
    weights = OwnedMemory(times(kept_, call.rows->item));
    const int64_t piece = std::max<int64_t>(kPieceChunk, kept_ / (kSharesPerThread * threads) + 1);
    const bool ordered = run_tasks((kept_ + piece - 1) / piece, threads, poll, [&](int64_t i, int) {
      chosen_kernels().list_weights(call, weights.get(), i * piece, std::min((i + 1) * piece, kept_));
    });
    if (!ordered) return false;
    call.weights = weights.get();
  }
  // Where a share begins: destinations and rows count alike.
  const auto boundary = [&](int64_t share) {
    const int64_t wanted = static_cast<int64_t>(static_cast<double>(kept_ + destinations_) / shares * share);
    int64_t low = 0, high = destinations_;
    while (low < high) {
      const int64_t d = low + (high - low) / 2;
      if (number(starts_, wide_, d) + d < wanted)
        low = d + 1;
      else
        high = d;
    }
    return low;
  };
  return run_tasks(shares, threads, poll, [&](int64_t share, int) {
    const int64_t end = share + 1 == shares ? destinations_ : boundary(share + 1);
    chosen_kernels().list_fold(call, share == 0 ? 0 : boundary(share), end);
  });
}

}  // namespace gatherum
