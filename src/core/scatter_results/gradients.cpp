// Implements the gradients that depend on the values: those of products, maxima and minima.
#include <algorithm>
#include <cstring>

#include "algorithms/algorithms.hpp"
#include "algorithms/copies.hpp"
#include "engine/index_checks.hpp"
#include "scatter_results/scatter_results.hpp"

namespace gatherum {
namespace {

// Initializes the gradients for destinations without updates and for skipped updates: the old value receives
// the gradient unchanged, and skipped updates receive zeros. All other elements are written later, when the
// gradients of each group are computed. Returns false if poll interrupted it.
bool initialize(const Program& p, const Gradients& gradients, int64_t bytes, const Poll& poll) {
  Nest whole;  // one run
  whole.block = limited_product(p.item, p.result.items());
  if (gradients.of_data != nullptr && !run_copy(whole, gradients.gradient, gradients.of_data, poll))
    return false;
  if (gradients.of_updates == nullptr || (p.has_points && p.mode != Mode::drop)) return true;
  return run_tasks((bytes + kWriteTaskBytes - 1) / kWriteTaskBytes, threads_for(bytes), poll,
                   [&](int64_t i, int) {
                     const int64_t first = i * kWriteTaskBytes;
                     std::memset(gradients.of_updates + first, 0,
                                 static_cast<size_t>(std::min(kWriteTaskBytes, bytes - first)));
                   });
}

}  // namespace

Outcome differentiate(const Program& p, const char* index, const Gradients& gradients, int64_t bytes,
                      const Poll& poll) {
  const Outcome checked = p.invalid_is_error ? find_invalid(p, index, poll) : check_addressable(p, index);
  if (checked.status != Status::done) return checked;
  if (!initialize(p, gradients, bytes, poll)) return {Status::interrupted, {}};
  if (!p.has_points) return {};
  Operands operands;
  operands.index = index;
  const Execution call{.operands = operands,
                       .source = nullptr,
                       .fresh = true,
                       .threads = threads_for(work_bytes(p)),
                       .poll = poll};
  const RunResult run =
      run_shares_of_groups(p, call, [&](const GroupedScatter& groups, const GroupShare& share) {
        chosen_kernels().group_gradients(groups, gradients, share);
      });
  return outcome_of(run, p, index, poll);
}

}  // namespace gatherum
