#include <array>
#include <span>

#include "algorithms/algorithms.hpp"

#if GATHERUM_X86 && defined(_MSC_VER)
#include <intrin.h>
#elif GATHERUM_X86
#include <cpuid.h>
#endif

namespace gatherum {
namespace {

// Returns true for processors made by Intel.
bool is_intel() {
  constexpr unsigned genu = 0x756E6547;  // the first letters of "GenuineIntel"
#if GATHERUM_X86 && defined(_MSC_VER)
  int words[4];
  __cpuid(words, 0);
  return static_cast<unsigned>(words[1]) == genu;
#elif GATHERUM_X86
  unsigned most = 0, first = 0, second = 0, third = 0;
  return __get_cpuid(0, &most, &first, &second, &third) != 0 && first == genu;
#else
  return genu == 0;
#endif
}

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
              .skips_nan = true},
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
  const bool replaceable =
      i + 1 < algorithms(p.scatter).size() && (!(needs_accumulator(p.combine) || p.combine.skips_nan) ||
                                               kScatters[i].applies != applies_by_destination);
  return ((thresholds().omitted_algorithms >> bit) & 1) != 0 && replaceable;
}

// Returns the position of the first algorithm that applies and is not omitted.
int first_of(const Program& p, int threads, std::string* why) {
  const std::span<const Algorithm> all = algorithms(p.scatter);
  size_t i = 0;
  const auto runs = [&](const Algorithm& a) {
    return (a.skips_nan || !p.combine.skips_nan) && a.applies(p, threads, why);
  };
  while (is_left_out(p, i) || !runs(all[i])) ++i;
  return static_cast<int>(i);
}

}  // namespace

const Algorithm& choose(const Program& p, int threads) {
  const int i = p.small_choice >= 0 ? p.small_choice : first_of(p, threads, nullptr);
  return algorithms(p.scatter)[static_cast<size_t>(i)];
}

const char* complete_and_choose(Program& p) {
  if (const char* wrong = complete(p)) return wrong;
  p.small_choice = p.has_points && work_bytes(p) < kParallelBytes ? first_of(p, 1, nullptr) : -1;
  return nullptr;
}

Choice describe(const Program& p) {
  if (!p.has_points) return {"direct", "the call moves no data", 0};
  const int threads = threads_for(work_bytes(p));
  Choice choice{};
  const int i = first_of(p, threads, &choice.reason);
  const Algorithm& chosen = algorithms(p.scatter)[static_cast<size_t>(i)];
  choice.name = chosen.name;
  choice.scratch = std::min(chosen.scratch(p, threads), kMany);
  return choice;
}

const char* algorithm_name(int i) {
  const auto n = static_cast<size_t>(i);
  if (n < kGathers.size()) return kGathers[n].name;
  return n - kGathers.size() < kScatters.size() ? kScatters[n - kGathers.size()].name : nullptr;
}

// Two cache lines. With fewer cache lines, most of the memory traffic would double. Intel processors prefetch
// the remaining cache lines of a row anyway, so on these processors each thread processes complete rows (1M
// rows of 64 float32 into 100k on two threads of a Xeon: 32 ms with shares of the columns, 26 ms with
// complete rows; rows of 256: 38 and 31 ms).
int64_t least_columns() { return is_intel() ? int64_t{1} << 62 : int64_t{2} * kCacheLine; }

Thresholds& thresholds() {
  static Thresholds t;
  return t;
}

NamedThreshold threshold(int i) {
  Thresholds& t = thresholds();
  const NamedThreshold all[] = {
#define GATHERUM_THRESHOLD(name, value) {#name, &t.name},
      GATHERUM_THRESHOLDS(GATHERUM_THRESHOLD)
#undef GATHERUM_THRESHOLD
  };
  return i >= 0 && i < static_cast<int>(std::size(all)) ? all[i] : NamedThreshold{};
}

void append(std::string& to, const char* text) { to += text; }

void append(std::string& to, int64_t number) {
  const std::string digits = std::to_string(number);
  const size_t sign = number < 0 ? 1 : 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) to += ',';
    to += digits[i];
  }
}

int64_t row_bytes(const Nest& nest) {
  int64_t n = nest.block;
  for (int i = 0; i < nest.row_rank(); ++i) n = times(n, nest.rows()[i].extent);
  return n;
}

// Four to eight cache lines, or as many as fit in the cache. If eight lines exceed a core's private cache,
// four lines are up to a third faster (sums along axis 0 of 8192 x 4096 float32); otherwise eight lines are a
// fifth faster.
int64_t columns_in_cache(int64_t column, int64_t item, int64_t most) {
  const int64_t line = std::max<int64_t>(1, kCacheLine / item);
  const int64_t wanted = times(8 * line, column) <= thresholds().private_cache_bytes ? 8 * line : 4 * line;
  const int64_t fit = thresholds().shared_cache_bytes / std::max<int64_t>(column, 1) / line * line;
  return std::min(most, std::max(line, std::min(wanted, fit)));
}

}  // namespace gatherum
