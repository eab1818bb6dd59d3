// Runs the threads of a launch: one at a time in a random order, or many at once.
//
//   in turn   every thread of the grid runs to its end before another begins, in a seeded random order; where
//             a kernel waits for its block, blocks come in random order, and the threads of one in a random
//             order between every two barriers, each on a stack of its own
//   at once   real threads, for ThreadSanitizer: four that share the grid's threads out at random, or, where
//             a kernel waits for its block, one for each thread of a block, block after block
#include <pthread.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

struct ShimIndex {
  unsigned x;
};
thread_local ShimIndex threadIdx, blockIdx;
ShimIndex blockDim, gridDim;

namespace {

using Entry = void (*)(const void*);
constexpr size_t kStack = 256 << 10;
constexpr unsigned kThreads = 4;

struct Launch {
  Entry entry;
  const void* arguments;
  unsigned grid, block;
};

// Fibers: one for each thread of a block, which come back here when they wait for the others.
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStack]};
  bool done = false;
};
ucontext_t scheduler;
Fiber* current = nullptr;
const Launch* launched = nullptr;
pthread_barrier_t* barrier = nullptr;

void run_fiber() {
  launched->entry(launched->arguments);
  current->done = true;
}

std::vector<unsigned long long> shuffled(unsigned long long n, std::mt19937_64& random) {
  std::vector<unsigned long long> order(n);
  std::iota(order.begin(), order.end(), 0ull);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

void run_block(const Launch& launch, std::vector<Fiber>& fibers, std::mt19937_64& random) {
  for (Fiber& fiber : fibers) {
    fiber.done = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, run_fiber, 0);
  }
  for (size_t done = 0; done < fibers.size();) {
    done = 0;
    for (const auto t : shuffled(launch.block, random)) {
      current = &fibers[t];
      threadIdx.x = static_cast<unsigned>(t);
      if (!current->done) swapcontext(&scheduler, &current->context);
      done += current->done;
    }
    if (done != 0 && done != fibers.size()) {
      std::fputs("shim: some threads of a block wait for others that have ended\n", stderr);
      std::abort();
    }
  }
}

void run_in_turn(const Launch& launch, bool waits, std::mt19937_64& random) {
  if (!waits) {
    for (const auto i : shuffled(1ull * launch.grid * launch.block, random)) {
      blockIdx.x = static_cast<unsigned>(i / launch.block);
      threadIdx.x = static_cast<unsigned>(i % launch.block);
      launch.entry(launch.arguments);
    }
    return;
  }
  std::vector<Fiber> fibers(launch.block);
  launched = &launch;
  for (const auto b : shuffled(launch.grid, random)) {
    blockIdx.x = static_cast<unsigned>(b);
    run_block(launch, fibers, random);
  }
  current = nullptr;
}

void run_at_once(const Launch& launch, bool waits, std::mt19937_64& random) {
  std::vector<std::thread> threads;
  if (!waits) {
    const auto order = shuffled(1ull * launch.grid * launch.block, random);
    for (unsigned k = 0; k < kThreads; ++k)
      threads.emplace_back([&launch, &order, k] {
        for (size_t i = k; i < order.size(); i += kThreads) {
          blockIdx.x = static_cast<unsigned>(order[i] / launch.block);
          threadIdx.x = static_cast<unsigned>(order[i] % launch.block);
          launch.entry(launch.arguments);
        }
      });
    for (std::thread& thread : threads) thread.join();
    return;
  }
  for (const auto b : shuffled(launch.grid, random)) {
    pthread_barrier_t block;
    pthread_barrier_init(&block, nullptr, launch.block);
    barrier = &block;
    threads.clear();
    for (unsigned t = 0; t < launch.block; ++t)
      threads.emplace_back([&launch, b, t] {
        blockIdx.x = static_cast<unsigned>(b);
        threadIdx.x = t;
        launch.entry(launch.arguments);
      });
    for (std::thread& thread : threads) thread.join();
    pthread_barrier_destroy(&block);
    barrier = nullptr;
  }
}

}  // namespace

extern "C" void shim_sync() {
  if (barrier != nullptr)
    pthread_barrier_wait(barrier);
  else
    swapcontext(&current->context, &scheduler);
}

extern "C" void shim_launch(Entry entry, const void* arguments, unsigned grid, unsigned block, bool waits,
                            bool at_once, unsigned long long seed) {
  const Launch launch{entry, arguments, grid, block};
  std::mt19937_64 random(seed);
  gridDim.x = grid;
  blockDim.x = block;
  (at_once ? run_at_once : run_in_turn)(launch, waits, random);
}
