// A small thread pool: workers sleep until a loop is worth waking them for, a forked child starts its
// own, and a caller that finds it busy simply works alone.
#pragma once

#include <cstdint>

#include "include/gatherum.h"

namespace gatherum {

// One parallel loop: `task(context, i, worker)` for every i in [0, tasks), each once, in no fixed
// order; worker is the number of the thread that does it, from 0.
// Between its own tasks the caller asks `poll` a few times a second, if it can be asked; when that interrupts
// the call, tasks not yet begun are left out.
struct ParallelLoop {
  void (*task)(void* context, int64_t i, int worker) = nullptr;
  void* context = nullptr;
  int64_t tasks = 0;
  gatherum_poll poll = {};
};

// Runs the loop on at most `threads` threads, the caller's among them. Returns false when it was cut
// short by poll.
bool parallel_run(const ParallelLoop& loop, int threads);

// More threads than this are never used.
inline constexpr int kMostThreads = 1024;

// How many forks lie between this process and the one that loaded the core. A loop of a call that
// a poll has forked is cut short in the child, which has none of the threads that took part.
uint32_t forks();

void set_threads(int n);
int get_threads();

}  // namespace gatherum
