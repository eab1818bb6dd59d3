#include <array>
#include <span>

#include "algorithms/algorithms.hpp"

namespace gatherum {
namespace {

constexpr std::array kGathers = {
    Algorithm{.name = "prefetched",
              .applies = applies_gather_prefetched,
              .scratch = scratch_gather_prefetched,
              .run = run_gather_prefetched,
              .invalid_index_check = InvalidIndexCheck::while_writing,
              .reads_source = false,
              .skips_nan = false},
    Algorithm{.name = "packed",
              .applies = applies_gather_packed,
              .scratch = scratch_gather_packed,
              .run = run_gather_packed,
              .invalid_index_check = InvalidIndexCheck::while_writing,
              .reads_source = false,
              .skips_nan = false},
    Algorithm{.name = "streamed",
              .applies = applies_streamed,
              .scratch = no_scratch,
              .run = run_streamed,
              .invalid_index_check = InvalidIndexCheck::while_writing,
              .reads_source = false,
              .skips_nan = false},
    Algorithm{.name = "direct",
              .applies = applies_gather_direct,
              .scratch = no_scratch,
              .run = run_gather_direct,
              .invalid_index_check = InvalidIndexCheck::while_writing,
              .reads_source = false,
              .skips_nan = false},
};

constexpr std::array kScatters = {
    Algorithm{.name = "uncounted_accumulators",
              .applies = applies_uncounted_accumulators,
              .scratch = scratch_uncounted_accumulators,
              .run = run_uncounted_accumulators,
              .invalid_index_check = InvalidIndexCheck::before_writing,
              .reads_source = true,
              .skips_nan = false},
    Algorithm{.name = "partitioned",
              .applies = applies_partitioned,
              .scratch = scratch_partitioned,
              .run = run_partitioned,
              .invalid_index_check = InvalidIndexCheck::before_writing,
              .reads_source = true,
              .skips_nan = false},
    Algorithm{.name = "private_accumulators",
              .applies = applies_private_accumulators,
              .scratch = scratch_private_accumulators,
              .run = run_private_accumulators,
              .invalid_index_check = InvalidIndexCheck::before_writing,
              .reads_source = true,
              .skips_nan = false},
    Algorithm{.name = "in_rounds",
              .applies = applies_in_rounds,
              .scratch = scratch_in_rounds,
              .run = run_in_rounds,
              .invalid_index_check = InvalidIndexCheck::before_writing,
              .reads_source = true,
              .skips_nan = false},
    Algorithm{.name = "divided_accumulators",
              .applies = applies_divided_accumulators,
              .scratch = scratch_divided_accumulators,
              .run = run_divided_accumulators,
              .invalid_index_check = InvalidIndexCheck::before_writing,
              .reads_source = true,
              .skips_nan = true},
    Algorithm{.name = "serial_accumulators",
              .applies = applies_serial_accumulators,
              .scratch = scratch_serial_accumulators,
              .run = run_serial_accumulators,
              .invalid_index_check = InvalidIndexCheck::before_writing,
              .reads_source = true,
              .skips_nan = true},
    Algorithm{.name = "batch_accumulators",
              .applies = applies_batch_accumulators,
              .scratch = scratch_batch_accumulators,
              .run = run_batch_accumulators,
              .invalid_index_check = InvalidIndexCheck::while_writing,
              .reads_source = true,
              .skips_nan = true},
    Algorithm{.name = "by_destination",
              .applies = applies_by_destination,
              .scratch = scratch_by_destination,
              .run = run_by_destination,
              .invalid_index_check = InvalidIndexCheck::never,
              .reads_source = false,
              .skips_nan = true,
              .is_last_for_accumulators = true},
    Algorithm{.name = "last_updates",
              .applies = applies_last_updates,
              .scratch = scratch_last_updates,
              .run = run_last_updates,
              .invalid_index_check = InvalidIndexCheck::before_writing,
              .reads_source = true,
              .skips_nan = false},
    Algorithm{.name = "by_column",
              .applies = applies_by_column,
              .scratch = no_scratch,
              .run = run_by_column,
              .invalid_index_check = InvalidIndexCheck::while_writing,
              .reads_source = false,
              .skips_nan = false},
    Algorithm{.name = "by_range",
              .applies = applies_by_range,
              .scratch = no_scratch,
              .run = run_by_range,
              .invalid_index_check = InvalidIndexCheck::while_writing,
              .reads_source = false,
              .skips_nan = false},
    Algorithm{.name = "direct",
              .applies = applies_scatter_direct,
              .scratch = no_scratch,
              .run = run_scatter_direct,
              .invalid_index_check = InvalidIndexCheck::while_writing,
              .reads_source = false,
              .skips_nan = false},
};

std::span<const Algorithm> algorithms(bool scatter) {
  if (scatter) return kScatters;
  return kGathers;
}

// Returns true if the threshold `omitted_algorithms` omits this algorithm, and a later algorithm in the list
// can replace it.
bool is_left_out(const Program& p, size_t i) {
  const size_t bit = p.scatter ? kGathers.size() + i : i;
  const bool needs_accumulators = needs_accumulator(p.fold_rule) || p.fold_rule.skips_nan;
  const bool replaceable = i + 1 < algorithms(p.scatter).size() &&
                           !(needs_accumulators && algorithms(p.scatter)[i].is_last_for_accumulators);
  return ((thresholds().omitted_algorithms >> bit) & 1) != 0 && replaceable;
}

// Returns the position of the first algorithm that applies and is not omitted.
int first_applicable(const Program& p, int threads, std::string* why) {
  const std::span<const Algorithm> all = algorithms(p.scatter);
  for (size_t i = 0; i < all.size(); ++i) {
    const bool can_run = all[i].skips_nan || !p.fold_rule.skips_nan;
    if (can_run && !is_left_out(p, i) && all[i].applies(p, threads, why)) return static_cast<int>(i);
  }
  impossible();  // the last algorithm of each list applies to every program
}

}  // namespace

const Algorithm& choose(const Program& p, int threads) {
  const int i = p.small_choice >= 0 ? p.small_choice : first_applicable(p, threads, nullptr);
  return algorithms(p.scatter)[static_cast<size_t>(i)];
}

const char* complete_and_choose(Program& p) {
  if (const char* fault = complete(p)) return fault;
  p.small_choice = p.has_points && work_bytes(p) < kParallelBytes ? first_applicable(p, 1, nullptr) : -1;
  return nullptr;
}

Choice describe(const Program& p) {
  if (!p.has_points) return {"direct", "the call moves no data", 0};
  const int threads = threads_for(work_bytes(p));
  Choice choice{};
  const int i = first_applicable(p, threads, &choice.reason);
  const Algorithm& chosen = algorithms(p.scatter)[static_cast<size_t>(i)];
  choice.name = chosen.name;
  choice.scratch = std::min(chosen.scratch(p, threads), kSizeLimit);
  return choice;
}

const char* algorithm_name(int i) {
  const auto n = static_cast<size_t>(i);
  if (n < kGathers.size()) return kGathers[n].name;
  return n - kGathers.size() < kScatters.size() ? kScatters[n - kGathers.size()].name : nullptr;
}

}  // namespace gatherum
