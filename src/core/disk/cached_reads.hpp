// Reads a few rows of an open file from the system's page cache, without waiting for the disk.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "disk/row_requests.hpp"
#include "platform/system.hpp"

namespace gatherum {

class CachedReads : RowRequests {
 public:
  static constexpr int64_t kMostRows = 256;

  explicit CachedReads(const RowReads& reads) : RowRequests(reads), out_(static_cast<char*>(reads.out)) {}

  // Reads at most kMostRows rows. Neighbouring requests for neighbouring rows share a read. Returns nothing
  // if a page is not in the page cache, or if the system cannot tell. Some rows may already have been read in
  // this case.
  std::optional<ReadOutcome> run() {
    for (int64_t i = 0; i < reads_.count;
         ++i) {  // copies, which other threads cannot change after the checks
      numbers_[as_size(i)] = reads_.numbers[i];
      positions_[as_size(i)] = position_of(i);
      if (!is_row(numbers_[as_size(i)]) || !is_position(positions_[as_size(i)]))
        return ReadOutcome{ReadStatus::outside, 0, i};
    }
    ReadOutcome outcome;
    for (int64_t i = 0; i < reads_.count; ++outcome.runs) {
      const int64_t contiguous = end_of_contiguous_run(i), end = std::max(contiguous, end_of_run(i));
      const int64_t bytes = span_of(numbers_[as_size(i)], numbers_[as_size(end - 1)]);
      if (!read(end == contiguous ? row_at(i) : page_.data(), bytes, i)) return {};
      for (int64_t k = i; end != contiguous && k < end; ++k)
        std::memcpy(row_at(k), page_.data() + (numbers_[as_size(k)] - numbers_[as_size(i)]) * reads_.stride,
                    static_cast<size_t>(reads_.item));
      outcome.bytes += bytes;
      i = end;
    }
    return outcome;
  }

 private:
  static size_t as_size(int64_t i) { return static_cast<size_t>(i); }
  char* row_at(int64_t i) const { return out_ + positions_[as_size(i)] * reads_.item; }

  // Returns the end of the run that begins at request `i`. Within a run, row numbers and positions both
  // increase by one from request to request.
  int64_t end_of_contiguous_run(int64_t i) const {
    int64_t end = i + 1;
    while (end < reads_.count && reads_.stride == reads_.item &&
           numbers_[as_size(end)] == numbers_[as_size(end - 1)] + 1 &&
           positions_[as_size(end)] == positions_[as_size(end - 1)] + 1)
      ++end;
    return end;
  }

  // Returns the end of the ascending requests from request `i` on whose rows fit in one page of memory.
  int64_t end_of_run(int64_t i) const {
    int64_t end = i + 1;
    while (end < reads_.count && numbers_[as_size(end)] >= numbers_[as_size(end - 1)] &&
           numbers_[as_size(end)] - numbers_[as_size(i)] <= kPage / reads_.stride &&
           span_of(numbers_[as_size(i)], numbers_[as_size(end)]) <= kPage)
      ++end;
    return end;
  }

  // Reads `bytes` bytes, beginning with the row of request `i`.
  bool read(char* to, int64_t bytes, int64_t i) const {
    for (int64_t bytes_read = 0; bytes_read < bytes;) {
      const int64_t got = read_cached_at(reads_.file, to + bytes_read, bytes - bytes_read,
                                         start_of(numbers_[as_size(i)]) + bytes_read);
      if (got <= 0) return false;
      bytes_read += got;
    }
    return true;
  }

  char* const out_;
  std::array<int64_t, kMostRows> numbers_, positions_;
  std::array<char, kPage> page_;
};

}  // namespace gatherum
