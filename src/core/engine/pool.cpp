#include "engine/pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <thread>

#include "platform/system.hpp"

namespace gatherum {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<uint32_t> forked{0};

// The tasks of one loop. Threads take one task at a time.
struct Job {
  ParallelLoop loop;
  std::atomic<int64_t> next{0};
  std::atomic<bool> cancelled{false};
  const uint32_t forks_at_start = forks();

  // Returns true in a child process if poll has forked. In the child, no other thread works on this job.
  bool is_orphan() const { return forks() != forks_at_start; }

  bool claim_task(int64_t& i) {
    if (cancelled.load(std::memory_order_relaxed)) return false;
    i = next.fetch_add(1, std::memory_order_relaxed);
    return i < loop.tasks;
  }

  void run_tasks(int worker) {
    for (int64_t i; claim_task(i);) loop.task(loop.context, i, worker);
  }

  // Runs tasks on the caller's thread. Like run_tasks(), but polls between tasks whenever kPollInterval has
  // passed.
  bool run_tasks_and_poll() {
    auto last_poll = Clock::now();
    for (int64_t i; claim_task(i);) {
      loop.task(loop.context, i, 0);
      if (loop.poll.ask == nullptr || Clock::now() - last_poll < kPollInterval) continue;
      if (loop.poll.ask(loop.poll.context) != 0 || is_orphan())
        cancelled.store(true, std::memory_order_relaxed);
      last_poll = Clock::now();
    }
    return !cancelled.load(std::memory_order_relaxed);
  }
};

class Pool {
 public:
  // Returns false without doing anything if another thread's loop is running.
  bool try_run(Job& job, int helpers, bool& finished) {
    // A mutex would deadlock: poll may run a signal handler on this thread, and the handler may call this
    // function.
    if (busy_.test_and_set(std::memory_order_acquire)) return false;
    helpers = start_workers(helpers);
    job_ = &job;
    running_.store(helpers, std::memory_order_relaxed);
    // One store changes both the round and the number of workers. Otherwise, a worker that was not needed in
    // the last round and wakes up late could read the round number from one loop and the number of workers
    // from another.
    const uint32_t round = signal_.load(std::memory_order_relaxed) / kMaxWorkers + 1;
    signal_.store(round * kMaxWorkers + static_cast<uint32_t>(helpers), std::memory_order_release);
    if (helpers > 0) signal_.notify_all();
    finished = job.run_tasks_and_poll();
    while (!job.is_orphan()) {
      const int left = running_.load(std::memory_order_acquire);
      if (left == 0) break;
      running_.wait(left);
    }
    busy_.clear(std::memory_order_release);
    return true;
  }

 private:
  // Starts threads up to the requested number. Returns the number of available workers, at most the requested
  // number.
  int start_workers(int helpers) {
    while (workers_ < helpers) {
      try {
        std::thread([this, id = workers_, signal = signal_.load()] { run_worker(id, signal); }).detach();
      } catch (const std::exception&) {
        break;  // no more threads, or no memory for one: the loop runs on the existing ones
      }
      ++workers_;
    }
    return std::min(helpers, workers_);
  }

  void run_worker(int id, uint32_t signal) {
    for (;;) {
      signal_.wait(signal, std::memory_order_acquire);
      signal = signal_.load(std::memory_order_acquire);
      if (static_cast<uint32_t>(id) >= signal % kMaxWorkers) continue;
      job_->run_tasks(id + 1);
      if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
    }
  }

  std::atomic_flag busy_;
  static constexpr uint32_t kMaxWorkers = 2048;  // more than set_num_threads allows

  std::atomic<uint32_t> signal_{0};  // round * kMaxWorkers + number of workers needed
  std::atomic<int> running_{0};
  Job* job_ = nullptr;
  int workers_ = 0;
};

// Never destroyed, because its workers may sleep until the process ends.
std::atomic<Pool*> pool{nullptr};
std::atomic<int> threads{std::min(usable_processors(), kMostThreads)};

// A forked child does not have the parent's workers, and the fork may happen inside a loop.
void forget_pool() {
  pool.store(nullptr);
  forked.fetch_add(1);
}

// Returns null if there is no memory for a pool.
Pool* the_pool() {
  Pool* p = pool.load(std::memory_order_acquire);
  if (p != nullptr) return p;
  auto* fresh = new (std::nothrow) Pool;
  if (fresh == nullptr || pool.compare_exchange_strong(p, fresh)) return fresh;
  delete fresh;
  return p;
}

[[maybe_unused]] const bool fork_handled = (after_fork_in_child(forget_pool), true);

}  // namespace

bool parallel_run(const ParallelLoop& loop, int wanted) {
  Job job;
  job.loop = loop;
  bool finished = false;
  const auto helpers = static_cast<int>(std::min<int64_t>(wanted, loop.tasks)) - 1;
  Pool* const all = helpers > 0 ? the_pool() : nullptr;
  if (all != nullptr && all->try_run(job, helpers, finished)) return finished;
  return job.run_tasks_and_poll();
}

uint32_t forks() { return forked.load(std::memory_order_relaxed); }

void set_threads(int n) { threads.store(n); }
int get_threads() { return threads.load(); }
bool have_processors(int count) { return count <= usable_processors(); }

}  // namespace gatherum
