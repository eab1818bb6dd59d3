#include "algorithms/algorithms.hpp"
#include "engine/index_checks.hpp"

namespace gatherum {

Outcome outcome_of(const RunResult& run, const Program& p, const char* index, const Poll& poll) {
  if (!run.has_memory) return {Status::no_memory, {}};
  if (!run.finished) return {Status::interrupted, {}};
  if (run.valid || !p.invalid_is_error) return {};
  Outcome outcome = check_indices(p, index, poll);
  if (outcome.status == Status::done) outcome.status = Status::invalid_index;  // changed since
  return outcome;
}

}  // namespace gatherum
