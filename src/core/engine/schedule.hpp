// Splits a program's work into tasks for the pool.
#pragma once

#include <algorithm>
#include <atomic>

#include "engine/outcome.hpp"
#include "engine/pool.hpp"
#include "kernels/calls.hpp"
#include "model/program.hpp"

namespace gatherum {

// Reading and checking an index tuple takes about as long as moving this many bytes.
inline constexpr int64_t kTupleBytes = 16;
// A call that moves fewer bytes ends before another thread could wake (100-200 us).
inline constexpr int64_t kParallelBytes = int64_t{2} << 20;
inline constexpr int64_t kTaskBytes = int64_t{256} << 10;
// The maximum number of bytes of a task, if there are many tasks. A task then takes milliseconds; Ctrl-C
// waits for the end of a task.
inline constexpr int64_t kLongestTask = int64_t{64} << 20;

// The number of index tuples in a piece if several threads share the updates of one unit.
inline constexpr int64_t kPieceChunk = 16384;

// The number of shares of the destinations for each thread, if some destinations have more updates than
// others. Several shares balance the load.
inline constexpr int64_t kSharesPerThread = 8;
// The number of bytes of a task that copies, clears or writes whole rows or contiguous memory.
inline constexpr int64_t kWriteTaskBytes = int64_t{1} << 20;

inline int64_t work_bytes(const Program& p) { return p.bytes + limited_product(p.tuples, kTupleBytes); }
// Returns true if the call is long enough that other Python threads should run during the call.
inline bool is_long(const Program& p) { return work_bytes(p) >= kLongBytes; }
inline int threads_for(int64_t bytes) { return bytes >= kParallelBytes ? get_threads() : 1; }

// A division of the work into tasks of `units_per_task` units each. A unit is at most `chunk` points of the
// line at one point of the leading loops (Range in kernels/calls.hpp).
struct Split {
  int threads;
  int64_t chunk, units, units_per_task, tasks;
};

// Splits `leading_points` lines of `line_extent` tuples each, with `bytes` bytes in total, into tasks. A line
// is split only if its points are independent (`split_line`), into chunks of at most `line_chunk` points (0:
// any number).
inline Split split(int64_t leading_points, int64_t line_extent, bool split_line, int64_t line_chunk,
                   int64_t bytes, int threads) {
  Split s{};
  s.threads = threads;
  const int64_t most_tasks = std::clamp<int64_t>(bytes / kLongestTask, 1024, 1 << 20);
  const int64_t wanted_tasks = std::clamp<int64_t>(bytes / kTaskBytes, 1, most_tasks);
  s.chunk = line_extent;
  if (split_line) {
    const int64_t chunks = std::max<int64_t>(1, wanted_tasks / leading_points);
    s.chunk = std::max<int64_t>((line_extent - 1) / chunks + 1, kTile);
    if (line_chunk > 0) s.chunk = std::min(s.chunk, line_chunk);
    s.chunk = std::min(s.chunk, line_extent);
  }
  s.units = leading_points * ((line_extent - 1) / s.chunk + 1);
  s.units_per_task = std::max<int64_t>(1, s.units / wanted_tasks);
  s.tasks = (s.units + s.units_per_task - 1) / s.units_per_task;
  return s;
}

// Runs `body(task, worker)` for every task. Workers are numbered from 0. Returns false if poll interrupted
// it.
template <class Body>
bool run_tasks(int64_t tasks, int threads, const Poll& poll, const Body& body) {
  ParallelLoop loop;
  loop.task = [](void* context, int64_t i, int worker) { (*static_cast<const Body*>(context))(i, worker); };
  loop.context = const_cast<Body*>(&body);
  loop.tasks = tasks;
  loop.poll = poll;
  return parallel_run(loop, threads);
}

// True if all tasks reported true.
class All {
 public:
  void operator&=(bool one) {
    if (!one) all_.store(false, std::memory_order_relaxed);
  }
  explicit operator bool() const { return all_.load(); }

 private:
  std::atomic<bool> all_{true};
};

// Runs `body(begin, end, worker)` over the units of a split.
template <class Body>
bool run_split(const Split& s, const Poll& poll, const Body& body) {
  return run_tasks(s.tasks, s.threads, poll, [&](int64_t i, int worker) {
    body(i * s.units_per_task, std::min((i + 1) * s.units_per_task, s.units), worker);
  });
}

// Returns true if a scatter is one unit: any two of its points may have the same destination.
inline bool is_one_unit(const Program& p) { return points(p.nest, p.unit_loops) == 1 && !p.split_line; }

// Runs `body(range)` over the independent units of a scatter. Returns false if poll interrupted it.
template <class Body>
bool run_units(const Program& p, int threads, const Poll& poll, const Body& body) {
  const Split s = split(points(p.nest, p.unit_loops), p.nest.line_loop().extent, p.split_line, p.line_chunk,
                        work_bytes(p), threads);
  return run_split(s, poll, [&](int64_t begin, int64_t end, int) {
    body(Range{.chunk = s.chunk, .begin = begin, .end = end});
  });
}

// Runs `body(range, owned)` for one unit on each thread, with the thread's share of the destinations'
// offsets. Returns false if poll interrupted it.
template <class Body>
bool run_shares(const Program& p, int threads, const Poll& poll, const Body& body) {
  const int64_t share = p.components_reach / threads + 1;
  return run_tasks(threads, threads, poll, [&](int64_t i, int) {
    const int64_t low = p.components_low + i * share;
    body(Range{.chunk = p.nest.line_loop().extent, .begin = 0, .end = 1},
         DestinationRange{.low = low, .high = low + share});
  });
}

}  // namespace gatherum
