// Makes CSR pointer arrays of edges, and reduces rows by them, on several threads. One thread reduces all
// rows of a destination, in order.
#include <new>
#include <vector>

#include "engine/index_checks.hpp"
#include "engine/levels.hpp"
#include "engine/schedule.hpp"
#include "engine/thresholds.hpp"
#include "lists/edges.hpp"
#include "lists/row_lists.hpp"

namespace gatherum {

bool is_one_line(const Program& end) {
  return has_element_numbers(end) && end.checks.rank == 1 && end.checks.line == 0;
}

bool are_pointer_and_sources(const Program& pointer, const Program& sources) {
  return pointer.tuples > 0 && is_one_line(pointer) && pointer.checks.mode == Mode::raise &&
         pointer.checks.component[0].size == sources.tuples + 1 &&
         (sources.tuples == 0 || is_one_line(sources));
}

Outcome make_pointer(const EdgeEnds& targets, int64_t* starts, bool& ascends, const Poll& poll) {
  const int64_t edges = targets.program->tuples, pieces = (edges + kPieceChunk - 1) / kPieceChunk;
  const Nest& nest = targets.program->checks;
  ascends = check_addressable(*targets.program, targets.indices).status == Status::done;
  if (!ascends) return {};
  std::vector<EdgeOrder> orders(static_cast<size_t>(pieces));
  const bool finished =
      run_tasks(pieces, threads_for(limited_product(edges, kTupleBytes)), poll, [&](int64_t i, int) {
        const int64_t begin = i * kPieceChunk, end = std::min(begin + kPieceChunk, edges);
        orders[static_cast<size_t>(i)] =
            chosen_kernels().pointed_make(nest, targets.indices, begin, end, starts);
      });
  if (!finished) return {Status::interrupted, {}};
  ascends = are_in_order(orders);
  if (!ascends) return {};
  int64_t next = 0;  // the destination whose entry is written next
  for (int64_t i = 0; i < pieces; ++i) {
    const EdgeOrder& order = orders[static_cast<size_t>(i)];
    std::fill(starts + next, starts + std::max(next, order.first + 1), i * kPieceChunk);
    next = order.last + 1;
  }
  std::fill(starts + next, starts + nest.component[0].size + 1, edges);
  return {};
}

namespace {

// Reads a CSR `indptr` array of n entries. Returns the greatest step between adjacent entries, or -1 if the
// entries do not ascend from 0 to the number of edges.
int64_t read_pointer(const EdgeEnds& pointer, int64_t n, int64_t edges, int64_t* starts, const Poll& poll) {
  const int64_t pieces = (n + kPieceChunk - 1) / kPieceChunk;
  std::vector<int64_t> steps(static_cast<size_t>(pieces));
  run_tasks(pieces, threads_for(limited_product(n, kTupleBytes)), poll, [&](int64_t piece, int) {
    const int64_t begin = piece * kPieceChunk, end = std::min(begin + kPieceChunk, n);
    steps[static_cast<size_t>(piece)] =
        chosen_kernels().pointed_read(pointer.program->checks, pointer.indices, begin, end, starts);
  });
  const auto descends = [&steps] { return *std::min_element(steps.begin(), steps.end()) < 0; };
  if (descends()) return -1;  // an invalid entry has no number_at
  for (int64_t piece = 1; piece < pieces; ++piece)
    steps.push_back(starts[piece * kPieceChunk] - starts[piece * kPieceChunk - 1]);
  if (descends() || starts[0] != 0 || starts[n - 1] != edges) return -1;
  return *std::max_element(steps.begin(), steps.end());
}

}  // namespace

Outcome fold_pointed(const EdgeEnds& pointer, const EdgeEnds& sources, ListFold call, bool fresh,
                     const Poll& poll, int& invalid) {
  const Program& from = *sources.program;
  const int64_t entries = pointer.program->tuples, destinations = entries - 1, edges = from.tuples;
  const OwnedMemory starts(limited_product(entries, 8));
  auto* const begins = reinterpret_cast<int64_t*>(starts.get());
  invalid = 0;
  const int64_t longest = read_pointer(pointer, entries, edges, begins, Poll{});
  if (longest < 0) return {Status::invalid_index, {}};
  invalid = 1;
  Outcome outcome = check_addressable(from, sources.indices);
  if (outcome.status == Status::done && edges > 0 && from.invalid_is_error && !fresh)
    outcome = check_indices(from, sources.indices, poll);
  if (outcome.status != Status::done) return outcome;

  const int64_t table = edges > 0 ? from.checks.component[0].size : 0;
  call.wide = !fits_32_bits(std::max(table, limited_product(longest, 2)));
  call.far = distance(table, call.table_step) > thresholds().private_cache_bytes;
  PointedFold pointed{.fold = call,
                      .sources = &from.checks,
                      .indices = sources.indices,
                      .starts = begins,
                      .capacity = std::max(longest, kPointedPortion)};
  const Shares shares = shares_of(*call.rows, edges, destinations);
  const WorkerScratch scratch(pointed.scratch(), shares.threads);
  if (!scratch) throw std::bad_alloc();
  const auto begin_of_share = [&](int64_t share) {
    return first_destination_of(share, shares.count, edges, destinations,
                                [=](int64_t d) { return begins[d]; });
  };
  All valid;
  const bool finished =
      run_tasks(shares.count, shares.threads, fresh ? poll : Poll{}, [&](int64_t share, int worker) {
        valid &= chosen_kernels().pointed_fold(pointed, begin_of_share(share), begin_of_share(share + 1),
                                               scratch.memory_of(worker));
      });
  if (!finished) return {Status::interrupted, {}};
  if (valid || !from.invalid_is_error || !fresh) return {};
  outcome = check_indices(from, sources.indices, poll);
  return {outcome.status == Status::done ? Status::invalid_index : outcome.status, outcome.invalid};
}

}  // namespace gatherum
