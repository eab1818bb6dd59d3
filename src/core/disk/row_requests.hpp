// Requests for rows of a file: the positions of the rows, and the largest gap between rows that is read and
// not skipped.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "disk/page_reads.hpp"
#include "disk/row_reads.hpp"

namespace gatherum {

class RowRequests {
 public:
  explicit RowRequests(const RowReads& reads) : reads_(reads) {}

  int64_t position_of(int64_t i) const { return reads_.positions == nullptr ? i : reads_.positions[i]; }
  int64_t start_of(int64_t number) const { return reads_.base + number * reads_.stride; }
  int64_t span_of(int64_t first, int64_t last) const { return (last - first) * reads_.stride + reads_.item; }
  int64_t first_page(int64_t number) const { return start_of(number) / kPage; }
  int64_t last_page(int64_t number) const { return (start_of(number) + reads_.item - 1) / kPage; }
  bool is_row(int64_t number) const { return number >= 0 && number < reads_.extent; }
  bool is_position(int64_t position) const { return position >= 0 && position < reads_.capacity; }

  // The number of whole pages between two rows.
  int64_t pages_between(int64_t before, int64_t after) const {
    return first_page(after) - last_page(before) - 1;
  }

  // Returns the largest gap in pages that is cheaper to read than to skip. `waste` limits it.
  int64_t choose_bridge() const {
    if (reads_.waste <= 1.0) return 0;
    if (may_read_all_pages()) return std::numeric_limits<int64_t>::max();
    std::array<int64_t, kBridgeWidths> skipped{};
    int64_t pages = 0, before = -1;
    for (int64_t i = 0; i < reads_.count; ++i) {
      const int64_t number = reads_.numbers[i];
      if (!is_row(number) || number == before) continue;
      pages += last_page(number) - first_page(number) + 1;
      if (number > before && before >= 0) {
        const int64_t between = pages_between(before, number);
        if (between < 0) --pages;
        const int width = between > 0 ? std::bit_width(static_cast<uint64_t>(between - 1)) : kBridgeWidths;
        if (width < kBridgeWidths) skipped[static_cast<size_t>(width)] += between;
      }
      before = number;
    }
    double allowed = (reads_.waste - 1.0) * static_cast<double>(pages);
    int64_t bridge = 0;
    for (int width = 0; width < kBridgeWidths; ++width) {
      allowed -= static_cast<double>(skipped[static_cast<size_t>(width)]);
      if (allowed < 0) break;
      bridge = int64_t{1} << width;
    }
    return bridge;
  }

  // Returns true if `waste` allows reading every page, given the number of pages that unsorted requests need.
  bool may_read_all_pages() const {
    if (reads_.waste <= 1.0 || reads_.stride > kPage) return false;
    if (reads_.extent == 0 || all_pages() / 4 > reads_.count) return false;  // a row is in two pages at most
    if (std::is_sorted(reads_.numbers, reads_.numbers + reads_.count)) return false;
    // a sample of a few requests per page is usually enough; pages that are not requested are never counted
    const int64_t step = std::max<int64_t>(1, reads_.count / (kSampledPerPage * all_pages()));
    return needs_most_pages(step) || (step > 1 && needs_most_pages(1));
  }

 protected:
  const RowReads& reads_;

 private:
  static constexpr int kBridgeWidths = 9;        // gaps of up to 1, 2, 4, ... 256 pages
  static constexpr int64_t kSampledPerPage = 8;  // requests per page that are sampled

  // The number of pages from the first row to the last.
  int64_t all_pages() const { return last_page(reads_.extent - 1) - first_page(0) + 1; }

  // Returns true if every `step`-th request by itself justifies reading all pages.
  bool needs_most_pages(int64_t step) const {
    const int64_t before = first_page(0);
    std::vector<char> wanted(static_cast<size_t>(all_pages()));
    for (int64_t i = 0; i < reads_.count; i += step) {
      const int64_t number = reads_.numbers[i];
      if (!is_row(number)) return false;
      wanted[static_cast<size_t>(first_page(number) - before)] = 1;
      wanted[static_cast<size_t>(last_page(number) - before)] = 1;
    }
    const auto pages = static_cast<double>(std::count(wanted.begin(), wanted.end(), 1));
    return static_cast<double>(wanted.size()) <= reads_.waste * pages;
  }
};

}  // namespace gatherum
