// Runs the threads of a launch: one at a time in a random order, or concurrently.
//
//   in turn      every thread of the grid runs to its end before another begins, in a seeded random order. If
//                threads wait for each other, blocks run in random order, and any thread of a block that need
//                not wait runs next, up to its next barrier. Each thread has a separate stack.
//   concurrent   real threads, for ThreadSanitizer: four that share the grid's threads at random. If threads
//                wait for each other, one for each thread of a block, block after block.
//
// Barriers are for a block or for a warp, which is 32 threads. A barrier that some of its threads never reach
// is an error, as on a device, where the waiting threads might hang, or continue.
#include <pthread.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
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

constexpr unsigned kWarp = 32;

// Fibers: one for each thread of a block, which return to the scheduler when they wait for other threads.
struct Barrier {
  unsigned threads = 0, waiting = 0;
};
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStack]};
  Barrier* waits_at = nullptr;
  bool done = false;
};
struct Block {
  std::vector<Fiber> fibers;
  std::vector<Barrier> warps;
  Barrier all;
};
ucontext_t scheduler;
Block* block = nullptr;
const Launch* launched = nullptr;

// Real threads alternate between two barriers. With a single one, a thread that wakes up late from a wait
// would appear synchronized with other threads' later work, and ThreadSanitizer would miss a race with them.
class RealBarrier {
 public:
  explicit RealBarrier(unsigned threads) {
    for (pthread_barrier_t& one : both_) pthread_barrier_init(&one, nullptr, threads);
  }
  RealBarrier(const RealBarrier&) = delete;
  ~RealBarrier() {
    for (pthread_barrier_t& one : both_) pthread_barrier_destroy(&one);
  }
  void wait(unsigned& done) { pthread_barrier_wait(&both_[done++ % 2]); }

 private:
  pthread_barrier_t both_[2];
};
struct RealBarriers {
  RealBarrier all;
  std::deque<RealBarrier> warps;
};
RealBarriers* barriers = nullptr;
thread_local unsigned block_waits = 0, warp_waits = 0;

void run_fiber() {
  launched->entry(launched->arguments);
  block->fibers[threadIdx.x].done = true;
}

unsigned threads_of_warp(const Launch& launch, unsigned warp) {
  return std::min(kWarp, launch.block - warp * kWarp);
}

std::vector<unsigned long long> shuffled(unsigned long long n, std::mt19937_64& random) {
  std::vector<unsigned long long> order(n);
  std::iota(order.begin(), order.end(), 0ull);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

void start(Fiber& fiber) {
  fiber.done = false;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStack;
  fiber.context.uc_link = &scheduler;
  makecontext(&fiber.context, run_fiber, 0);
}

// Runs a fiber to its next barrier. If it is the last one there, adds all waiting fibers to `ready`.
void run_on(unsigned t, std::vector<unsigned>& ready) {
  Fiber& fiber = block->fibers[t];
  threadIdx.x = t;
  swapcontext(&scheduler, &fiber.context);
  Barrier* const at = fiber.waits_at;
  if (fiber.done || ++at->waiting < at->threads) return;
  at->waiting = 0;
  for (unsigned i = 0; i < block->fibers.size(); ++i)
    if (block->fibers[i].waits_at == at) {
      block->fibers[i].waits_at = nullptr;
      ready.push_back(i);
    }
}

void run_block(const Launch& launch, Block& threads, std::mt19937_64& random) {
  std::vector<unsigned> ready(launch.block);
  std::iota(ready.begin(), ready.end(), 0u);
  for (Fiber& fiber : threads.fibers) start(fiber);
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const unsigned t = ready.back();
    ready.pop_back();
    run_on(t, ready);
  }
  for (const Fiber& fiber : threads.fibers)
    if (!fiber.done) {
      std::fputs("shim: some threads wait for others that have ended, or wait elsewhere\n", stderr);
      std::abort();
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
  Block threads{std::vector<Fiber>(launch.block), {}, {launch.block, 0}};
  for (unsigned w = 0; w * kWarp < launch.block; ++w)
    threads.warps.push_back({threads_of_warp(launch, w), 0});
  launched = &launch;
  block = &threads;
  for (const auto b : shuffled(launch.grid, random)) {
    blockIdx.x = static_cast<unsigned>(b);
    run_block(launch, threads, random);
  }
  block = nullptr;
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
    RealBarriers of_block{RealBarrier(launch.block), {}};
    for (unsigned w = 0; w * kWarp < launch.block; ++w)
      of_block.warps.emplace_back(threads_of_warp(launch, w));
    barriers = &of_block;
    threads.clear();
    for (unsigned t = 0; t < launch.block; ++t)
      threads.emplace_back([&launch, b, t] {
        blockIdx.x = static_cast<unsigned>(b);
        threadIdx.x = t;
        launch.entry(launch.arguments);
      });
    for (std::thread& thread : threads) thread.join();
    barriers = nullptr;
  }
}

void wait_at(Barrier& barrier) {
  Fiber& fiber = block->fibers[threadIdx.x];
  fiber.waits_at = &barrier;
  swapcontext(&fiber.context, &scheduler);
}

}  // namespace

extern "C" void shim_wait_for_block() {
  if (barriers != nullptr)
    barriers->all.wait(block_waits);
  else
    wait_at(block->all);
}

extern "C" void shim_wait_for_warp() {
  const unsigned warp = threadIdx.x / kWarp;
  if (barriers != nullptr)
    barriers->warps[warp].wait(warp_waits);
  else
    wait_at(block->warps[warp]);
}

// Returns the lanes of the warp whose value is the same, as bits.
extern "C" unsigned shim_lanes_with(int value) {
  static int values[1024];  // of the threads of a block
  const unsigned first = threadIdx.x / kWarp * kWarp;
  values[threadIdx.x] = value;
  shim_wait_for_warp();
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) lanes |= (values[first + lane] == value ? 1u : 0u) << lane;
  shim_wait_for_warp();
  return lanes;
}

extern "C" void shim_launch(Entry entry, const void* arguments, unsigned grid, unsigned block, bool waits,
                            bool at_once, unsigned long long seed) {
  const Launch launch{entry, arguments, grid, block};
  std::mt19937_64 random(seed);
  gridDim.x = grid;
  blockDim.x = block;
  (at_once ? run_at_once : run_in_turn)(launch, waits, random);
}
