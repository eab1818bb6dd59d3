// Sums of rows, kept in registers from the first row to the last.
//
//   S[e] = canonical(row0[e] + row1[e] + ...), left to right;  D[e] = finish(S[e], count)
//
// A NaN stays a NaN, so one test at the end gives the same bits as a test at each step. The caller guarantees
// kBytes of every row. Cost: a load and an addition per vector of each row.
#pragma once

#include <utility>

#include "combine.hpp"
#include "indices.hpp"
#include "lanes.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The folds that add up values of float32 or float64, or halves as float32.
template <class F>
inline constexpr bool kSumsRows = false;
template <class F>
inline constexpr bool kSumsProducts = false;  // those whose weighted values need no rounding in between
#if GATHERUM_LANES > 1
template <class V, Reduction R>
  requires(R == Reduction::add || R == Reduction::mean)
inline constexpr bool kSumsRows<Fold<V, R>> = std::is_floating_point_v<V> || kIsHalf<V>;
template <class V, Reduction R>
  requires(R == Reduction::add || R == Reduction::mean)
inline constexpr bool kSumsProducts<Fold<V, R>> = std::is_floating_point_v<V>;
#endif

template <class F, int K>
class RowSums {
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;
  static constexpr int kEach = 64 / sizeof(Sum);  // a vector is a cache line
  using Values = typename Vector<Sum, kEach>::Type;

 public:
  // Of each row.
  static constexpr int64_t kBytes = int64_t{K} * kEach * sizeof(Stored);

  GATHERUM_INLINE void begin(const char* row) {
    each([&](Values& sum, int k) { sum = values(row, k); });
  }
  GATHERUM_INLINE void begin(const char* row, Sum weight) {
    each([&](Values& sum, int k) { sum = product(row, k, weight); });
  }
  GATHERUM_INLINE void add(const char* row) {
    each([&](Values& sum, int k) { sum += values(row, k); });
  }
  GATHERUM_INLINE void add(const char* row, Sum weight) {
    each([&](Values& sum, int k) { sum += product(row, k, weight); });
  }

  // `computed`: the sums are more than a copy of one row.
  GATHERUM_INLINE void finish(char* to, int64_t count, bool computed) const {
    Sum sums[K * kEach];
    std::memcpy(sums, sums_, sizeof sums);
    if (computed)
      for (Sum& v : sums) v = Selected::canonical(v);
    for (int e = 0; e < K * kEach; ++e) {
      const Stored v = F::template finish<Selected>(sums[e], count, true);
      std::memcpy(to + e * static_cast<int>(sizeof v), &v, sizeof v);
    }
  }

 private:
  template <class Work>
  GATHERUM_INLINE void each(const Work& work) {
    // A loop is unrolled too late for its sums to stay in registers.
    [&]<int... k>(std::integer_sequence<int, k...>) {
      (work(sums_[k], k), ...);
    }(std::make_integer_sequence<int, K>{});
  }

  static GATHERUM_INLINE Values values(const char* row, int k) {
    const char* at = row + int64_t{k} * kEach * static_cast<int64_t>(sizeof(Stored));
    if constexpr (std::is_same_v<Stored, Sum>) {
      return load_lanes<Values>(at);
    } else {
      using Words = typename Vector<uint32_t, kEach>::Type;
      const auto halves = load_lanes<typename Vector<Stored, kEach>::Type>(at);
      return widen_halves<typename F::Value, Values>(convert_lanes<Words>(halves));
    }
  }

  // To every lane; a sum with zero would lose the sign of -0.
  static GATHERUM_INLINE Values product(const char* row, int k, Sum weight) {
    return values(row, k) * (weight - Values{});
  }

  Values sums_[K];
};

}  // namespace gatherum::GATHERUM_LEVEL
