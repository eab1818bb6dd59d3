// A small thread pool. Workers sleep until a loop is large enough to wake them. A forked child starts new
// workers. If the pool is busy, a caller runs its loop without the pool.
#pragma once

#include <chrono>
#include <cstdint>

#include "include/gatherum.h"

namespace gatherum {

// The time between two calls of `poll`.
inline constexpr auto kPollInterval = std::chrono::milliseconds(50);

// One parallel loop: calls `task(context, i, worker)` once for every i in [0, tasks), in unspecified order.
// `worker` is the number of the executing thread, from 0. Between its tasks the caller calls `poll`, if any,
// every kPollInterval. If poll interrupts the call, the remaining tasks are not started.
struct ParallelLoop {
  void (*task)(void* context, int64_t i, int worker) = nullptr;
  void* context = nullptr;
  int64_t tasks = 0;
  gatherum_poll poll = {};
};

// Runs the loop on at most `threads` threads, including the caller's. Returns false if poll interrupted it.
bool parallel_run(const ParallelLoop& loop, int threads);

// The maximum number of threads.
inline constexpr int kMostThreads = 1024;

// The number of forks between the process that loaded the core and this process. If poll forks during a call,
// the loop stops early in the child, because the child does not have the threads of the pool.
uint32_t forks();

void set_threads(int n);
int get_threads();

// Returns true if each of this many threads can have a separate processor.
bool have_processors(int threads);

}  // namespace gatherum
