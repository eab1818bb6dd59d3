#include "engine/engine.hpp"

#include <atomic>
#include <cstring>

#include "algorithms/algorithms.hpp"

namespace gatherum {
namespace {

const Kernels* chosen = nullptr;

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
  Invalid invalid = chosen->first_invalid(probe, index, {probe.line_loop().extent, 0, 1});
  invalid.component = p.unaddressable;
  return {Status::invalid_index, invalid};
}

Outcome check_indices(const Program& p, const char* index, const Poll& poll) {
  const Nest& nest = p.checks;
  if (!is_long(p)) {
    const Invalid invalid =
        chosen->first_invalid(nest, index, {nest.line_loop().extent, 0, nest.outer_count()});
    return invalid.position < 0 ? Outcome{} : outcome_of(invalid);
  }
  const int64_t bytes = times(p.tuples, kTupleBytes);
  const Split s = split(nest.outer_count(), nest.line_loop().extent, true, 0, bytes, threads_for(bytes));
  std::atomic<int64_t> first{s.units};
  const bool finished = run_split(s, poll, [&](int64_t begin, int64_t end, int) {
    if (begin >= first.load(std::memory_order_relaxed)) return;
    if (chosen->first_invalid(nest, index, {s.chunk, begin, end}).position < 0) return;
    int64_t earliest = first.load();
    while (begin < earliest && !first.compare_exchange_weak(earliest, begin)) {
    }
  });
  if (!finished) return {Status::interrupted, {}};
  if (first.load() == s.units) return {};
  return outcome_of(chosen->first_invalid(nest, index, {s.chunk, first.load(), s.units}));
}

Outcome find_invalid(const Program& p, const char* index, const Poll& poll) {
  const Outcome addressable = check_addressable(p, index);
  if (addressable.status != Status::done || p.tuples == 0) return addressable;
  return check_indices(p, index, poll);
}

int64_t number_tuples(const Program& p, const char* index, int64_t* numbers) {
  if (p.unaddressable < 0) return chosen->write_numbers(p.nest, index, numbers);
  Nest none = p.nest;
  none.mode = Mode::drop;
  return chosen->write_numbers(none, index, numbers);
}

namespace {

// The source for a result in which one item is repeated: a buffer filled with this item.
struct Repeated {
  static constexpr int64_t kBytes = int64_t{16} << 10;
  alignas(kCacheLine) char bytes[kBytes];

  Repeated(const char* item, int64_t size) {
    for (int64_t at = 0; at < kBytes; at += size) std::memcpy(bytes + at, item, static_cast<size_t>(size));
  }
};

// Returns true if the nest writes contiguous memory and reads the same item at every point.
bool repeats_one_item(const Nest& nest) {
  bool one = Repeated::kBytes % nest.block == 0 && writes_in_order(nest);
  for (int i = 0; i < nest.rank; ++i) one &= nest.loops[i].extent == 1 || nest.loops[i].data == 0;
  return one;
}

// Calls `from(begin)` to get the source of each piece of contiguous output.
template <class From>
bool copy_pieces(char* to, int64_t bytes, int64_t piece, const Poll& poll, const From& from) {
  const int threads = threads_for(times(2, bytes));
  return run_tasks((bytes + piece - 1) / piece, threads, poll, [&](int64_t i, int) {
    const int64_t begin = i * piece, n = std::min(piece, bytes - begin);
    if (bytes >= kParallelBytes)
      chosen_kernels().copy(to + begin, from(begin), n);
    else
      std::memcpy(to + begin, from(begin), static_cast<size_t>(n));
  });
}

}  // namespace

bool run_copy(const Nest& nest, const char* source, char* to, const Poll& poll) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  const int64_t bytes = times(nest.block, points(nest, nest.rank));
  if (bytes == nest.block && bytes < kLongBytes) {
    std::memcpy(to, source, static_cast<size_t>(bytes));
    return true;
  }
  if (bytes == nest.block)  // one contiguous run
    return copy_pieces(to, bytes, kPiece, poll, [&](int64_t begin) { return source + begin; });
  if (bytes >= kLongBytes && repeats_one_item(nest)) {
    const Repeated item(source, nest.block);
    return copy_pieces(to, bytes, Repeated::kBytes, poll, [&](int64_t) { return item.bytes; });
  }
  const int threads = threads_for(times(2, bytes));
  Operands operands;
  operands.data = const_cast<char*>(source);  // a gather only reads it
  operands.moved = to;
  const bool streams = streams_past_cache(nest, to);
  const Split s = split(nest.outer_count(), nest.line_loop().extent, true, 0, times(2, bytes), threads);
  return run_split(s, poll, [&](int64_t begin, int64_t end, int) {
    chosen_kernels().gather(nest, nest.line, operands, {s.chunk, begin, end}, streams);
  });
}

bool fill(int64_t* to, int64_t n, const int64_t& number, const Poll& poll) {
  if (n == 0) return true;
  Nest repeat;
  repeat.block = repeat.item = sizeof number;
  repeat.loops[0] = {n, 0, 0, sizeof number};
  return run_copy(repeat, reinterpret_cast<const char*>(&number), reinterpret_cast<char*>(to), poll);
}

Outcome outcome_of(const Run& run, const Program& p, const char* index, const Poll& poll) {
  if (!run.memory) return {Status::no_memory, {}};
  if (!run.finished) return {Status::interrupted, {}};
  if (run.valid || !p.invalid_is_error) return {};
  Outcome outcome = check_indices(p, index, poll);
  if (outcome.status == Status::done) outcome.status = Status::invalid_index;  // changed since
  return outcome;
}

namespace {

Outcome gather(const Program& p, const Operands& operands, const Poll& poll) {
  const int threads = threads_for(work_bytes(p));
  return outcome_of(choose(p, threads).run(p, {operands, nullptr, true, threads, poll}), p, operands.index,
                    poll);
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
  const Poll quiet = fresh ? poll : Poll{};  // writes in place are never interrupted
  Run run = algorithm->run(p, {operands, reads_source ? source : nullptr, fresh, threads, quiet});
  run.valid |= !finds_invalid;  // all indices were valid when they were checked
  return outcome_of(run, p, operands.index, quiet);
}

}  // namespace

bool is_long(const Program& p) { return work_bytes(p) >= kLongBytes; }

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
  return p.scatter && (moves_items(p.nest) ? has_skipping_slabs(p.combine) : skips_nan_in_rows(p.combine)) &&
         points(p.nest, p.nest.line + 1) < int64_t{1} << 32;
}

Outcome execute_skipping_nan(const Program& p, const Operands& operands, const char* source, bool fresh,
                             const Poll& poll) {
  Program skipping = p;
  skipping.combine.skips_nan = true;
  skipping.small_choice = -1;
  return execute(skipping, operands, source, fresh, poll);
}

namespace {

struct Level {
  const char* name;
  int id;
  const Kernels& (*kernels)();
};

// The levels of this build, best first.
const Level kLevels[] = {
#if GATHERUM_V4
    {"v4", 4, kernels_v4},
#endif
#if GATHERUM_V3
    {"v3", 3, kernels_v3},
#endif
    {"portable", 0, kernels_portable}};

}  // namespace

const char* available_level(int i) {
  for (const Level& level : kLevels)
    if (processor_has(level.id) && i-- == 0) return level.name;
  return nullptr;
}

bool choose_level(const char* name) {
  for (const Level& level : kLevels)
    if ((name[0] == 0 || std::strcmp(name, level.name) == 0) && processor_has(level.id)) {
      chosen = &level.kernels();
      return true;
    }
  return false;
}

const Kernels& chosen_kernels() { return *chosen; }

[[maybe_unused]] const bool started = choose_level("");

}  // namespace gatherum
