// group_spreads: the squared distances of rows from the exact mean of their destination, for variances. The
// updates are first sorted by destination, as in groups.hpp. Each destination then reads its
// updates twice.
//
//   m[i] = (U[t0] + U[t1] + ...) / C[i],  exact, rounded once to float64,   t0 < t1 < ... that hit i
//   S[i] = (U[t0] - m[i])^2 + (U[t1] - m[i])^2 + ...,  a left fold in float64
//
// C[i] is the number of updates. If the call skips NaN, updates that are NaN are neither counted nor folded.
// If S is null, only C is written. S and C are contiguous, and contain zeros at first. Cost: each part of a
// row is read twice in quick succession, so it is in cache the second time.
#pragma once

#include "fold/exact/exact_rows.hpp"
#include "kernels/scatter_grouped.hpp"

namespace gatherum::GATHERUM_LEVEL {

class GroupSpreads : GroupRows {
 public:
  using GroupRows::RowPart;
  using SpreadPart = void (GroupSpreads::*)(const Group&, const RowPart&) const;

  // `part` is the function that processes one part of a row, for the value type of the call.
  GroupSpreads(const GroupedScatter& call, const Operands& operands, const Spreads& to, int64_t unit,
               SpreadPart spread_part)
      : GroupRows(call, unit),
        skips_(call.fold_rule.skips_nan),
        updates_(operands.moved),
        to_(to),
        spread_part_(spread_part) {}

  void operator()(int64_t destination, const Group& group) const {
    each_part(destination, [&](const RowPart& row) { (this->*spread_part_)(group, row); });
  }

  template <class V>
  void spread_part(const Group& group, const RowPart& row) const {
    using T = typename StoredAs<V>::Type;
    constexpr int64_t most = ExactRow<Fold<V, Reduction::fmean>>::kPartItems, step = sizeof(T);
    if (to_.squares == nullptr) return count_numbers<V>(group, row);
    for (int64_t e = 0; e < row.elements; e += most)
      spread_narrow_part<V>(group,
                            {row.data + e * step, row.moved + e * step, std::min(most, row.elements - e)});
  }

 private:
  template <class V>
  void spread_narrow_part(const Group& group, const RowPart& row) const {
    using F = Fold<V, Reduction::fmean>;
    using T = typename F::Stored;
    using Widened = Arithmetic<V, std::conditional_t<kIsHalf<V>, float, double>>;
    constexpr auto step = static_cast<int64_t>(sizeof(T));
    const int64_t n = row.elements, bytes = n * step;
    const char* const updates = updates_ + row.moved;
    int64_t* GATHERUM_RESTRICT const counts = to_.counts + row.data / step;
    double means[kStackItems], sums[kStackItems] = {};
    {
      ExactRow<F> exact(n);
      T numbers[kStackItems];
      for (int64_t t = 0; t < group.n; ++t) {
        const char* from = update(group, t, updates, bytes);
        if (skips_) from = copy_numbers<V>(from, n, numbers, counts);
        exact.add_row(from);
      }
      if (!skips_) std::fill_n(counts, n, group.n);
      exact.finish_wide(means, counts);
    }
    const bool skips = skips_;
    for (int64_t t = 0; t < group.n; ++t) {
      const char* GATHERUM_RESTRICT const from = update(group, t, updates, bytes);
      for (int64_t e = 0; e < n; ++e) {
        const auto v = load_value<T>(from + e * step);
        const double distance = double{Widened::template widen<Selected>(v)} - means[e];
        const auto square = std::bit_cast<uint64_t>(distance * distance);
        sums[e] += std::bit_cast<double>(select(!skips || is_number<V>(v), square, uint64_t{0}));
      }
    }
    std::memcpy(to_.squares + row.data / step, sums, static_cast<size_t>(n) * sizeof(double));
  }

  // Only counts the updates that are not NaN.
  template <class V>
  void count_numbers(const Group& group, const RowPart& row) const {
    using T = typename StoredAs<V>::Type;
    using Count = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    constexpr auto step = static_cast<int64_t>(sizeof(T));
    const int64_t n = row.elements, bytes = n * step;
    Count numbers[kStackItems] = {};
    for (int64_t t = 0; t < group.n; ++t) {
      const char* GATHERUM_RESTRICT const from = update(group, t, updates_ + row.moved, bytes);
      for (int64_t e = 0; e < n; ++e) numbers[e] += is_number<V>(load_value<T>(from + e * step)) ? 1 : 0;
    }
    int64_t* GATHERUM_RESTRICT const counts = to_.counts + row.data / step;
    for (int64_t e = 0; e < n; ++e) counts[e] = static_cast<int64_t>(numbers[e]);
  }

  const bool skips_;
  const char* const updates_;
  const Spreads to_;
  const SpreadPart spread_part_;
};

}  // namespace gatherum::GATHERUM_LEVEL
