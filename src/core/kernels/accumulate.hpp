// accumulate: applies the updates of one batch to accumulators that are kept between batches.
//
//   c = C[e]++;  S[e] = copies && c == 0 ? widen(U[p]) : fold(S[e], widen(U[p]))    accumulate, p in order
//   S[e] = widen(D[e])                                                              begin
//   out[e] = finish(S[e], C[e])                                                     finish
//
// e is the row-major index of an element of the data. S contains the accumulators, and C contains the numbers
// of updates. If `copies` is true, a destination starts from its first update, because the fold excludes the
// old value or does not depend on the order. If the fold does not depend on the order, S contains only the
// updates, `finish` folds D into them, and two sets of accumulators can be merged.
//
// The plan guarantees that the nest has the data strides of a C-contiguous array of the data's dtype. Cost:
// the updates are read once, and an accumulator and a count are read and written for each update. finish
// reads the accumulators and counts once.
#pragma once

#include "fold/exact/exact_sums.hpp"
#include "kernels/scatter_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Folds a block of adjacent elements into their accumulators.
template <class F>
class Accumulate {
 public:
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;

  Accumulate(const Accumulators& to, const FoldRule& fold_rule, int64_t block)
      : sums_(to.sums),
        counts_(to.counts),
        n_(block / kStoredBytes),
        copies_(F::copies_first(fold_rule.include_self)) {}

  // `offset` is the byte offset of the first element in the data.
  GATHERUM_INLINE void operator()(int64_t offset, const char* GATHERUM_RESTRICT updates) const {
    const int64_t e = offset / kStoredBytes, n = n_;
    int64_t i = 0;
    for (; i + kVectorSums <= n; i += kVectorSums) fold_vector(e + i, updates + i * kStoredBytes);
    for (; i < n; ++i) fold_item(e + i, updates + i * kStoredBytes);
  }

  // The same for a block of one element.
  GATHERUM_INLINE void item(int64_t offset, const char* update) const {
    fold_item(offset / kStoredBytes, update);
  }

  GATHERUM_INLINE void prefetch_at(int64_t offset) const {
    const auto e = static_cast<uintptr_t>(offset / kStoredBytes);
    prefetch_write(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(sums_) + e * sizeof(Sum)));
    prefetch_write(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(counts_) + e * 8));
  }

 private:
  static constexpr auto kStoredBytes = static_cast<int64_t>(sizeof(Stored));
  static constexpr auto kSumBytes = static_cast<int64_t>(sizeof(Sum));
  // The number of accumulators in a vector, as in FoldInto.
  static constexpr int64_t kVectorSums = std::max<int64_t>(2, 8 * kLanes / kSumBytes);

  GATHERUM_INLINE void fold_item(int64_t e, const char* GATHERUM_RESTRICT update) const {
    char* GATHERUM_RESTRICT sum = sums_ + e * kSumBytes;
    const Sum u = F::template widen<Branched>(load_value<Stored>(update));
    const bool first = counts_[e]++ == 0;
    const Sum v = copies_ && first ? u : F::fold(load_value<Sum>(sum), u);
    std::memcpy(sum, &v, sizeof v);
  }

  static GATHERUM_INLINE bool any_untouched(const int64_t* counts) {
    int64_t any = 0;
    for (int64_t l = 0; l < kVectorSums; ++l) any |= counts[l] - 1;  // negative only for 0
    return any < 0;
  }

  GATHERUM_INLINE void fold_vector(int64_t e, const char* GATHERUM_RESTRICT updates) const {
    char* GATHERUM_RESTRICT sums = sums_ + e * kSumBytes;
    int64_t* GATHERUM_RESTRICT counts = counts_ + e;
    if (copies_ && any_untouched(counts)) {
      for (int64_t l = 0; l < kVectorSums; ++l) fold_item(e + l, updates + l * kStoredBytes);
      return;
    }
    Sum folded[kVectorSums];
    for (int64_t l = 0; l < kVectorSums; ++l)
      folded[l] = F::template fold<Selected>(
          load_value<Sum>(sums + l * kSumBytes),
          F::template widen<Selected>(load_value<Stored>(updates + l * kStoredBytes)));
    std::memcpy(sums, folded, sizeof folded);
    for (int64_t l = 0; l < kVectorSums; ++l) ++counts[l];
  }

  char* const sums_;
  int64_t* const counts_;
  const int64_t n_;
  const bool copies_;
};

// Adds elements to exact sums, one by one.
template <class F>
  requires kIsExact<F>
class Accumulate<F> {
 public:
  using Stored = typename F::Stored;

  Accumulate(const Accumulators& to, const FoldRule&, int64_t block)
      : sums_(to.sums), counts_(to.counts), n_(block / kStoredBytes) {}

  GATHERUM_INLINE void operator()(int64_t offset, const char* updates) const {
    for (int64_t i = 0; i < n_; ++i) item(offset + i * kStoredBytes, updates + i * kStoredBytes);
  }

  GATHERUM_INLINE void item(int64_t offset, const char* update) const {
    const int64_t e = offset / kStoredBytes;
    char* const sum = sums_ + e * F::kBytes;
    if (counts_[e]++ == 0) std::memset(sum, 0, F::kBytes);
    F::State::add_term(sum, load_value<Stored>(update));
  }

  GATHERUM_INLINE void prefetch_at(int64_t offset) const {
    const auto e = static_cast<uintptr_t>(offset / kStoredBytes);
    prefetch_write(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(sums_) + e * F::kBytes));
    prefetch_write(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(counts_) + e * 8));
  }

 private:
  static constexpr auto kStoredBytes = static_cast<int64_t>(sizeof(Stored));

  char* const sums_;
  int64_t* const counts_;
  const int64_t n_;
};

// The fold of `none` on a block: the last update wins.
template <int W>
class AccumulateMoved {
 public:
  AccumulateMoved(const Accumulators& to, int64_t item, int64_t block)
      : sums_(to.sums), counts_(to.counts), item_(item), n_(block / item), set_{block} {}

  GATHERUM_INLINE void item(int64_t offset, const char* update) const {
    set_(sums_ + offset, update);
    ++counts_[offset / (W == 0 ? item_ : W)];
  }

  GATHERUM_INLINE void operator()(int64_t offset, const char* updates) const {
    set_(sums_ + offset, updates);
    int64_t* counts = counts_ + offset / item_;
    for (int64_t i = 0; i < n_; ++i) ++counts[i];
  }

  GATHERUM_INLINE void prefetch_at(int64_t offset) const {
    prefetch_write(
        reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(sums_) + static_cast<uintptr_t>(offset)));
  }

 private:
  char* const sums_;
  int64_t* const counts_;
  const int64_t item_, n_;
  const Set<W> set_;
};

// Applies the tiles of a batch in order. A kernel of scatter_tiles.
template <class Apply>
struct AccumulateTiles {
  const Nest& nest;
  const Operands& operands;
  const Apply& apply;

  // Only valid tuples have a destination to prefetch.
  void prefetch_tile(const Tile& tile) const {
    if (!nest.far) return;
    each_chosen(tile, [&](int j) {
      apply.prefetch_at(tile.base.data + j * nest.line_loop().data + tile.offsets[j]);
    });
    keep();
  }

  void move(const Tile& tile, const Tile&) const {
    const Apply fold = apply;  // a local copy that no store can change
    const char* updates = operands.moved;
    const ByteOffsets base = tile.base;
    const int64_t data_step = nest.line_loop().data, moved_step = nest.line_loop().moved;
    const int64_t* GATHERUM_RESTRICT offsets = tile.offsets;
    if (moves_items(nest))
      each_chosen(tile, [=](int64_t j) {
        fold.item(base.data + j * data_step + offsets[j], updates + base.moved + j * moved_step);
      });
    else
      each_chosen(tile, [&](int64_t j) {
        move_row({base.data + j * data_step + offsets[j], 0, base.moved + j * moved_step});
      });
  }

 private:
  GATHERUM_NOINLINE void move_row(const ByteOffsets& first) const {
    each_row_point(nest.rows(), nest.row_rank(), first,
                   [this](const ByteOffsets& p) { apply(p.data, operands.moved + p.moved); });
  }
};

// Initializes contiguous accumulators from the elements of the data.
template <class F>
void begin_sums(const char* GATHERUM_RESTRICT data, char* GATHERUM_RESTRICT sums, int64_t n) {
  using Sum = typename F::Sum;
  using Stored = typename F::Stored;
  for (int64_t e = 0; e < n; ++e) {
    const Sum v = F::template widen<Selected>(load_value<Stored>(data + e * int64_t{sizeof(Stored)}));
    std::memcpy(sums + e * int64_t{sizeof(Sum)}, &v, sizeof v);
  }
}

template <class F>
void finish_sums(const FinishCall& f, bool include_self) {
  using Sum = typename F::Sum;
  using Stored = typename F::Stored;
  const char* GATHERUM_RESTRICT sums = f.sums;
  const int64_t* GATHERUM_RESTRICT counts = f.counts;
  char* GATHERUM_RESTRICT out = f.out;
  const int64_t self = include_self ? 1 : 0;
  for (int64_t e = 0; e < f.n; ++e) {
    const int64_t count = counts[e];
    Sum sum = load_value<Sum>(sums + e * int64_t{sizeof(Sum)});
    Stored v;
    if constexpr (F::kAnyOrderOfFirsts) {
      const Stored old = load_value<Stored>(f.data + e * int64_t{sizeof(Stored)});
      const Sum self_sum = F::template widen<Selected>(old);
      if (count == 0) sum = self_sum;  // the caller need not have initialized it
      if (include_self) sum = F::template fold<Selected>(self_sum, sum);
      v = count == 0 ? old : F::template finish<Selected>(sum, count + self, true);
    } else {
      v = F::template finish<Selected>(sum, count + self, count != 0);
    }
    std::memcpy(out + e * int64_t{sizeof(Stored)}, &v, sizeof v);
  }
}

// Supports only folds that do not depend on the order, because the updates of the other accumulators follow
// the updates of these.
template <class F>
void merge_sums(const MergeCall& m) {
  using Sum = typename F::Sum;
  for (int64_t e = 0; e < m.n; ++e) {
    if (m.other_counts[e] == 0) continue;
    const Sum b = load_value<Sum>(m.other_sums + e * int64_t{sizeof(Sum)});
    const Sum v = m.to.counts[e] == 0 ? b : F::fold(load_value<Sum>(m.to.sums + e * int64_t{sizeof(Sum)}), b);
    std::memcpy(m.to.sums + e * int64_t{sizeof(Sum)}, &v, sizeof v);
    m.to.counts[e] += m.other_counts[e];
  }
}

// The same for exact sums, which need no begin_sums because they contain only the updates.
template <class F>
  requires kIsExact<F>
void finish_sums(const FinishCall& f, bool include_self) {
  using Stored = typename F::Stored;
  constexpr auto step = static_cast<int64_t>(sizeof(Stored));
  for (int64_t e = 0; e < f.n; ++e) {
    char state[F::kBytes];
    std::memcpy(state, f.sums + e * F::kBytes, sizeof state);
    const auto old = load_value<Stored>(f.data + e * step);
    const Stored v = f.counts[e] == 0 ? old : finish_exact<F>(state, f.counts[e], old, include_self);
    std::memcpy(f.out + e * step, &v, sizeof v);
  }
}

template <class F>
  requires kIsExact<F>
void merge_sums(const MergeCall& m) {
  for (int64_t e = 0; e < m.n; ++e) {
    if (m.other_counts[e] == 0) continue;
    char* const sum = m.to.sums + e * F::kBytes;
    if (m.to.counts[e] == 0) std::memset(sum, 0, F::kBytes);
    F::State::merge(sum, m.other_sums + e * F::kBytes);
    m.to.counts[e] += m.other_counts[e];
  }
}

}  // namespace gatherum::GATHERUM_LEVEL
