// scatter_grouped: a scatter whose updates are first sorted by destination, as in groups.hpp. Each
// destination then folds its updates, left to right, in registers, and is written once.
//
//   D[g] = finish(fold(... fold(fold(D[g], U[t0]), U[t1]) ...), count),   t0 < t1 < ... that hit g
//
// This kernel is for folds that cannot use the output as accumulators: half precision (rounded once at the
// end), mean (needs counts), and include_self=False (starts from the first update).
#pragma once

#include "fold/exact/exact_rows.hpp"
#include "fold/skip_nan.hpp"
#include "kernels/groups.hpp"
#include "kernels/row_sums.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Counts the items of a row that are not NaN, and copies the row with -0 instead of NaN, which changes no
// exact sum.
template <class V, class T>
GATHERUM_NOINLINE const char* copy_numbers(const char* GATHERUM_RESTRICT from, int64_t n,
                                           T* GATHERUM_RESTRICT to, int64_t* GATHERUM_RESTRICT counts) {
  using Word = std::conditional_t<sizeof(T) == 2, uint16_t, Bits<T>>;
  constexpr auto nothing = static_cast<Word>(BinaryFormatOf<V>::kSignBit);
  for (int64_t e = 0; e < n; ++e) {
    const auto v = load_value<T>(from + e * static_cast<int64_t>(sizeof(T)));
    const bool counted = is_number<V>(v);
    to[e] = std::bit_cast<T>(select(counted, std::bit_cast<Word>(v), nothing));
    counts[e] += counted ? 1 : 0;
  }
  return reinterpret_cast<const char*>(to);
}

// Returns true if no item of a row is a NaN.
template <class V>
GATHERUM_INLINE bool are_numbers(const char* row, int64_t n) {
  using T = typename StoredAs<V>::Type;
  std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t> others = 0;
  for (int64_t e = 0; e < n; ++e)
    others |= is_number<V>(load_value<T>(row + e * static_cast<int64_t>(sizeof(T)))) ? 0 : 1;
  return others == 0;
}

// Folds groups into their rows.
class FoldGroups : GroupRows {
 public:
  // Folds the next part of a row, of at most `remaining` bytes. Returns the bytes of the part.
  using FoldPart = int64_t (FoldGroups::*)(const Group&, char* dst, const char* updates,
                                           int64_t remaining) const;

  // `fold_part` is the function that folds one part of a row, for the reduction and value type of the call.
  FoldGroups(const GroupedScatter& call, const Operands& operands, int64_t unit, FoldPart fold_part)
      : GroupRows(call, unit),
        fold_part_(fold_part),
        data_(operands.data + lead_.data),
        updates_(operands.moved + lead_.moved) {}

  void operator()(int64_t destination, const Group& group) const {
    char* dst = data_ + offset_of(nest_, destination);
    each_row_point(nest_.rows(), nest_.row_rank(), ByteOffsets{}, [&](const ByteOffsets& p) {
      for (int64_t r = 0; r < nest_.block;)
        r += (this->*fold_part_)(group, dst + p.data + r, updates_ + p.moved + r, nest_.block - r);
    });
  }

  template <class F>
  int64_t fold_part(const Group& group, char* dst, const char* updates, int64_t remaining) const {
    if constexpr (kIsExact<F>)
      return fold_exactly<F>(group, dst, updates, remaining);
    else
      return fold_rounding<F>(group, dst, updates, remaining);
  }

  // The functions that skip NaN do not change an item of the row if all its updates are NaN.
  template <class F>
  int64_t fold_numbers(const Group& group, char* dst, const char* updates, int64_t remaining) const {
    using T = typename F::Stored;
    using Word = typename F::Word;
    constexpr auto step = static_cast<int64_t>(sizeof(T));
    const int64_t elements = std::min(kStackItems, remaining / step), bytes = elements * step;
    typename F::Sum sums[kStackItems];
    Word counts[kStackItems] = {};  // if the fold needs no counts, 1 for an item with numbers
    std::fill_n(sums, elements, F::neutral());
    for (int64_t t = 0; t < group.n; ++t) {
      const char* src = update(group, t, updates, bytes);
      for (int64_t e = 0; e < elements; ++e) {
        const auto v = load_value<T>(src + e * step);
        const Word number = is_number<typename F::Value>(v) ? 1 : 0;
        sums[e] = F::template fold<Selected>(sums[e], F::template number_of<Selected>(v));
        counts[e] = static_cast<Word>(F::kDivides ? counts[e] + number : counts[e] | number);
      }
    }
    using Stored = std::conditional_t<sizeof(T) == 2, uint16_t, Bits<T>>;
    for (int64_t e = 0; e < elements; ++e) {  // without branches, so that compilers vectorize it
      const T v = F::template finish<Selected>(sums[e], static_cast<int64_t>(counts[e]), true);
      const Stored result =
          select(counts[e] != 0, std::bit_cast<Stored>(v), load_value<Stored>(dst + e * step));
      std::memcpy(dst + e * step, &result, sizeof result);
    }
    return bytes;
  }

  template <class F>
  int64_t fold_exact_numbers(const Group& group, char* dst, const char* updates, int64_t remaining) const {
    constexpr int64_t most = ExactRow<F>::kPartItems, step = ExactRow<F>::kItemBytes;
    const int64_t n = std::min(most, remaining / step), bytes = n * step;
    ExactRow<F> sums(n);
    typename F::Stored row[most];
    int64_t counts[most] = {};
    for (int64_t t = 0; t < group.n; ++t)
      sums.add_row(copy_numbers<typename F::Value>(update(group, t, updates, bytes), n, row, counts));
    sums.finish(dst, counts);
    return bytes;
  }

  // Copies the last update of each item that is not a NaN. Reads updates from the last one on, until each
  // item has one.
  template <class V>
  int64_t copy_last_numbers(const Group& group, char* dst, const char* updates, int64_t remaining) const {
    using T = typename StoredAs<V>::Type;
    using Word = std::conditional_t<sizeof(T) == 2, uint16_t, Bits<T>>;
    constexpr auto step = static_cast<int64_t>(sizeof(T));
    const int64_t elements = std::min(kStackItems, remaining / step), bytes = elements * step;
    const char* const last = updates + update_offset(nest_, unit_loops_, group[group.n - 1]);
    if (are_numbers<V>(last, elements)) {
      copy_run(dst, last, bytes);
      return bytes;
    }
    Word numbers[kStackItems] = {}, found[kStackItems] = {};
    int64_t missing = elements;
    for (int64_t t = group.n; t > 0 && missing > 0; --t) {
      const char* src = updates + update_offset(nest_, unit_loops_, group[t - 1]);
      missing = 0;
      for (int64_t e = 0; e < elements; ++e) {
        const auto v = load_value<T>(src + e * step);
        const Word number = is_number<V>(v) ? 1 : 0;
        numbers[e] = select(found[e] == 0, std::bit_cast<Word>(v), numbers[e]);
        found[e] = static_cast<Word>(found[e] | number);
        missing += 1 - static_cast<int64_t>(found[e]);
      }
    }
    for (int64_t e = 0; e < elements; ++e)
      if (found[e] != 0) std::memcpy(dst + e * step, &numbers[e], sizeof numbers[e]);
    return bytes;
  }

 private:
  template <class F>
  int64_t fold_exactly(const Group& group, char* dst, const char* updates, int64_t remaining) const {
    const int64_t n = std::min(ExactRow<F>::kPartItems, remaining / ExactRow<F>::kItemBytes),
                  bytes = n * ExactRow<F>::kItemBytes;
    ExactRow<F> sums(n);
    for (int64_t t = 0; t < group.n; ++t) sums.add_row(update(group, t, updates, bytes));
    // The old value is added last, because it is often zero, and a zero does not determine the base of the
    // window.
    if (include_self_) sums.add_row(dst);
    sums.finish(dst, group.n + (include_self_ ? 1 : 0));
    return bytes;
  }

  template <class F>
  int64_t fold_rounding(const Group& group, char* dst, const char* updates, int64_t remaining) const {
    constexpr int64_t whole = kStackItems * static_cast<int64_t>(sizeof(typename F::Stored));
    if constexpr (kSumsRows<F>) {
      if (remaining >= whole && group.n > kLongGroup) return fold_on_stack<F>(group, dst, updates, remaining);
      if (remaining >= RowSums<F, 4>::kBytes) return fold_in_registers<F, 4>(group, dst, updates);
      if (remaining >= RowSums<F, 1>::kBytes) return fold_in_registers<F, 1>(group, dst, updates);
    }
    return fold_on_stack<F>(group, dst, updates, remaining);
  }

  template <class F, int K>
  int64_t fold_in_registers(const Group& group, char* dst, const char* updates) const {
    constexpr int64_t bytes = RowSums<F, K>::kBytes;
    RowSums<F, K> sums;
    int64_t t = 0;
    sums.begin(include_self_ ? dst : update(group, t++, updates, bytes));
    for (; t < group.n; ++t) sums.add(update(group, t, updates, bytes));
    // A single update is copied unchanged.
    sums.finish(dst, group.n + (include_self_ ? 1 : 0), include_self_ || group.n > 1);
    return bytes;
  }

  template <class F>
  int64_t fold_on_stack(const Group& group, char* dst, const char* updates, int64_t remaining) const {
    using T = typename F::Stored;
    constexpr auto step = static_cast<int64_t>(sizeof(T));
    const int64_t elements = std::min(kStackItems, remaining / step), bytes = elements * step;
    int64_t t = 0;
    const char* first = include_self_ ? dst : update(group, t++, updates, bytes);
    typename F::Sum sums[kStackItems];
    for (int64_t e = 0; e < elements; ++e)
      sums[e] = F::template widen<Selected>(load_value<T>(first + e * step));
    for (; t < group.n; ++t) {
      const char* src = update(group, t, updates, bytes);
      for (int64_t e = 0; e < elements; ++e)
        sums[e] =
            F::template fold<Selected>(sums[e], F::template widen<Selected>(load_value<T>(src + e * step)));
    }
    for (int64_t e = 0; e < elements; ++e) {
      const T v = F::template finish<Selected>(sums[e], group.n + (include_self_ ? 1 : 0), true);
      std::memcpy(dst + e * step, &v, sizeof v);
    }
    return bytes;
  }

  // In longer groups, long rows have left the cache when their next part is read. The longer part, on the
  // stack, is then faster (400 rows of 768 bfloat16: 22 ms -> 15).
  static constexpr int64_t kLongGroup = 32;

  const FoldPart fold_part_;
  char* const data_;
  const char* const updates_;
};

}  // namespace gatherum::GATHERUM_LEVEL
