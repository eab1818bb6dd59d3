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

// Selects the items of a row. In place of a NaN, selects the item of the row before. Returns true if all
// selected items are numbers.
template <class V, class T>
GATHERUM_NOINLINE bool select_numbers(const char* GATHERUM_RESTRICT last,
                                      const char* GATHERUM_RESTRICT before, int64_t n,
                                      T* GATHERUM_RESTRICT selected) {
  using Word = std::conditional_t<sizeof(T) == 2, uint16_t, Bits<T>>;
  constexpr auto step = static_cast<int64_t>(sizeof(T));
  Word others = 0;
  for (int64_t e = 0; e < n; ++e) {
    const auto v = load_value<T>(last + e * step), w = load_value<T>(before + e * step);
    const T number =
        std::bit_cast<T>(select(is_number<V>(v), std::bit_cast<Word>(v), std::bit_cast<Word>(w)));
    selected[e] = number;
    others |= select(is_number<V>(number), Word{0}, Word{1});
  }
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
        updates_(operands.moved + lead_.moved),
        streams_(call.destinations > kStreamedBytes / std::max<int64_t>(nest_.block, 1)) {}

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

  // Copies the last update of each item that is not a NaN. Few items are NaN in the last two updates, so only
  // these items are read from the updates before.
  template <class V>
  int64_t copy_last_numbers(const Group& group, char* dst, const char* updates, int64_t remaining) const {
    using T = typename StoredAs<V>::Type;
    constexpr auto step = static_cast<int64_t>(sizeof(T)), part_bytes = kSelectedItems * step;
    const char* const last = updates + update_offset(nest_, unit_loops_, group[group.n - 1]);
    const char* const before =
        group.n > 1 ? updates + update_offset(nest_, unit_loops_, group[group.n - 2]) : last;
    T selected[kSelectedItems];
    MissingItems missing;
    bool has_nan = false;
    for (int64_t r = 0; r < remaining; r += part_bytes) {
      const int64_t bytes = std::min(part_bytes, remaining - r), n = bytes / step;
      if (r + kAheadInRow < remaining) {
        prefetch_bytes(last, r + kAheadInRow, bytes);
        if (has_nan) prefetch_bytes(before, r + kAheadInRow, bytes);
      }
      has_nan = !are_numbers<V>(last + r, n);
      if (has_nan && !select_numbers<V>(last + r, before + r, n, selected)) {
        if (missing.count > kMostMissing - kSelectedItems) copy_missing<V>(group, dst, updates, missing);
        list_missing<V>(dst, r, n, selected, missing);
      }
      const char* from = has_nan ? reinterpret_cast<const char*>(selected) : last + r;
      if (streams_)
        stream_bytes(dst + r, from, bytes);
      else
        copy_run(dst + r, from, bytes);
    }
    copy_missing<V>(group, dst, updates, missing);
    if (streams_) stream_fence();
    return remaining;
  }

 private:
  static constexpr int64_t kSelectedItems = 128, kMostMissing = 1024;
  static constexpr int64_t kAheadInRow = 1024;  // bytes by which prefetches run ahead in long rows
  static constexpr int64_t kStreamedBytes = 8 * kPrivateCacheBytes;  // of a result that does not fit in cache

  // The offsets in a row of the items that are NaN in the last two updates.
  struct MissingItems {
    int64_t offsets[kMostMissing];
    int64_t count = 0;
  };

  // Adds the NaN among the selected items of a part of a row, and replaces them by the old values.
  template <class V, class T>
  static void list_missing(const char* dst, int64_t part, int64_t n, T* selected, MissingItems& missing) {
    constexpr auto step = static_cast<int64_t>(sizeof(T)), line = kCacheLine / step;
    for (int64_t begin = 0; begin < n; begin += line) {
      const int64_t end = std::min(begin + line, n);
      if (are_numbers<V>(reinterpret_cast<const char*>(selected + begin), end - begin)) continue;
      for (int64_t e = begin; e < end; ++e) {
        if (is_number<V>(selected[e])) continue;
        missing.offsets[missing.count++] = part + e * step;
        selected[e] = load_value<T>(dst + part + e * step);
      }
    }
  }

  // Copies the missing items from the updates before the last two. There are no branches for single items, so
  // that several reads are in flight.
  template <class V>
  void copy_missing(const Group& group, char* dst, const char* updates, MissingItems& missing) const {
    using T = typename StoredAs<V>::Type;
    for (int64_t t = group.n - 2; t > 0 && missing.count > 0; --t) {
      const char* row = updates + update_offset(nest_, unit_loops_, group[t - 1]);
      int64_t still_missing = 0;
      for (int64_t k = 0; k < missing.count; ++k) {
        const int64_t offset = missing.offsets[k];
        const auto v = load_value<T>(row + offset), old = load_value<T>(dst + offset);
        const bool found = is_number<V>(v);
        const T result = found ? v : old;
        std::memcpy(dst + offset, &result, sizeof result);
        missing.offsets[still_missing] = offset;
        still_missing += found ? 0 : 1;
      }
      missing.count = still_missing;
    }
    missing.count = 0;
  }

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
  const bool streams_;  // copies of rows use streaming stores
};

}  // namespace gatherum::GATHERUM_LEVEL
