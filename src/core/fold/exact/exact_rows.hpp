// Exact sums of whole rows, on the stack. For fsum and fmean, the rows of a destination are added one after
// another.
//
//   window[e] += row[e]   for the items e of a part of the row, which finish rounds
//
// A part is small enough that the states of its items stay in the L1 cache. Windows of two words are stored
// as two arrays, so that a row whose terms are all within their windows is added in vectors. Guaranteed: the
// bits of a sum do not depend on whether its rows were added in vectors. Cost: as in exact_window.hpp, plus a
// state for each item whose terms do not fit in its window.
#pragma once

#include "fold/exact/exact_sums.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class F>
class ExactRow {
  using Window = typename F::Window;
  static constexpr int64_t kWords = F::kWindowBytes / 8;

 public:
  using Stored = typename F::Stored;
  static constexpr auto kItemBytes = static_cast<int64_t>(sizeof(Stored));
  static constexpr int64_t kPartItems =
      std::clamp<int64_t>((int64_t{32} << 10) / (F::kBytes + F::kWindowBytes), 1, kStackItems);

  explicit ExactRow(int64_t n) : n_(n) {
    if constexpr (kAddsTogether)
      for (int64_t w = 0; w < kWords; ++w) std::fill_n(words_ + w * kPartItems, n, 0);
    else
      std::fill_n(words_, n * kWords, 0);
  }

  GATHERUM_INLINE void add_row(const char* row) {
    if constexpr (kAddsTogether) {
      const bool begins = std::exchange(begins_, false);
      if (begins ? begin_row_together(row) : add_row_together(row)) return;
    }
    for (int64_t e = 0; e < n_; ++e) {
      Stored v;
      std::memcpy(&v, row + e * kItemBytes, sizeof v);
      with_window(e, [&](char* window) { Window::add_term(window, state(e), v); });
    }
  }

  // Writes means in float64. An item without terms has the mean 0.
  void finish_wide(double* means, const int64_t* counts) {
    for (int64_t e = 0; e < n_; ++e)
      with_window(
          e, [&](char* window) { means[e] = Window::finish_wide(window, state(e), F::divisor(counts[e])); });
  }

  // Writes the results of the items whose count is not 0.
  void finish(char* to, const int64_t* counts) {
    for (int64_t e = 0; e < n_; ++e)
      if (counts[e] != 0) finish_item(to, e, counts[e]);
  }
  void finish(char* to, int64_t count) {
    for (int64_t e = 0; e < n_; ++e) finish_item(to, e, count);
  }

 private:
  static constexpr bool kAddsTogether = kWords == 2;
  using Bits = std::conditional_t<sizeof(Stored) == 2, uint16_t, uint32_t>;

  char* state(int64_t e) { return states_ + e * F::kBytes; }

  GATHERUM_INLINE void finish_item(char* to, int64_t e, int64_t count) {
    with_window(e, [&](char* window) {
      const Stored v = Window::finish(window, state(e), F::divisor(count));
      std::memcpy(to + e * kItemBytes, &v, sizeof v);
    });
  }

  template <class Work>
  GATHERUM_INLINE void with_window(int64_t e, const Work& work) {
    if constexpr (kAddsTogether) {
      uint64_t window[2] = {words_[e], words_[kPartItems + e]};
      work(reinterpret_cast<char*>(window));
      words_[e] = window[0];
      words_[kPartItems + e] = window[1];
    } else {
      work(reinterpret_cast<char*>(words_ + e * kWords));
    }
  }

  // Adds the first row. Returns false, without adding any term, unless all terms are finite and nonzero.
  bool begin_row_together(const char* GATHERUM_RESTRICT row) {
    uint64_t firsts[kPartItems], sums[kPartItems], outside = 0;
    const int64_t n = n_;
    for (int64_t e = 0; e < n; ++e) {
      Bits bits;
      std::memcpy(&bits, row + e * kItemBytes, sizeof bits);
      outside |= Window::add_first(bits, firsts[e], sums[e]);
    }
    return commit(outside, firsts, sums);
  }

  // Adds a later row. Returns false, without adding any term, unless all terms are within their windows.
  bool add_row_together(const char* GATHERUM_RESTRICT row) {
    uint64_t sums[kPartItems], outside = 0;
    const uint64_t* GATHERUM_RESTRICT const firsts = words_;
    const uint64_t* GATHERUM_RESTRICT const olds = words_ + kPartItems;
    const int64_t n = n_;
    for (int64_t e = 0; e < n; ++e) {
      Bits bits;
      std::memcpy(&bits, row + e * kItemBytes, sizeof bits);
      outside |= Window::add_inside(bits, firsts[e], olds[e], sums[e]);
    }
    return commit(outside, words_, sums);
  }

  GATHERUM_INLINE bool commit(uint64_t outside, const uint64_t* firsts, const uint64_t* sums) {
    if (outside != 0) return false;
    if (firsts != words_) std::memcpy(words_, firsts, static_cast<size_t>(n_ * 8));
    std::memcpy(words_ + kPartItems, sums, static_cast<size_t>(n_ * 8));
    return true;
  }

  const int64_t n_;
  bool begins_ = true;
  alignas(64) uint64_t words_[kWords * kPartItems];
  alignas(64) char states_[kPartItems * F::kBytes];
};

}  // namespace gatherum::GATHERUM_LEVEL
