#include "engine/index_checks.hpp"

#include <atomic>

#include "engine/levels.hpp"
#include "engine/schedule.hpp"

namespace gatherum {
namespace {

// Reports an invalid index. The position is -1 if a second read found a valid index there, because another
// thread has changed the indices.
Outcome outcome_of(Invalid invalid) {
  if (invalid.component < 0) invalid.position = -1;
  return {Status::invalid_index, invalid};
}

}  // namespace

Outcome check_addressable(const Program& p, const char* index) {
  if (p.unaddressable < 0) return {};  // also not set for empty indices
  Nest probe = p.checks;
  probe.mode = Mode::raise;
  probe.components = 1;
  probe.component[0] = p.checks.component[p.unaddressable];
  // The first tuple is the invalid one.
  Invalid invalid =
      chosen_kernels().first_invalid(probe, index, {.chunk = probe.line_loop().extent, .begin = 0, .end = 1});
  invalid.component = p.unaddressable;
  return {Status::invalid_index, invalid};
}

Outcome check_indices(const Program& p, const char* index, const Poll& poll) {
  const Nest& nest = p.checks;
  if (!is_long(p)) {
    const Invalid invalid = chosen_kernels().first_invalid(
        nest, index, {.chunk = nest.line_loop().extent, .begin = 0, .end = nest.outer_count()});
    return invalid.position < 0 ? Outcome{} : outcome_of(invalid);
  }
  const int64_t bytes = limited_product(p.tuples, kTupleBytes);
  const Split s = split(nest.outer_count(), nest.line_loop().extent, true, 0, bytes, threads_for(bytes));
  std::atomic<int64_t> first{s.units};
  const bool finished = run_split(s, poll, [&](int64_t begin, int64_t end, int) {
    if (begin >= first.load(std::memory_order_relaxed)) return;
    if (chosen_kernels().first_invalid(nest, index, {.chunk = s.chunk, .begin = begin, .end = end}).position <
        0)
      return;
    int64_t earliest = first.load();
    while (begin < earliest && !first.compare_exchange_weak(earliest, begin)) {
    }
  });
  if (!finished) return {Status::interrupted, {}};
  if (first.load() == s.units) return {};
  return outcome_of(
      chosen_kernels().first_invalid(nest, index, {.chunk = s.chunk, .begin = first.load(), .end = s.units}));
}

Outcome find_invalid(const Program& p, const char* index, const Poll& poll) {
  const Outcome addressable = check_addressable(p, index);
  if (addressable.status != Status::done || p.tuples == 0) return addressable;
  return check_indices(p, index, poll);
}

int64_t number_tuples(const Program& p, const char* index, int64_t* numbers) {
  if (p.unaddressable < 0) return chosen_kernels().write_numbers(p.nest, index, numbers);
  Nest none = p.nest;
  none.mode = Mode::drop;
  return chosen_kernels().write_numbers(none, index, numbers);
}

}  // namespace gatherum
