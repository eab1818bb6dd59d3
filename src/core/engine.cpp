#include "engine.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace gatherum {
namespace {

const Kernels* chosen = nullptr;

// A tuple costs about this many bytes' worth of time to stage and address.
constexpr int64_t kTupleBytes = 16;
// Below this many bytes a call ends before another thread could have been woken (100-200 us).
constexpr int64_t kParallelBytes = int64_t{2} << 20;
// Above this many (a few us) the interpreter's lock is worth giving up.
constexpr int64_t kLongBytes = int64_t{64} << 10;
constexpr int64_t kTaskBytes = int64_t{256} << 10;
constexpr int kTasksPerThread = 16;

int64_t work_bytes(const Program& p) { return p.bytes + p.tuples * kTupleBytes; }

struct Split {
  int threads;
  int64_t chunk, units, per_task, tasks;
};

// Cuts `points` units of `line` tuples each, together worth `bytes`, into tasks.
Split split(int64_t points, int64_t line, bool split_line, int64_t line_chunk, int64_t bytes) {
  Split s{};
  s.threads = bytes >= kParallelBytes ? get_threads() : 1;
  const int64_t target = std::clamp<int64_t>(bytes / kTaskBytes, 1, int64_t{kTasksPerThread} * 64);
  s.chunk = line;
  if (split_line) {
    const int64_t pieces = std::max<int64_t>(1, target / points);
    s.chunk = std::max<int64_t>((line + pieces - 1) / pieces, 256);
    if (line_chunk > 0) s.chunk = std::min(s.chunk, line_chunk);
    s.chunk = std::min(s.chunk, line);
  }
  s.units = points * ((line + s.chunk - 1) / s.chunk);
  s.per_task = std::max<int64_t>(1, s.units / target);
  s.tasks = (s.units + s.per_task - 1) / s.per_task;
  return s;
}

// Runs body(begin, end) over the units of a split.
template <class Body>
bool run_split(const Split& s, const Poll& poll, Body& body) {
  struct Context {
    const Split& s;
    Body& body;
  } context{s, body};
  ParallelLoop loop;
  loop.task = [](void* c, int64_t i) {
    auto& ctx = *static_cast<Context*>(c);
    ctx.body(i * ctx.s.per_task, std::min((i + 1) * ctx.s.per_task, ctx.s.units));
  };
  loop.context = &context;
  loop.tasks = s.tasks;
  loop.poll = poll.ask;
  loop.poll_context = poll.context;
  return parallel_run(loop, s.threads);
}

int64_t count(const Nest& nest, int loops) {
  int64_t n = 1;
  for (int i = 0; i < loops; ++i) n *= nest.loops[i].extent;
  return n;
}

// The first invalid index in row-major order, looked for by all threads.
Outcome check(const Program& p, const char* index, const Poll& poll) {
  const Nest& nest = p.checks;
  const Split s = split(nest.outer_count(), nest.line_loop().extent, false, 0, p.tuples * kTupleBytes);
  std::atomic<int64_t> first{s.units};
  auto body = [&](int64_t begin, int64_t end) {
    if (begin >= first.load(std::memory_order_relaxed)) return;
    if (chosen->first_invalid(nest, index, begin, end).position < 0) return;
    int64_t seen = first.load();
    while (begin < seen && !first.compare_exchange_weak(seen, begin)) {
    }
  };
  if (!run_split(s, poll, body)) return {Status::interrupted, {}};
  if (first.load() == s.units) return {};
  Invalid invalid = chosen->first_invalid(nest, index, first.load(), s.units);
  // Nothing found on a second look: the indices have changed meanwhile, which position -1 reports.
  if (invalid.component < 0) invalid.position = -1;
  return {Status::invalid_index, invalid};
}

// Moves every point of the nest, whose units are points of its leading `units` loops. False in
// `valid`: an index was invalid in raise mode.
bool gather(const Nest& nest, int units, int64_t line_chunk, int64_t bytes, const Operands& at,
            const Poll& poll, bool& valid) {
  const Split s = split(count(nest, units), nest.line_loop().extent, true, line_chunk, bytes);
  std::atomic<bool> all_valid{true};
  auto body = [&](int64_t begin, int64_t end) {
    if (all_valid.load(std::memory_order_relaxed) && !chosen->gather(nest, units, at, {s.chunk, begin, end}))
      all_valid.store(false, std::memory_order_relaxed);
  };
  const bool finished = run_split(s, poll, body);
  valid = all_valid.load();
  return finished;
}

Outcome run_gather(const Program& p, const Operands& at, const Poll& poll) {
  bool valid = true;
  if (!gather(p.nest, p.units, p.line_chunk, work_bytes(p), at, poll, valid))
    return {Status::interrupted, {}};
  if (valid) return {};
  Outcome outcome = check(p, at.index, poll);
  if (outcome.status == Status::done) outcome.status = Status::invalid_index;  // changed meanwhile
  return outcome;
}

// A functional scatter begins as a copy of its data: a gather without indices.
bool copy(const Nest& nest, const char* source, char* to, const Poll& poll) {
  Operands at;
  at.data = const_cast<char*>(source);  // a gather only reads it
  at.other = to;
  bool valid = true;
  return gather(nest, nest.line, 0, 2 * nest.block * count(nest, nest.rank), at, poll, valid);
}

Outcome run_scatter(const Program& p, const Operands& at, const Poll& poll) {
  Nest nest = p.nest;
  if (nest.mode == Mode::raise) nest.mode = Mode::drop;  // checked before; what changed since is dropped
  const Split s =
      split(count(nest, p.units), nest.line_loop().extent, p.split_line, p.line_chunk, work_bytes(p));
  std::atomic<bool> enough_memory{true};
  auto body = [&](int64_t begin, int64_t end) {
    const Range range{s.chunk, begin, end};
    if (p.algorithm == Algorithm::units)
      chosen->scatter(nest, p.units, at, range, p.combine);
    else if (!chosen->scatter_grouped(nest, p.ids, p.units, at, range, p.combine, p.destinations))
      enough_memory.store(false, std::memory_order_relaxed);
  };
  if (!run_split(s, poll, body)) return {Status::interrupted, {}};
  return {enough_memory.load() ? Status::done : Status::no_memory, {}};
}

// clip and wrap cannot make an index valid in a dimension of size 0: the first tuple is the culprit.
Outcome nothing_to_address(const Program& p, const char* index) {
  Nest probe = p.checks;
  probe.mode = Mode::raise;
  probe.components = 1;
  probe.component[0] = p.checks.component[p.unaddressable];
  Invalid invalid = chosen->first_invalid(probe, index, 0, probe.outer_count());
  invalid.component = p.unaddressable;
  return {Status::invalid_index, invalid};
}

}  // namespace

bool is_long(const Program& p) { return work_bytes(p) >= kLongBytes; }

Outcome execute(const Program& p, const Operands& at, const char* source, const Poll& poll) {
  if (p.unaddressable >= 0 && p.tuples > 0) return nothing_to_address(p, at.index);
  const bool check_first = p.tuples > 0 && p.nest.mode == Mode::raise && (p.scatter || !p.moves);
  if (check_first) {
    const Outcome outcome = check(p, at.index, poll);
    if (outcome.status != Status::done) return outcome;
  }
  if (!p.scatter) return p.moves ? run_gather(p, at, poll) : Outcome{};
  if (source != nullptr && p.copies && !copy(p.copy, source, at.data, poll)) return {Status::interrupted, {}};
  return p.moves ? run_scatter(p, at, source != nullptr ? poll : Poll{}) : Outcome{};
}

bool choose_level(const char* name) {
  const auto is = [&](const char* level) { return *name == '\0' || std::strcmp(name, level) == 0; };
#if GATHERUM_X86
  if (is("v4") && processor_has(4)) return chosen = &kernels_v4(), true;
  if (is("v3") && processor_has(3)) return chosen = &kernels_v3(), true;
  if (is("v2") && processor_has(2)) return chosen = &kernels_v2(), true;
#endif
  if (is("portable")) return chosen = &kernels_portable(), true;
  return false;
}

const Kernels& chosen_kernels() { return *chosen; }

}  // namespace gatherum
