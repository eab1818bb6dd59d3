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
#include "engine/pool.hpp"
#include "model/widths.hpp"
#include "platform/processor.hpp"
#include "platform/system.hpp"

namespace gatherum {
namespace {

constexpr int64_t kLongestSpan = int64_t{2} << 20;      // of one read whose rows are copied out of scratch
                                                        // memory
constexpr int64_t kLongestTransfer = int64_t{8} << 20;  // of one read directly into the result
constexpr int64_t kSmallestSpan = 4096;
constexpr int64_t kMostRequests = int64_t{1} << 14;  // of one run
constexpr int64_t kReadTaskRuns = 16;
constexpr int64_t kReadTaskBytes = int64_t{1} << 20;
// A disk serves many small requests in parallel about as fast as one request. A few large requests keep it
// busy. A reader mostly waits, so several readers share a processor.
constexpr int kSmallReaders = 16, kLargeReaders = 4;
constexpr int kSmallReadersEach = 8, kLargeReadersEach = 2;  // for each thread of the pool
constexpr int64_t kLargeRun = int64_t{128} << 10;
constexpr int64_t kPieceBytes = int64_t{1} << 20;  // of the file, whose unsorted requests are grouped
constexpr int kRowBits = 20, kPositionBits = 44;   // of a request in a piece: its row there, and its position
constexpr int64_t kPagesBridge = 4;                // pages between two rows that are read with them
constexpr auto kWaited = std::chrono::microseconds(400);        // for a task: longer tasks wait for the disk
constexpr auto kWorthThreads = std::chrono::microseconds(300);  // of work

// Requests begin..end for rows first..last of the file, which are served by one read.
struct Run {
  int64_t begin, end, first, last;
  bool contiguous;  // each request is for the next row and the next position: no scratch is needed
  bool valid;       // false: request end - 1 has an invalid number or position
};

// The read buffers of a thread.
struct Buffers {
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
        reads_once_(reads.once != 0) {}

  ReadOutcome run() {
    const int most_threads =
        by_pages_ ? reads_.in_flight : std::min(kLargeReaders, kLargeReadersEach * get_threads());
    const bool in_pieces = !by_pages_ && reads_.scratch >= kPage && reads_.capacity >> kPositionBits == 0 &&
                           may_read_all_pages();
    bridge_ = in_pieces ? 0 : by_pages_ ? kPagesBridge : choose_bridge();
    if (in_pieces ? !plan_pieces(most_threads) : !plan(most_threads)) return outcome_;
    const bool small_runs = !in_pieces && !by_pages_ && planned_bytes_ < outcome_.runs * kLargeRun;
    if (small_runs && !plan(std::min(kSmallReaders, kSmallReadersEach * get_threads()))) return outcome_;
    // pages that the system reads ahead for one thread are evicted before another thread requests them
    expect_scattered_reads(reads_.file, small_runs || reads_.once != 0);
    other_threads_->reserve(static_cast<size_t>(threads_));
    if (!small_runs) start_threads(threads_);
    run_tasks(true);
    if (is_orphan()) {
      static_cast<void>(
          other_threads_.release());  // the child does not have these threads, but std::thread expects them
      outcome_.status = ReadStatus::interrupted;
      return outcome_;
    }
    for (std::thread& one : *other_threads_) one.join();
    outcome_.bytes = bytes_.load();
    return outcome_;
  }

 private:
  // Returns true in a child process if poll has forked. The child does not have these threads, and one of
  // them may have held the mutex.
  bool is_orphan() const { return forks() != forks_at_start_; }

  // The longest run from request `begin` on.
  Run run_at(int64_t begin, int64_t end) const {
    const int64_t first = reads_.numbers[begin];
    int64_t position = position_of(begin);
    Run run{
        begin, begin + 1, first, first, reads_.stride == reads_.item, is_row(first) && is_position(position)};
    end = std::min(end, begin + kMostRequests);
    for (int64_t i = begin + 1; run.valid && i < end; ++i) {
      const int64_t number = reads_.numbers[i], next = position_of(i);
      if (number < run.last || (is_row(number) && pages_between(run.last, number) > bridge_)) break;
      const bool contiguous = run.contiguous && number == run.last + 1 && next == position + 1;
      const bool fits =
          span_of(first, std::min(number, reads_.extent)) <= (contiguous ? longest_transfer_ : longest_span_);
      if (!fits && number != first) break;
      run.valid = is_row(number) && is_position(next);
      run.contiguous = contiguous;
      run.last = number;
      run.end = i + 1;
      position = next;
    }
    return run;
  }

  // Splits the requests into tasks for up to `threads` threads. Returns false if a request is invalid.
  bool plan(int threads) {
    threads_ = static_cast<int>(std::clamp<int64_t>(reads_.scratch / kSmallestSpan, 1, threads));
    longest_span_ = std::min(reads_.scratch / threads_, kLongestSpan);
    int64_t bytes = 0, runs = 0;
    planned_bytes_ = outcome_.runs = 0;
    task_starts_.assign(1, 0);
    for (int64_t i = 0; i < reads_.count;) {
      const Run run = run_at(i, reads_.count);
      if (!run.valid) {
        outcome_.status = ReadStatus::outside;
        outcome_.position = run.end - 1;
        return false;
      }
      i = run.end;
      bytes += span_of(run.first, run.last);
      planned_bytes_ += span_of(run.first, run.last);
      ++outcome_.runs;
      if (!by_pages_ && ++runs < kReadTaskRuns && bytes < kReadTaskBytes &&
          i - task_starts_.back() < kMostRequests && i < reads_.count)
        continue;
      task_starts_.push_back(i);
      bytes = runs = 0;
    }
    return true;
  }

  // Makes each piece of the file a task, with its requests grouped. Returns false if a request is invalid.
  bool plan_pieces(int threads) {
    threads_ = static_cast<int>(std::clamp<int64_t>(reads_.scratch / kSmallestSpan, 1, threads));
    longest_span_ = std::min(reads_.scratch / threads_, kPieceBytes);
    piece_row_bits_ = std::bit_width(static_cast<uint64_t>(longest_span_ / reads_.stride)) - 1;
    task_starts_.assign(static_cast<size_t>((reads_.extent - 1) >> piece_row_bits_) + 2, 0);
    for (int64_t i = 0; i < reads_.count; ++i) {
      const int64_t number = reads_.numbers[i];
      if (!is_row(number) || !is_position(position_of(i))) return outside(i);
      ++task_starts_[static_cast<size_t>(number >> piece_row_bits_) + 1];
    }
    outcome_.runs =
        std::count_if(task_starts_.begin(), task_starts_.end(), [](int64_t count) { return count != 0; });
    for (size_t piece = 1; piece < task_starts_.size(); ++piece)
      task_starts_[piece] += task_starts_[piece - 1];
    requests_by_piece_.reset(new (std::nothrow) uint64_t[static_cast<size_t>(reads_.count)]);
    if (requests_by_piece_ == nullptr) return stop({ReadStatus::no_memory});
    std::vector<int64_t> next = task_starts_;
    for (int64_t i = 0; i < reads_.count; ++i) {
      const int64_t number = reads_.numbers[i], position = position_of(i);
      // checked again: the arrays may have changed since the pieces were counted
      if (!is_row(number) || !is_position(position)) return outside(i);
      const auto piece = static_cast<size_t>(number >> piece_row_bits_);
      if (next[piece] == task_starts_[piece + 1]) return outside(i);
      const auto row = static_cast<uint64_t>(number & ((int64_t{1} << piece_row_bits_) - 1));
      requests_by_piece_[static_cast<size_t>(next[piece]++)] =
          static_cast<uint64_t>(position) << kRowBits | row;
    }
    return true;
  }

  // Starts threads until `threads` are working, including this one, limited by the number of tasks left.
  void start_threads(int threads) {
    const auto left = static_cast<int64_t>(task_starts_.size()) - 1 - static_cast<int64_t>(next_task_.load());
    const auto most = static_cast<size_t>(std::max<int64_t>(0, std::min<int64_t>(threads - 1, left)));
    try {
      while (other_threads_->size() < most) other_threads_->emplace_back([this] { run_tasks(false); });
    } catch (const std::exception&) {
      // no more threads available: the existing ones do the work
    }
  }

  // Starts more threads than processors if tasks wait for the disk, and none if little work is left.
  void start_threads_for(std::chrono::nanoseconds task) {
    const auto left = static_cast<int64_t>(task_starts_.size()) - 1 - static_cast<int64_t>(next_task_.load());
    if (task > kWaited) start_threads(threads_);
    if (left * task > kWorthThreads) start_threads(std::min(threads_, get_threads()));
  }

  void run_tasks(bool polls) {
    Buffers buffers;
    auto last_poll = std::chrono::steady_clock::now();
    for (;;) {
      const auto task_start = std::chrono::steady_clock::now();
      const size_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
      if (task + 1 >= task_starts_.size() || stopped_.load(std::memory_order_relaxed)) return;
      if (requests_by_piece_ != nullptr && !serve_piece(task, buffers)) return;
      for (int64_t i = task_starts_[task]; requests_by_piece_ == nullptr && i < task_starts_[task + 1];) {
        const Run run = run_at(i, task_starts_[task + 1]);
        i = run.end;
        if (!serve(run, buffers)) return;
      }
      if (!polls) continue;
      const auto now = std::chrono::steady_clock::now();
      start_threads_for(now - task_start);
      if (poll_.ask == nullptr || now - last_poll < kPollInterval) continue;
      const bool asked_to_stop = poll_.ask(poll_.context) != 0;
      if (is_orphan()) return;
      if (asked_to_stop) stop({ReadStatus::interrupted});
      last_poll = std::chrono::steady_clock::now();
    }
  }

  // Reads one run and copies its rows to their destinations.
  bool serve(const Run& run, Buffers& buffers) {
    const int64_t position = position_of(run.begin), bytes = run.valid ? span_of(run.first, run.last) : 0;
    const bool single = run.first == run.last;
    const int64_t direct = single ? reads_.item : run.contiguous ? bytes : 0;
    // checked again: the arrays may have changed since the run was determined
    if (!run.valid || !is_position(position) || direct > (reads_.capacity - position) * reads_.item)
      return outside(run.begin);
    if (direct == 0 && !has_scratch(buffers)) return false;
    char* to = direct != 0 ? out_ + position * reads_.item : buffers.scratch.get();
    if (direct == 0 && bytes > longest_span_) return outside(run.begin);
    if (!read(to, bytes, start_of(run.first), buffers)) return false;
    if (run.contiguous || (single && run.end == run.begin + 1)) return true;
    return with_item([&](auto item) { return copy_rows<item>(run, to, bytes); });
  }

  // Reads one piece of the file and copies its requested rows to their destinations.
  bool serve_piece(size_t piece, Buffers& buffers) {
    if (task_starts_[piece] == task_starts_[piece + 1]) return true;
    const int64_t first = static_cast<int64_t>(piece) << piece_row_bits_;
    const int64_t last = std::min(first + (int64_t{1} << piece_row_bits_), reads_.extent) - 1;
    if (!has_scratch(buffers)) return false;
    if (!read(buffers.scratch.get(), span_of(first, last), start_of(first), buffers)) return false;
    return with_item([&](auto item) { return copy_piece<item>(piece, buffers.scratch.get()); });
  }

  bool has_scratch(Buffers& buffers) {
    if (buffers.scratch == nullptr)
      buffers.scratch.reset(new (std::nothrow) char[static_cast<size_t>(longest_span_)]);
    return buffers.scratch != nullptr || stop({ReadStatus::no_memory});
  }

  // Calls `copy` with the row size as a compile-time constant, or with 0 for row sizes that have no constant.
  template <class Copy>
  bool with_item(Copy copy) const {
    return with_width(WidthsAnd<32, 0>{}, reads_.item, copy);
  }

  bool read(char* to, int64_t bytes, int64_t offset, Buffers& buffers) {
    const int64_t end = offset + bytes;
    if (by_pages_ && !buffers.pages.reserve(offset, end)) return stop({ReadStatus::no_memory});
    while (offset < end) {
      int error = 0;
      const int64_t most = std::min(end - offset, int64_t{1} << 30);
      const int64_t bytes_read = by_pages_ ? buffers.pages.read(reads_.file, to, most, offset, error)
                                           : read_some(to, most, offset, error);
      if (bytes_read < 0) return stop({ReadStatus::failed, error, offset, end});
      if (bytes_read == 0) return stop({ReadStatus::truncated, 0, offset, end});
      to += bytes_read;
      offset += bytes_read;
    }
    bytes_.fetch_add(by_pages_ ? buffers.pages.take_bytes_read() : bytes, std::memory_order_relaxed);
    return true;
  }

  int64_t read_some(char* to, int64_t bytes, int64_t offset, int& error) {
    if (reads_once_.load(std::memory_order_relaxed)) {
      const int64_t bytes_read = read_once_at(reads_.file, to, bytes, offset);
      if (bytes_read >= 0) return bytes_read;
      reads_once_.store(false, std::memory_order_relaxed);  // the system or file system does not support it
    }
    return read_at(reads_.file, to, bytes, offset, error);
  }

  // Copies the rows of a run out of the buffer. `kItem` is the row size, 0 for any.
  template <int64_t kItem>
  bool copy_rows(const Run& run, const char* from, int64_t bytes) {
    constexpr int64_t kRequestsAhead = 8;
    const int64_t item = kItem == 0 ? reads_.item : kItem;
    for (int64_t i = run.begin; i < run.end; ++i) {
      const int64_t number = reads_.numbers[i], position = position_of(i);
      if (number < run.first || number > run.last || span_of(run.first, number) > bytes ||
          !is_position(position))
        return outside(i);
      if (i + kRequestsAhead < run.end) prefetch_row(position_of(i + kRequestsAhead));
      char* to = out_ + position * item;
      const char* row = from + (number - run.first) * reads_.stride;
      if (to != row) std::memcpy(to, row, static_cast<size_t>(item));
    }
    return true;
  }

  // The same for a piece. The requests of the part were copied to private memory and checked, so no row or
  // destination is out of range.
  template <int64_t kItem>
  bool copy_piece(size_t piece, const char* from) {
    constexpr int64_t kRequestsAhead = 16;
    const int64_t item = kItem == 0 ? reads_.item : kItem, end = task_starts_[piece + 1];
    for (int64_t i = task_starts_[piece]; i < end; ++i) {
      if (i + kRequestsAhead < end) {
        const auto later =
            static_cast<int64_t>(requests_by_piece_[static_cast<size_t>(i + kRequestsAhead)] >> kRowBits);
        kItem == 0 ? prefetch_row(later) : prefetch_write(out_ + later * item);
      }
      const uint64_t request = requests_by_piece_[static_cast<size_t>(i)];
      const auto row = static_cast<int64_t>(request & ((uint64_t{1} << kRowBits) - 1));
      char* to = out_ + static_cast<int64_t>(request >> kRowBits) * item;
      std::memcpy(to, from + row * reads_.stride, static_cast<size_t>(item));
    }
    return true;
  }

  void prefetch_row(int64_t position) const {
    const auto offset = static_cast<uint64_t>(position) * static_cast<uint64_t>(reads_.item);
    prefetch_bytes<FetchTo::write>(out_, static_cast<int64_t>(offset),
                                   std::min<int64_t>(reads_.item, 8 * kCacheLine));
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
  const int64_t longest_transfer_ = by_pages_ ? kLongestPageRead : kLongestTransfer;  // bytes of a run of
                                                                                      // contiguous requests
  const uint32_t forks_at_start_ = forks();
  int threads_ = 1, piece_row_bits_ = 0;  // a piece has 1 << piece_row_bits_ rows
  std::unique_ptr<std::vector<std::thread>> other_threads_ = std::make_unique<std::vector<std::thread>>();
  std::unique_ptr<uint64_t[]> requests_by_piece_;  // the requests, grouped by piece
  int64_t longest_span_ = 0, bridge_ = 0, planned_bytes_ = 0;
  std::vector<int64_t> task_starts_;
  std::atomic<size_t> next_task_{0};
  std::atomic<int64_t> bytes_{0};
  std::atomic<bool> stopped_{false}, reads_once_;
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
