#include "disk/row_reads.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

#include "disk/page_reads.hpp"
#include "disk/row_requests.hpp"
#include "engine/platform.hpp"
#include "engine/pool.hpp"
#include "engine/processor.hpp"
#include "model/widths.hpp"

namespace gatherum {
namespace {

constexpr int64_t kLongestSpan = int64_t{2} << 20;      // of one read whose rows are copied out of scratch
                                                        // memory
constexpr int64_t kLongestTransfer = int64_t{8} << 20;  // of one read directly into the result
constexpr int64_t kSmallestSpan = 4096;
constexpr int64_t kMostRequests = int64_t{1} << 14;  // of one run
constexpr int64_t kTaskRuns = 16;
constexpr int64_t kTaskBytes = int64_t{1} << 20;
// A disk serves many small requests in parallel about as fast as one request. A few large requests keep it
// busy. A reader mostly waits, so several readers share a processor.
constexpr int kSmallReaders = 16, kLargeReaders = 4;
constexpr int kSmallReadersEach = 8, kLargeReadersEach = 2;  // for each thread of the pool
constexpr int64_t kLargeRun = int64_t{128} << 10;
constexpr int64_t kPart = int64_t{1} << 20;       // of the file, in which unsorted requests are grouped
constexpr int kRowBits = 20, kPositionBits = 44;  // of a request in a part: its row there, and its position
constexpr int64_t kPagesBridge = 4;               // pages between two rows that are read with them
constexpr auto kPollInterval = std::chrono::milliseconds(50);
constexpr auto kWaited = std::chrono::microseconds(400);        // for a task: longer tasks wait for the disk
constexpr auto kWorthThreads = std::chrono::microseconds(300);  // of work

// Requests begin..end for rows first..last of the file, which are served by one read.
struct Run {
  int64_t begin, end, first, last;
  bool straight;  // each request is for the next row and the next position: no scratch is needed
  bool inside;    // false: request end - 1 has an invalid number or position
};

// The read buffers of a thread.
struct Memory {
  std::unique_ptr<char[]> scratch;
  PageReads pages;
};

class Reader : RowRequests {
 public:
  Reader(const RowReads& reads, const Poll& poll)
      : RowRequests(reads),
        poll_(poll),
        out_(static_cast<char*>(reads.out)),
        by_pages_(reads.in_flight > 0),
        once_(reads.once != 0) {}

  ReadOutcome run() {
    const int few = by_pages_ ? r_.in_flight : std::min(kLargeReaders, kLargeReadersEach * get_threads());
    const bool in_parts =
        !by_pages_ && r_.scratch >= kPage && r_.capacity >> kPositionBits == 0 && wants_all_pages();
    bridge_ = in_parts ? 0 : by_pages_ ? kPagesBridge : choose_bridge();
    if (in_parts ? !plan_parts(few) : !plan(few)) return outcome_;
    const bool small = !in_parts && !by_pages_ && planned_ < outcome_.runs * kLargeRun;
    if (small && !plan(std::min(kSmallReaders, kSmallReadersEach * get_threads()))) return outcome_;
    // pages that the system reads ahead for one thread are evicted before another thread requests them
    expect_scattered_reads(r_.file, small || r_.once != 0);
    crew_->reserve(static_cast<size_t>(threads_));
    if (!small) enlist(threads_);
    work(true);
    if (is_orphan()) {
      static_cast<void>(crew_.release());  // the child has no threads to join, which std::thread cannot know
      outcome_.status = ReadStatus::interrupted;
      return outcome_;
    }
    for (std::thread& one : *crew_) one.join();
    outcome_.bytes = bytes_.load();
    return outcome_;
  }

 private:
  // Returns true in a child process if poll has forked. The child does not have these threads, and one of
  // them may have held the mutex.
  bool is_orphan() const { return forks() != born_; }

  // The longest run from request `begin` on.
  Run run_at(int64_t begin, int64_t end) const {
    const int64_t first = r_.numbers[begin];
    int64_t position = position_of(begin);
    Run run{begin, begin + 1, first, first, r_.stride == r_.item, is_row(first) && is_position(position)};
    end = std::min(end, begin + kMostRequests);
    for (int64_t i = begin + 1; run.inside && i < end; ++i) {
      const int64_t number = r_.numbers[i], next = position_of(i);
      if (number < run.last || (is_row(number) && pages_between(run.last, number) > bridge_)) break;
      const bool straight = run.straight && number == run.last + 1 && next == position + 1;
      const bool fits = span_of(first, std::min(number, r_.extent)) <= (straight ? longest_ : span_);
      if (!fits && number != first) break;
      run.inside = is_row(number) && is_position(next);
      run.straight = straight;
      run.last = number;
      run.end = i + 1;
      position = next;
    }
    return run;
  }

  // Splits the requests into tasks for up to `threads` threads. Returns false if a request is invalid.
  bool plan(int threads) {
    threads_ = static_cast<int>(std::clamp<int64_t>(r_.scratch / kSmallestSpan, 1, threads));
    span_ = std::min(r_.scratch / threads_, kLongestSpan);
    int64_t bytes = 0, runs = 0;
    planned_ = outcome_.runs = 0;
    cuts_.assign(1, 0);
    for (int64_t i = 0; i < r_.count;) {
      const Run run = run_at(i, r_.count);
      if (!run.inside) {
        outcome_.status = ReadStatus::outside;
        outcome_.position = run.end - 1;
        return false;
      }
      i = run.end;
      bytes += span_of(run.first, run.last);
      planned_ += span_of(run.first, run.last);
      ++outcome_.runs;
      if (!by_pages_ && ++runs < kTaskRuns && bytes < kTaskBytes && i - cuts_.back() < kMostRequests &&
          i < r_.count)
        continue;
      cuts_.push_back(i);
      bytes = runs = 0;
    }
    return true;
  }

  // Makes each part of the file a task, with its requests grouped. Returns false if a request is invalid.
  bool plan_parts(int threads) {
    threads_ = static_cast<int>(std::clamp<int64_t>(r_.scratch / kSmallestSpan, 1, threads));
    span_ = std::min(r_.scratch / threads_, kPart);
    shift_ = std::bit_width(static_cast<uint64_t>(span_ / r_.stride)) - 1;
    cuts_.assign(static_cast<size_t>((r_.extent - 1) >> shift_) + 2, 0);
    for (int64_t i = 0; i < r_.count; ++i) {
      const int64_t number = r_.numbers[i];
      if (!is_row(number) || !is_position(position_of(i))) return outside(i);
      ++cuts_[static_cast<size_t>(number >> shift_) + 1];
    }
    outcome_.runs = std::count_if(cuts_.begin(), cuts_.end(), [](int64_t count) { return count != 0; });
    for (size_t part = 1; part < cuts_.size(); ++part) cuts_[part] += cuts_[part - 1];
    parted_.reset(new (std::nothrow) uint64_t[static_cast<size_t>(r_.count)]);
    if (parted_ == nullptr) return stop({ReadStatus::no_memory});
    std::vector<int64_t> next = cuts_;
    for (int64_t i = 0; i < r_.count; ++i) {
      const int64_t number = r_.numbers[i], position = position_of(i);
      // checked again: the arrays may have changed since the parts were counted
      if (!is_row(number) || !is_position(position)) return outside(i);
      const auto part = static_cast<size_t>(number >> shift_);
      if (next[part] == cuts_[part + 1]) return outside(i);
      const auto row = static_cast<uint64_t>(number & ((int64_t{1} << shift_) - 1));
      parted_[static_cast<size_t>(next[part]++)] = static_cast<uint64_t>(position) << kRowBits | row;
    }
    return true;
  }

  // Starts threads until `threads` are working, including this one, limited by the number of tasks left.
  void enlist(int threads) {
    const auto left = static_cast<int64_t>(cuts_.size()) - 1 - static_cast<int64_t>(next_.load());
    const auto most = static_cast<size_t>(std::max<int64_t>(0, std::min<int64_t>(threads - 1, left)));
    try {
      while (crew_->size() < most) crew_->emplace_back([this] { work(false); });
    } catch (const std::exception&) {
      // no more threads available: the existing ones do the work
    }
  }

  // Starts more threads than processors if tasks wait for the disk, and none if little work is left.
  void enlist_for(std::chrono::nanoseconds task) {
    const auto left = static_cast<int64_t>(cuts_.size()) - 1 - static_cast<int64_t>(next_.load());
    if (task > kWaited) enlist(threads_);
    if (left * task > kWorthThreads) enlist(std::min(threads_, get_threads()));
  }

  void work(bool polls) {
    Memory memory;
    auto asked = std::chrono::steady_clock::now();
    for (;;) {
      const auto begun = std::chrono::steady_clock::now();
      const size_t task = next_.fetch_add(1, std::memory_order_relaxed);
      if (task + 1 >= cuts_.size() || stopped_.load(std::memory_order_relaxed)) return;
      if (parted_ != nullptr && !serve_part(task, memory)) return;
      for (int64_t i = cuts_[task]; parted_ == nullptr && i < cuts_[task + 1];) {
        const Run run = run_at(i, cuts_[task + 1]);
        i = run.end;
        if (!serve(run, memory)) return;
      }
      if (!polls) continue;
      const auto now = std::chrono::steady_clock::now();
      enlist_for(now - begun);
      if (poll_.ask == nullptr || now - asked < kPollInterval) continue;
      const bool asked_to_stop = poll_.ask(poll_.context) != 0;
      if (is_orphan()) return;
      if (asked_to_stop) stop({ReadStatus::interrupted});
      asked = std::chrono::steady_clock::now();
    }
  }

  // Reads one run and copies its rows to their destinations.
  bool serve(const Run& run, Memory& memory) {
    const int64_t position = position_of(run.begin), bytes = run.inside ? span_of(run.first, run.last) : 0;
    const bool single = run.first == run.last;
    const int64_t direct = single ? r_.item : run.straight ? bytes : 0;
    // checked again: the arrays may have changed since the run was determined
    if (!run.inside || !is_position(position) || direct > (r_.capacity - position) * r_.item)
      return outside(run.begin);
    if (direct == 0 && !has_scratch(memory)) return false;
    char* to = direct != 0 ? out_ + position * r_.item : memory.scratch.get();
    if (direct == 0 && bytes > span_) return outside(run.begin);
    if (!read(to, bytes, start_of(run.first), memory)) return false;
    if (run.straight || (single && run.end == run.begin + 1)) return true;
    return with_item([&](auto item) { return copy_rows<item>(run, to, bytes); });
  }

  // Reads one part of the file and copies its requested rows to their destinations.
  bool serve_part(size_t part, Memory& memory) {
    if (cuts_[part] == cuts_[part + 1]) return true;
    const int64_t first = static_cast<int64_t>(part) << shift_;
    const int64_t last = std::min(first + (int64_t{1} << shift_), r_.extent) - 1;
    if (!has_scratch(memory)) return false;
    if (!read(memory.scratch.get(), span_of(first, last), start_of(first), memory)) return false;
    return with_item([&](auto item) { return copy_part<item>(part, memory.scratch.get()); });
  }

  bool has_scratch(Memory& memory) {
    if (memory.scratch == nullptr) memory.scratch.reset(new (std::nothrow) char[static_cast<size_t>(span_)]);
    return memory.scratch != nullptr || stop({ReadStatus::no_memory});
  }

  // Calls `copy` with the row size as a compile-time constant, or 0 for other row sizes.
  template <class Copy>
  bool with_item(Copy copy) const {
    return with_width(WidthsAnd<32, 0>{}, r_.item, copy);
  }

  bool read(char* to, int64_t bytes, int64_t offset, Memory& memory) {
    const int64_t end = offset + bytes;
    if (by_pages_ && !memory.pages.reserve(offset, end)) return stop({ReadStatus::no_memory});
    while (offset < end) {
      int error = 0;
      const int64_t most = std::min(end - offset, int64_t{1} << 30);
      const int64_t got = by_pages_ ? memory.pages.read(r_.file, to, most, offset, error)
                                    : read_some(to, most, offset, error);
      if (got < 0) return stop({ReadStatus::failed, error, offset, end});
      if (got == 0) return stop({ReadStatus::truncated, 0, offset, end});
      to += got;
      offset += got;
    }
    bytes_.fetch_add(by_pages_ ? memory.pages.take_bytes_read() : bytes, std::memory_order_relaxed);
    return true;
  }

  int64_t read_some(char* to, int64_t bytes, int64_t offset, int& error) {
    if (once_.load(std::memory_order_relaxed)) {
      const int64_t got = read_once_at(r_.file, to, bytes, offset);
      if (got >= 0) return got;
      once_.store(false, std::memory_order_relaxed);  // the system or file system does not support it
    }
    return read_at(r_.file, to, bytes, offset, error);
  }

  // Copies the rows of a run out of the buffer. `kItem` is the row size, 0 for any.
  template <int64_t kItem>
  bool copy_rows(const Run& run, const char* from, int64_t bytes) {
    constexpr int64_t kAhead = 8;
    const int64_t item = kItem == 0 ? r_.item : kItem;
    for (int64_t i = run.begin; i < run.end; ++i) {
      const int64_t number = r_.numbers[i], position = position_of(i);
      if (number < run.first || number > run.last || span_of(run.first, number) > bytes ||
          !is_position(position))
        return outside(i);
      if (i + kAhead < run.end) prefetch_row(position_of(i + kAhead));
      char* to = out_ + position * item;
      const char* row = from + (number - run.first) * r_.stride;
      if (to != row) std::memcpy(to, row, static_cast<size_t>(item));
    }
    return true;
  }

  // The same for a part. Its requests are private copies that were checked, so no row or destination is out
  // of range.
  template <int64_t kItem>
  bool copy_part(size_t part, const char* from) {
    constexpr int64_t kAhead = 16;
    const int64_t item = kItem == 0 ? r_.item : kItem, end = cuts_[part + 1];
    for (int64_t i = cuts_[part]; i < end; ++i) {
      if (i + kAhead < end) {
        const auto later = static_cast<int64_t>(parted_[static_cast<size_t>(i + kAhead)] >> kRowBits);
        kItem == 0 ? prefetch_row(later) : prefetch_write(out_ + later * item);
      }
      const uint64_t request = parted_[static_cast<size_t>(i)];
      const auto row = static_cast<int64_t>(request & ((uint64_t{1} << kRowBits) - 1));
      char* to = out_ + static_cast<int64_t>(request >> kRowBits) * item;
      std::memcpy(to, from + row * r_.stride, static_cast<size_t>(item));
    }
    return true;
  }

  void prefetch_row(int64_t position) const {
    const auto offset = static_cast<uint64_t>(position) * static_cast<uint64_t>(r_.item);
    prefetch_run<FetchTo::write>(out_, static_cast<int64_t>(offset),
                                 std::min<int64_t>(r_.item, 8 * kCacheLine));
  }

  bool outside(int64_t request) { return stop({ReadStatus::outside, 0, request, 0}); }

  // Records the first reason to stop. Returns false.
  bool stop(const ReadOutcome& reason) {
    const std::scoped_lock lock(mutex_);
    if (!stopped_.exchange(true)) {
      const int64_t runs = outcome_.runs;
      outcome_ = reason;
      outcome_.runs = runs;
    }
    return false;
  }

  const Poll& poll_;
  char* const out_;
  const bool by_pages_;
  const int64_t longest_ = by_pages_ ? kLongestPageRead : kLongestTransfer;  // bytes of a run of straight
                                                                             // requests
  const uint32_t born_ = forks();
  int threads_ = 1, shift_ = 0;  // a part has 1 << shift_ rows
  std::unique_ptr<std::vector<std::thread>> crew_ = std::make_unique<std::vector<std::thread>>();
  std::unique_ptr<uint64_t[]> parted_;  // the requests, grouped by part
  int64_t span_ = 0, bridge_ = 0, planned_ = 0;
  std::vector<int64_t> cuts_;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> bytes_{0};
  std::atomic<bool> stopped_{false}, once_;
  std::mutex mutex_;
  ReadOutcome outcome_;
};

}  // namespace

ReadOutcome read_rows(const RowReads& reads, const Poll& poll) {
  if (reads.count == 0 || reads.item == 0) return {};
  return Reader(reads, poll).run();
}

int64_t choose_bridge(const RowReads& reads) {
  return reads.count == 0 || reads.item == 0 ? 0 : RowRequests(reads).choose_bridge();
}

}  // namespace gatherum
