#include "row_reads.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "platform.hpp"
#include "pool.hpp"

namespace gatherum {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kLongestSpan = int64_t{2} << 20;      // read at once when rows are picked out of it
constexpr int64_t kLongestTransfer = int64_t{8} << 20;  // read at once when it goes where it belongs
constexpr int64_t kSmallestSpan = 4096;
constexpr int64_t kMostRequests = int64_t{1} << 14;  // of one run
constexpr int64_t kTaskRuns = 16;
constexpr int64_t kTaskBytes = int64_t{1} << 20;
// A disk answers many small requests at once about as fast as one; large ones keep it busy anyway.
// A reader mostly waits, so a few share a processor.
constexpr int kSmallReaders = 16, kLargeReaders = 4;
constexpr int kSmallReadersEach = 8, kLargeReadersEach = 2;  // for each thread of the pool
constexpr int64_t kLargeRun = int64_t{128} << 10;
constexpr int kBridges = 9;  // gaps of up to 1, 2, 4, ... 256 pages
constexpr auto kPollInterval = std::chrono::milliseconds(50);

// Requests begin..end, all for rows first..last of the file, that one read serves.
struct Run {
  int64_t begin, end, first, last;
  bool straight;  // each request is for the next row, and the next place: no scratch is needed
  bool inside;    // false: request end - 1 has a number or a place that does not exist
};

class Reader {
 public:
  Reader(const RowReads& reads, const Poll& poll) : r_(reads), poll_(poll), once_(reads.once) {}

  ReadOutcome run() {
    bridge_ = choose_bridge();
    if (!plan(std::min(kLargeReaders, kLargeReadersEach * get_threads()))) return outcome_;
    const bool small = planned_ < outcome_.runs * kLargeRun;
    if (small && !plan(std::min(kSmallReaders, kSmallReadersEach * get_threads()))) return outcome_;
    // what the system reads ahead for one thread is gone again before another asks for it
    expect_scattered_reads(r_.file, small || r_.once);
    const auto helpers =
        static_cast<size_t>(std::min<int64_t>(threads_, static_cast<int64_t>(cuts_.size()) - 1) - 1);
    auto crew = std::make_unique<std::vector<std::thread>>();
    crew->reserve(helpers);
    try {
      while (crew->size() < helpers) crew->emplace_back([this] { work(false); });
    } catch (const std::exception&) {
      // no more threads to be had: those there are do the work
    }
    work(true);
    if (is_orphan()) {
      static_cast<void>(crew.release());  // nobody to wait for, and no way to say so to std::thread
      outcome_.status = ReadStatus::interrupted;
      return outcome_;
    }
    for (std::thread& one : *crew) one.join();
    outcome_.bytes = bytes_.load();
    return outcome_;
  }

  // The most pages that are cheaper to read than to leave out: as many as `waste` allows.
  int64_t choose_bridge() const {
    if (r_.waste <= 1.0) return 0;
    std::array<int64_t, kBridges> skipped{};
    int64_t pages = 0, before = -1;
    for (int64_t i = 0; i < r_.count; ++i) {
      const int64_t number = r_.numbers[i];
      if (!is_row(number) || number == before) continue;
      pages += (start_of(number) + r_.item - 1) / kPage - start_of(number) / kPage + 1;
      if (number > before && before >= 0) {
        const int64_t between = pages_between(before, number);
        if (between < 0) --pages;
        const int width = between > 0 ? std::bit_width(static_cast<uint64_t>(between - 1)) : kBridges;
        if (width < kBridges) skipped[static_cast<size_t>(width)] += between;
      }
      before = number;
    }
    double allowed = (r_.waste - 1.0) * static_cast<double>(pages);
    int64_t bridge = 0;
    for (int width = 0; width < kBridges; ++width) {
      allowed -= static_cast<double>(skipped[static_cast<size_t>(width)]);
      if (allowed < 0) break;
      bridge = int64_t{1} << width;
    }
    return bridge;
  }

 private:
  // In a child that a poll has forked: it has no other thread of these, and one may hold the mutex.
  bool is_orphan() const { return forks() != born_; }

  int64_t place_of(int64_t i) const { return r_.places == nullptr ? i : r_.places[i]; }
  int64_t start_of(int64_t number) const { return r_.base + number * r_.stride; }
  int64_t span_of(int64_t first, int64_t last) const { return (last - first) * r_.stride + r_.item; }
  bool is_row(int64_t number) const { return number >= 0 && number < r_.extent; }
  bool is_place(int64_t place) const { return place >= 0 && place < r_.room; }

  // The whole pages between two rows.
  int64_t pages_between(int64_t before, int64_t after) const {
    return start_of(after) / kPage - (start_of(before) + r_.item - 1) / kPage - 1;
  }

  // The longest run from request `begin` on.
  Run run_at(int64_t begin, int64_t end) const {
    const int64_t first = r_.numbers[begin];
    int64_t place = place_of(begin);
    Run run{begin, begin + 1, first, first, r_.stride == r_.item, is_row(first) && is_place(place)};
    end = std::min(end, begin + kMostRequests);
    for (int64_t i = begin + 1; run.inside && i < end; ++i) {
      const int64_t number = r_.numbers[i], next = place_of(i);
      if (number < run.last || (is_row(number) && pages_between(run.last, number) > bridge_)) break;
      const bool straight = run.straight && number == run.last + 1 && next == place + 1;
      const bool fits = span_of(first, std::min(number, r_.extent)) <= (straight ? kLongestTransfer : span_);
      if (!fits && number != first) break;
      run.inside = is_row(number) && is_place(next);
      run.straight = straight;
      run.last = number;
      run.end = i + 1;
      place = next;
    }
    return run;
  }

  // Cuts the requests into tasks for so many threads; false when one of them cannot be met.
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
      if (++runs < kTaskRuns && bytes < kTaskBytes && i - cuts_.back() < kMostRequests && i < r_.count)
        continue;
      cuts_.push_back(i);
      bytes = runs = 0;
    }
    return true;
  }

  void work(bool polls) {
    std::unique_ptr<char[]> scratch;
    auto asked = std::chrono::steady_clock::now();
    for (;;) {
      const size_t task = next_.fetch_add(1, std::memory_order_relaxed);
      if (task + 1 >= cuts_.size() || stopped_.load(std::memory_order_relaxed)) return;
      for (int64_t i = cuts_[task]; i < cuts_[task + 1];) {
        const Run run = run_at(i, cuts_[task + 1]);
        i = run.end;
        if (!serve(run, scratch)) return;
      }
      if (!polls || poll_.ask == nullptr || std::chrono::steady_clock::now() - asked < kPollInterval)
        continue;
      const bool asked_to_stop = poll_.ask(poll_.context);
      if (is_orphan()) return;
      if (asked_to_stop) stop({ReadStatus::interrupted});
      asked = std::chrono::steady_clock::now();
    }
  }

  // Reads one run, and puts its rows where they belong.
  bool serve(const Run& run, std::unique_ptr<char[]>& scratch) {
    const int64_t place = place_of(run.begin), bytes = span_of(run.first, run.last);
    const bool single = run.first == run.last;
    const int64_t direct = single ? r_.item : run.straight ? bytes : 0;
    // looked at once more: the arrays may have changed since the run was found
    if (!run.inside || !is_place(place) || direct > (r_.room - place) * r_.item) return outside(run.begin);
    if (direct == 0 && scratch == nullptr) {
      scratch.reset(new (std::nothrow) char[static_cast<size_t>(span_)]);
      if (scratch == nullptr) return stop({ReadStatus::no_memory});
    }
    char* to = direct != 0 ? r_.out + place * r_.item : scratch.get();
    if (direct == 0 && bytes > span_) return outside(run.begin);
    if (!read(to, bytes, start_of(run.first))) return false;
    if (run.straight || (single && run.end == run.begin + 1)) return true;
    switch (r_.item) {
      case 1:
        return place_rows<1>(run, to, bytes);
      case 2:
        return place_rows<2>(run, to, bytes);
      case 4:
        return place_rows<4>(run, to, bytes);
      case 8:
        return place_rows<8>(run, to, bytes);
      case 16:
        return place_rows<16>(run, to, bytes);
      default:
        return place_rows<0>(run, to, bytes);
    }
  }

  bool read(char* to, int64_t bytes, int64_t offset) {
    const int64_t end = offset + bytes;
    while (offset < end) {
      int error = 0;
      const int64_t got = read_some(to, std::min(end - offset, int64_t{1} << 30), offset, error);
      if (got < 0) return stop({ReadStatus::failed, error, offset, end});
      if (got == 0) return stop({ReadStatus::truncated, 0, offset, end});
      to += got;
      offset += got;
    }
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return true;
  }

  int64_t read_some(char* to, int64_t bytes, int64_t offset, int& error) {
    if (once_.load(std::memory_order_relaxed)) {
      const int64_t got = read_once_at(r_.file, to, bytes, offset);
      if (got >= 0) return got;
      once_.store(false, std::memory_order_relaxed);  // this system or file system cannot
    }
    return read_at(r_.file, to, bytes, offset, error);
  }

  // Copies the rows of a run from where they were read; `kItem` is their size, 0 for any.
  template <int64_t kItem>
  bool place_rows(const Run& run, const char* from, int64_t bytes) {
    constexpr int64_t kAhead = 8;
    const int64_t item = kItem == 0 ? r_.item : kItem;
    for (int64_t i = run.begin; i < run.end; ++i) {
      const int64_t number = r_.numbers[i], place = place_of(i);
      if (number < run.first || number > run.last || span_of(run.first, number) > bytes || !is_place(place))
        return outside(i);
      if (i + kAhead < run.end) prefetch_row(place_of(i + kAhead));
      char* to = r_.out + place * item;
      const char* row = from + (number - run.first) * r_.stride;
      if (to != row) std::memcpy(to, row, static_cast<size_t>(item));
    }
    return true;
  }

  void prefetch_row(int64_t place) const {
    const auto offset = static_cast<uint64_t>(place) * static_cast<uint64_t>(r_.item);
    prefetch_run<true>(r_.out, static_cast<int64_t>(offset), std::min<int64_t>(r_.item, 8 * kCacheLine));
  }

  bool outside(int64_t request) { return stop({ReadStatus::outside, 0, request, 0}); }

  // Keeps the first reason to stop; returns false.
  bool stop(const ReadOutcome& reason) {
    const std::scoped_lock lock(mutex_);
    if (!stopped_.exchange(true)) {
      const int64_t runs = outcome_.runs;
      outcome_ = reason;
      outcome_.runs = runs;
    }
    return false;
  }

  const RowReads& r_;
  const Poll& poll_;
  const uint32_t born_ = forks();
  int threads_ = 1;
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
  const Poll nobody{};
  return reads.count == 0 || reads.item == 0 ? 0 : Reader(reads, nobody).choose_bridge();
}

}  // namespace gatherum
