// scatter_extremes: argmax/argmin together with the maximum or minimum. The updates are first sorted by
// destination, as in groups.hpp. Each destination then reads its updates in one pass.
//
//   R[g] = extreme(D[g], U[t0], U[t1], ...),   t0 < t1 < ... that hit g
//   P[g] = the first t with U[t] equal to R[g]; none if D[g] is equal to it, or if nothing hits g
//
// Zeros of either sign are equal, and all NaN are equal. If the call skips NaN, updates that are NaN are not
// folded, and R is not written. D is used only if the fold includes it. The plan
// guarantees the same as in groups.hpp. R, which initially contains D, and P are contiguous and
// have the same shape. Cost: each row of updates is read once, with a comparison and two selections per
// vector.
#pragma once

#include "fold/order_keys.hpp"
#include "kernels/groups.hpp"

namespace gatherum::GATHERUM_LEVEL {

class GroupExtremes : GroupRows {
 public:
  using GroupRows::RowPart;
  using FindPart = void (GroupExtremes::*)(const Group&, const RowPart&) const;

  // `part` is the function that processes one part of a row, for the fold of the call.
  GroupExtremes(const GroupedScatter& call, const Extremes& extremes, int64_t unit, FindPart find_part)
      : GroupRows(call, unit), extremes_(extremes), find_part_(find_part) {}

  void operator()(int64_t destination, const Group& group) const {
    each_part(destination, [&](const RowPart& row) { (this->*find_part_)(group, row); });
  }

  // For rows of at most kCapacity items. `Number` is a type whose greatest value exceeds all update numbers.
  template <class F, int64_t kCapacity, class Number, bool kSkips = false>
  void find_part(const Group& group, const RowPart& row) const {
    using Keys = OrderKeys<F>;
    using Key = typename Keys::Key;
    using T = typename F::Stored;
    constexpr auto step = static_cast<int64_t>(sizeof(T));
    constexpr auto none = std::numeric_limits<Number>::max();
    const int64_t n = kCapacity == 1 ? 1 : row.elements, bytes = n * step;
    char* const result = extremes_.result == nullptr ? nullptr : extremes_.result + row.data;
    Key best[kCapacity];
    Number winners[kCapacity];
    int64_t i = include_self_ ? 0 : 1;
    const char* const updates = extremes_.updates + row.moved;
    const char* const first = include_self_ ? result : update(group, 0, updates, bytes);
    const auto begin = include_self_ ? none : static_cast<Number>(group[0]);
    if constexpr (kSkips) {
      i = 0;
      std::fill_n(best, n, Keys::kNone);
      std::fill_n(winners, n, none);
    } else {
      for (int64_t e = 0; e < n; ++e) best[e] = Keys::key_of(load_value<T>(first + e * step));
      std::fill_n(winners, n, begin);
    }
    for (; i < group.n; ++i) {
      const char* const from = update(group, i, updates, bytes);
      take<F, kSkips>(from, static_cast<Number>(group[i]), n, best, winners);
    }
    if (result != nullptr && (include_self_ || group.n > 1)) {
      for (int64_t e = 0; e < n; ++e) {
        const T v = Keys::value_of(best[e]);
        std::memcpy(result + e * step, &v, sizeof v);
      }
    } else if (result != nullptr) {
      copy_run(result, first, bytes);  // a single update is copied unchanged
    }
    int64_t* GATHERUM_RESTRICT const to = extremes_.positions + row.data / step;
    const int64_t nowhere = extremes_.none;
    for (int64_t e = 0; e < n; ++e) {
      const int64_t number = static_cast<int64_t>(winners[e]);
      to[e] = winners[e] == none ? nowhere : number;
    }
  }

 private:
  // Folds the row of one update, with the update's number. Uses no branches, so that compilers vectorize it.
  template <class F, bool kSkips, class Key, class Number>
  static GATHERUM_NOINLINE void take(const char* GATHERUM_RESTRICT from, Number number, int64_t n,
                                     Key* GATHERUM_RESTRICT best, Number* GATHERUM_RESTRICT winners) {
    using Keys = OrderKeys<F>;
    using T = typename F::Stored;
    for (int64_t e = 0; e < n; ++e) {
      const auto v = load_value<T>(from + e * static_cast<int64_t>(sizeof(T)));
      const Key key = key_of<F, kSkips>(v), old = best[e];
      winners[e] = Keys::key_of_equals(key) > Keys::key_of_equals(old) ? number : winners[e];
      best[e] = key > old ? key : old;
    }
  }

  // Returns the key of a value. If NaN are skipped, their key is the least key, which no number has.
  template <class F, bool kSkips>
  static GATHERUM_INLINE auto key_of(typename F::Stored v) {
    const auto key = OrderKeys<F>::key_of(v);
    if constexpr (kSkips)
      return is_number<typename F::Value>(v) ? key : OrderKeys<F>::kNone;
    else
      return key;
  }

  const Extremes& extremes_;
  const FindPart find_part_;
};

}  // namespace gatherum::GATHERUM_LEVEL
