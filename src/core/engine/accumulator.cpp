// Applies batches of updates to accumulators, on several threads. One thread applies all updates of a
// destination, in order.
#include "engine/accumulator.hpp"

#include "engine/index_checks.hpp"
#include "engine/levels.hpp"
#include "engine/schedule.hpp"

namespace gatherum {
namespace {

// Runs `body(begin, end)` over n elements of `bytes` bytes each. No two elements share memory.
template <class Body>
void each_element(int64_t n, int64_t bytes, const Body& body) {
  if (n > 0)
    run_split(split(n, 1, false, 0, limited_product(n, bytes), threads_for(limited_product(n, bytes))), {},
              [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

constexpr int64_t kCountBytes = 8;

}  // namespace

void begin_fold(const FoldType& type, const char* data, char* sums, int64_t n) {
  const int64_t item = type.item, sum = type.sum_bytes();
  each_element(n, item + sum, [&](int64_t begin, int64_t end) {
    if (type.fold_rule.reduction == Reduction::none)
      chosen_kernels().copy(sums + begin * sum, data + begin * item, (end - begin) * item);
    else
      chosen_kernels().begin_sums(type.fold_rule, data + begin * item, sums + begin * sum, end - begin);
  });
}

void finish_fold(const FoldType& type, const FinishCall& all) {
  const int64_t item = type.item, sum = type.sum_bytes();
  each_element(all.n, 2 * item + sum + kCountBytes, [&](int64_t begin, int64_t end) {
    const char* data = all.data == nullptr ? nullptr : all.data + begin * item;
    const FinishCall some{.data = data,
                          .sums = all.sums + begin * sum,
                          .counts = all.counts + begin,
                          .out = all.out + begin * item,
                          .n = end - begin};
    if (type.fold_rule.reduction == Reduction::none)
      chosen_kernels().copy(some.out, some.sums, some.n * item);
    else
      chosen_kernels().finish_sums(type.fold_rule, some);
  });
}

void merge_folds(const FoldType& type, const MergeCall& all) {
  const int64_t sum = type.sum_bytes();
  each_element(all.n, 2 * (sum + kCountBytes), [&](int64_t begin, int64_t end) {
    const MergeCall some{.to = {.sums = all.to.sums + begin * sum, .counts = all.to.counts + begin},
                         .other_sums = all.other_sums + begin * sum,
                         .other_counts = all.other_counts + begin,
                         .n = end - begin};
    chosen_kernels().merge_sums(type.fold_rule, some);
  });
}

Outcome accumulate(const Program& p, const Accumulators& to, const char* index, const char* updates,
                   const Poll& poll) {
  const Outcome checked = p.invalid_is_error ? find_invalid(p, index, poll) : check_addressable(p, index);
  if (checked.status != Status::done || !p.has_points) return checked;
  Operands operands;
  operands.index = index;
  operands.moved = const_cast<char*>(updates);  // a scatter only reads it
  const int threads = threads_for(work_bytes(p));
  if (threads > 1 && is_one_unit(p) && p.components_reach > 0)
    run_shares(p, threads, {}, [&](const Range& range, const DestinationRange& owned) {
      chosen_kernels().accumulate(p.nest, p.unit_loops, operands, range, p.fold_rule, to, owned);
    });
  else
    run_units(p, threads, {}, [&](const Range& range) {
      chosen_kernels().accumulate(p.nest, p.unit_loops, operands, range, p.fold_rule, to, {});
    });
  return {};
}

}  // namespace gatherum
