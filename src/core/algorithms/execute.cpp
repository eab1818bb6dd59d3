#include "algorithms/execute.hpp"

#include "algorithms/algorithms.hpp"
#include "algorithms/copies.hpp"
#include "engine/index_checks.hpp"

namespace gatherum {
namespace {

Outcome gather(const Program& p, const Operands& operands, const Poll& poll) {
  const int threads = threads_for(work_bytes(p));
  return outcome_of(
      choose(p, threads)
          .run(p, {.operands = operands, .source = nullptr, .fresh = true, .threads = threads, .poll = poll}),
      p, operands.index, poll);
}

// Copies the data, unless the algorithm reads the data itself. Also checks the indices if the algorithm would
// find an invalid index only after it has written.
Outcome scatter(const Program& p, const Operands& operands, const char* source, bool fresh,
                const Poll& poll) {
  const int threads = threads_for(work_bytes(p));
  const Algorithm* algorithm = p.has_points ? &choose(p, threads) : nullptr;
  const bool reads_source = source != nullptr && p.covers_data && p.has_points && algorithm->reads_source;
  const bool copies = source != nullptr && p.has_copy && !reads_source;
  // A new result is discarded after an error, so the scatter may find an invalid index while it writes.
  const bool finds_invalid =
      p.has_points &&
      (fresh ? algorithm->invalid_index_check != InvalidIndexCheck::never
             : algorithm->invalid_index_check == InvalidIndexCheck::before_writing && !copies);
  if (p.tuples > 0 && p.invalid_is_error && !finds_invalid) {
    const Outcome outcome = check_indices(p, operands.index, poll);
    if (outcome.status != Status::done) return outcome;
  }
  if (copies && !run_copy(p.copy, source, operands.data, poll)) return {Status::interrupted, {}};
  if (!p.has_points) return {};
  const Poll poll_while_writing = fresh ? poll : Poll{};  // writes in place are never interrupted
  RunResult run = algorithm->run(p, {.operands = operands,
                                     .source = reads_source ? source : nullptr,
                                     .fresh = fresh,
                                     .threads = threads,
                                     .poll = poll_while_writing});
  run.valid |= !finds_invalid;  // all indices were valid when they were checked
  return outcome_of(run, p, operands.index, poll_while_writing);
}

}  // namespace

Outcome execute(const Program& p, const Operands& operands, const char* source, bool fresh,
                const Poll& poll) {
  if (p.unaddressable >= 0) {
    const Outcome addressable = check_addressable(p, operands.index);
    if (addressable.status != Status::done) return addressable;
  }
  if (p.scatter) return scatter(p, operands, source, fresh, poll);
  if (p.has_points) return gather(p, operands, poll);
  return p.tuples > 0 && p.invalid_is_error ? check_indices(p, operands.index, poll) : Outcome{};
}

// The number of updates is limited by the counts in scatter_grouped.hpp.
bool skips_nan(const Program& p) {
  return p.scatter &&
         (moves_items(p.nest) ? has_skipping_slabs(p.fold_rule) : skips_nan_in_rows(p.fold_rule)) &&
         fits_32_bits(points(p.nest, p.nest.line + 1));
}

Outcome execute_skipping_nan(const Program& p, const Operands& operands, const char* source, bool fresh,
                             const Poll& poll) {
  Program skipping = p;
  skipping.fold_rule.skips_nan = true;
  skipping.small_choice = -1;
  return execute(skipping, operands, source, fresh, poll);
}

}  // namespace gatherum
