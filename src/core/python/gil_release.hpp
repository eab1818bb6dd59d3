// Releases the interpreter's lock while the core works.
#pragma once

#include <chrono>
#include <thread>

#include "include/gatherum.h"
#include "python/numpy/arrays.hpp"

namespace gatherum {

// Releases the interpreter's lock during the object's lifetime. If a thread reacquires the lock after the
// interpreter has ended, CPython before 3.14 ends the thread by unwinding its stack. The pool's other threads
// and nanobind's functions would crash, so the thread sleeps until the process ends.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() { lock(); }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

  // Called regularly during long work, to handle Ctrl-C. Returns true if an exception is set.
  gatherum_poll poll() {
    return {[](void* context) { return static_cast<GilRelease*>(context)->signal_pending() ? 1 : 0; }, this};
  }
  // Returns true if a poll has stopped the work. If the work was interrupted but not by a poll, the process
  // is the child of a fork, which does not have the other threads.
  bool was_interrupted() const { return interrupted_; }
  // Runs `work()` with the lock.
  template <class Work>
  auto run_with_lock(const Work& work) {
    lock();
    const auto result = work();
    state_ = PyEval_SaveThread();
    return result;
  }

 private:
  bool signal_pending() {
    lock();
    interrupted_ = PyErr_CheckSignals() != 0;
    state_ = PyEval_SaveThread();
    return interrupted_;
  }

  void lock() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }

  PyThreadState* state_;
  bool interrupted_ = false;
};

// Runs `run(poll)`, which returns a status, without the interpreter's lock. If the work is interrupted but
// not by a poll, this process is the child of a fork. The child starts again and does all the work on one
// thread. This is safe because polls precede any write in place.
template <class Run>
gatherum_status run_without_lock(const Run& run) {
  GilRelease released;
  const gatherum_poll poll = released.poll();
  for (;;) {
    const gatherum_status status = run(&poll);
    if (status != GATHERUM_INTERRUPTED || released.was_interrupted()) return status;
  }
}

}  // namespace gatherum
