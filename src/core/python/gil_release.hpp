// Releases the interpreter's lock while the core works.
#pragma once

#include <chrono>
#include <thread>

#include "include/gatherum.h"
#include "python/numpy/arrays.hpp"

namespace gatherum {

// Releases the interpreter's lock during the object's lifetime. CPython before 3.14 ends a thread that
// reacquires the lock after the interpreter has ended, by unwinding its stack. Neither the pool's other
// threads nor nanobind's functions would survive that, so the thread sleeps until the process is gone.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() { lock(); }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

  // Called regularly during long work, to handle Ctrl-C. True: an exception is set.
  gatherum_poll poll() {
    return {[](void* context) { return static_cast<GilRelease*>(context)->signal_pending() ? 1 : 0; }, this};
  }
  // Returns true if a poll has stopped the work. If work was interrupted but no poll stopped it, then a fork
  // did: the child has none of the threads that took part.
  bool interrupted() const { return interrupted_; }

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

// Runs run(poll), which returns a status, without the interpreter's lock. If the work is interrupted but no
// poll stopped it, this is the child of a fork. It starts again and does all the work itself, which is safe
// because polls come before any write in place.
template <class Run>
gatherum_status run_without_lock(const Run& run) {
  GilRelease released;
  const gatherum_poll poll = released.poll();
  for (;;) {
    const gatherum_status status = run(&poll);
    if (status != GATHERUM_INTERRUPTED || released.interrupted()) return status;
  }
}

}  // namespace gatherum
