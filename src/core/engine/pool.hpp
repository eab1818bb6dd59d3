// A small thread pool. Workers sleep until a loop is large enough to wake them, a forked child starts new
// ones, and a caller that finds the pool busy works without it.
#pragma once

#include <cstdint>

#include "include/gatherum.h"

namespace gatherum {

// One parallel loop: calls `task(context, i, worker)` once for every i in [0, tasks), in unspecified order.
// `worker` is the number of the executing thread, from 0. Between its tasks the caller calls `poll`, if any,
// a few times a second. If poll interrupts the call, the remaining tasks are not started.
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

// The number of forks between the process that loaded the core and this one. If a poll forks during a call,
// the loop stops early in the child, which has none of the threads that took part.
uint32_t forks();

void set_threads(int n);
int get_threads();

}  // namespace gatherum
