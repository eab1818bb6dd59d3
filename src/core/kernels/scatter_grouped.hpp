// scatter_grouped: a scatter whose updates are first sorted by destination, unit by unit, with a stable sort.
// Each destination then folds its updates, left to right, in registers, and is written once.
//
//   D[g] = finish(fold(... fold(fold(D[g], U[t0]), U[t1]) ...), count),   t0 < t1 < ... that hit g
//
// Groups are independent of each other; if there is only one unit, threads share its groups. This kernel is
// for folds that cannot use the output as accumulators: half precision (rounded once at the end), mean (needs
// counts), and include_self=False (starts from the first update). The plan guarantees that inside a unit only
// the row loops move the data. Scratch: at most 40 bytes per update.
#pragma once

#include <algorithm>

#include "fold/exact/exact_rows.hpp"
#include "fold/skip_nan.hpp"
#include "kernels/row_sums.hpp"
#include "kernels/scatter_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

struct NumberedUpdate {
  int64_t destination, update;
  bool operator<(const NumberedUpdate& o) const {
    return destination != o.destination ? destination < o.destination : update < o.update;
  }
};

// The range of one unit.
inline Range unit_range(const GroupedScatter& call, int64_t unit) {
  return {call.numbering->line_loop().extent, unit, unit + 1};
}

// Returns the byte offset in the data of the destination with this number.
GATHERUM_NOINLINE inline int64_t offset_of(const Nest& nest, int64_t number) {
  int64_t offset = 0;
  for (int c = nest.components - 1; c >= 0; --c) {
    offset += number % nest.component[c].size * nest.component[c].stride;
    number /= nest.component[c].size;
  }
  return offset;
}

GATHERUM_NOINLINE inline int64_t offset_in_loops(const Nest& nest, int unit_loops, int64_t t) {
  int64_t offset = 0;
  for (int i = nest.line; i >= unit_loops; --i) {
    offset += t % nest.loops[i].extent * nest.loops[i].moved;
    t /= nest.loops[i].extent;
  }
  return offset;
}

// Returns the byte offset of the t-th update of a unit. Most units are one line; they need no division.
GATHERUM_INLINE int64_t update_offset(const Nest& nest, int unit_loops, int64_t t) {
  return unit_loops == nest.line ? t * nest.line_loop().moved : offset_in_loops(nest, unit_loops, t);
}

// The numbers of one destination's updates, in order. Each is stored in 32 bits or in a NumberedUpdate.
struct Group {
  const char* first;
  int64_t step;
  int64_t n;
  int64_t before, next;  // how many updates the groups before and after this one have

  int64_t operator[](int64_t i) const {
    const char* address = first + i * step;
    return step == int64_t{sizeof(NumberedUpdate)} ? load_value<int64_t>(address)
                                                   : load_value<uint32_t>(address);
  }
};

// Processes the rows of groups in parts, so that the accumulators of a part fit on the stack.
class GroupRows {
 public:
  // The start of a part: `data` in arrays with the output's layout, `moved` in arrays with the updates'
  // layout.
  struct RowPart {
    int64_t data, moved, elements;
  };

 protected:
  GroupRows(const GroupedScatter& call, int64_t unit)
      : nest_(*call.nest),
        unit_loops_(call.unit_loops),
        include_self_(call.combine.include_self),
        prefetches_(call.prefetches),
        lead_(Odometer(nest_.loops, unit_loops_, unit).offsets()) {}

  // Calls `part(RowPart)` for the parts of a destination's row.
  template <class Part>
  void each_part(int64_t destination, const Part& part) const {
    const int64_t item = nest_.item, step = kStackItems * item,
                  data = lead_.data + offset_of(nest_, destination);
    each_row_point(nest_.rows(), nest_.row_rank(), ByteOffsets{}, [&](const ByteOffsets& p) {
      for (int64_t r = 0; r < nest_.block; r += step)
        part({data + p.data + r, lead_.moved + p.moved + r, std::min(kStackItems, (nest_.block - r) / item)});
    });
  }

  // Returns the t-th update of a group. The accesses are at random positions, so `bytes` bytes of the next
  // few updates are prefetched.
  GATHERUM_INLINE const char* update(const Group& group, int64_t t, const char* updates,
                                     int64_t bytes) const {
    if (prefetches_)
      each_of_burst(group.before + t, group.before + group.n + group.next, [&](int64_t k) {
        prefetch_bytes<FetchTo::second>(updates, update_offset(nest_, unit_loops_, group[k - group.before]),
                                        bytes);
      });
    return updates + update_offset(nest_, unit_loops_, group[t]);
  }

  const Nest& nest_;
  const int unit_loops_;
  const bool include_self_, prefetches_;
  const ByteOffsets lead_;
};

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

// Selects the items of a row, or of the row before it where they are NaN. Returns true if all selected items
// are numbers.
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

inline int64_t grouped_bytes(const GroupedScatter& call) {
  if (call.counted) return (call.pieces * call.destinations + 2 * call.updates) * 4;
  return times(call.updates, sizeof(NumberedUpdate));
}

// A share of the sorted updates: the groups that begin in [begin, end).
struct Positions {
  int64_t begin, end;
};

// Updates ordered by a counting sort (order_edges()). Scratch: 4 bytes per destination and piece, for the
// position of the next update (at the end, the position after the last update), and 8 bytes per update, for
// its destination and its number in the new order.
class CountedGroups {
 public:
  CountedGroups(const GroupedScatter& call, char* scratch)
      : call_(call),
        ends_(reinterpret_cast<uint32_t*>(scratch) + (call.pieces - 1) * call.destinations),
        order_(ends_ + call.destinations + call.updates) {}

  template <class Visit>
  void each(const Positions& share, int64_t kept, const Visit& visit) const {
    int64_t d = 0, begin = 0;
    if (share.begin > 0) {
      d = std::lower_bound(ends_, ends_ + call_.destinations, share.begin) - ends_ + 1;
      begin = ends_[d - 1];
    }
    for (; begin < share.end; begin = ends_[d++])
      if (ends_[d] != begin) visit(d, group_of(begin, ends_[d], kept));
  }

 private:
  Group group_of(int64_t begin, int64_t end, int64_t kept) const {
    return {reinterpret_cast<const char*>(order_ + begin), sizeof *order_, end - begin, begin, kept - end};
  }

  const GroupedScatter& call_;
  uint32_t* const ends_;  // the ends of destinations in `order_`, from the last piece
  uint32_t* const order_;
};

// Updates sorted by comparison, for very many destinations. Scratch: 16 bytes per update.
class SortedGroups {
 public:
  SortedGroups(const GroupedScatter& call, char* scratch)
      : call_(call), sorted_(reinterpret_cast<NumberedUpdate*>(scratch)) {}

  int64_t sort(const char* index, int64_t unit) const {
    int64_t t = 0, kept = 0;
    for (TileIterator tiles(*call_.numbering, call_.unit_loops, unit_range(call_, unit), index);
         !tiles.done(); tiles.next()) {
      const Tile& b = tiles.current();
      for (int j = 0; j < b.n; ++j, ++t)
        if (b.offsets[j] != kInvalid) sorted_[kept++] = {b.offsets[j], t};
    }
    std::sort(sorted_, sorted_ + kept);
    return kept;
  }

  template <class Visit>
  void each(const Positions& share, int64_t kept, const Visit& visit) const {
    const auto goes_on = [this](int64_t i) { return sorted_[i].destination == sorted_[i - 1].destination; };
    int64_t begin = share.begin;
    while (begin > 0 && begin < share.end && goes_on(begin)) ++begin;
    for (int64_t end = begin; begin < share.end; begin = end) {
      do ++end;
      while (end < kept && goes_on(end));
      visit(sorted_[begin].destination, group_of(begin, end, kept));
    }
  }

 private:
  Group group_of(int64_t begin, int64_t end, int64_t kept) const {
    return {reinterpret_cast<const char*>(&sorted_[begin].update), sizeof *sorted_, end - begin, begin,
            kept - end};
  }

  const GroupedScatter& call_;
  NumberedUpdate* const sorted_;
};

// Calls `visit(destination, group)` for every group of a share.
template <class Visit>
void each_group(const GroupedScatter& call, const GroupShare& s, const Visit& visit) {
  const Positions positions{s.kept_updates * s.share / s.shares, s.kept_updates * (s.share + 1) / s.shares};
  if (call.counted)
    CountedGroups(call, s.scratch).each(positions, s.kept_updates, visit);
  else
    SortedGroups(call, s.scratch).each(positions, s.kept_updates, visit);
}

}  // namespace gatherum::GATHERUM_LEVEL
