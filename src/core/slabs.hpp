// Accumulators for a stretch of destinations, in cache: read in, folded into, and written out once.
//
//   slab[(i - first) * columns + j] = widen(D[i * step + j * column_step])       read
//   slab[...] = fold(slab[...], widen(update)), counting where the fold needs it  take
//   D[...] = finish(slab[...], count)                                             write
//
// The data is read from `from` and written to `to`: for a functional scatter these are the data and
// the output, so the output needs no copy made beforehand. Cost: two passes over the destinations.
#pragma once

#include "scatter_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

// What `none` does, as a fold of W-byte items: the last update wins.
template <int W>
struct Replace {
  using Stored = Item<W>;
  using Sum = Item<W>;
  template <class>
  static Sum widen(Stored v) {
    return v;
  }
  template <class>
  static Stored narrow(Sum v) {
    return v;
  }
  static Sum fold(Sum, Sum b) { return b; }
  template <class>
  static Stored finish(Sum a, int64_t, bool) {
    return a;
  }
};

// Where the destinations of a slab lie.
struct Stretch {
  const char* from;
  char* to;
  int64_t step, column_step;  // bytes from one destination, and from one column, to the next
  int64_t count, columns;
};

template <class F, bool Counted>
class Slab {
 public:
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;

  static int64_t bytes(int64_t slots) {
    return slots * static_cast<int64_t>(sizeof(Sum) + (Counted ? sizeof(int64_t) : 0));
  }

  // `direct`: where the output can serve as the slab itself, it does.
  Slab(char* scratch, const Stretch& s, bool include_self, bool direct)
      : stretch_(s), start_(include_self ? 1 : 0) {
    const int64_t slots = s.count * s.columns;
    if (direct && kPlain && s.columns == 1 && s.step == kPacked) scratch = s.to;
    // Counters first: they want the stricter alignment.
    counts_ = reinterpret_cast<int64_t*>(scratch);
    sums_ = scratch + (Counted ? slots * static_cast<int64_t>(sizeof(int64_t)) : 0);
  }

  GATHERUM_NOINLINE void read() {
    each_run(0, stretch_.count, [this](int64_t slot, int64_t offset, int64_t n, auto stride) {
      const char* from = stretch_.from + offset;
      if (kIsPacked<decltype(stride)> && stretch_.columns > 1)
        prefetch_run(from, kRowsOn * stretch_.step, n * kPacked);
      if constexpr (kSame && kIsPacked<decltype(stride)>)
        copy_items(place(slot), from, n);
      else
        for (int64_t i = 0; i < n; ++i)
          put(sums_, slot + i, F::template widen<Selected>(load_value<Stored>(from + i * stride)));
    });
    if constexpr (Counted) std::fill_n(counts_, stretch_.count * stretch_.columns, start_);
  }

  // What a loop over updates needs, by value: it must not be read again after every store.
  class Taker {
   public:
    GATHERUM_INLINE void operator()(int64_t slot, Stored update) const {
      if constexpr (Counted) {
        const bool first = counts_[slot] == 0;
        put(sums_, slot,
            first ? F::template widen<Branched>(update)
                  : F::fold(get(sums_, slot), F::template widen<Branched>(update)));
        ++counts_[slot];
      } else {
        put(sums_, slot, F::fold(get(sums_, slot), F::template widen<Branched>(update)));
      }
    }

    // A slot that is none leads anywhere, which a prefetch may.
    GATHERUM_INLINE void fetch(int64_t slot) const {
      const auto sums = reinterpret_cast<uintptr_t>(sums_);
      prefetch(reinterpret_cast<const void*>(sums + static_cast<uintptr_t>(slot) * sizeof(Sum)));
      keep();
    }

   private:
    friend class Slab;
    Taker(char* sums, int64_t* counts) : sums_(sums), counts_(counts) {}
    char* const GATHERUM_RESTRICT sums_;
    int64_t* const GATHERUM_RESTRICT counts_;
  };

  // Counts slots from the first-th on.
  Taker taker(int64_t first = 0) const { return {place(first), Counted ? counts_ + first : counts_}; }

  GATHERUM_NOINLINE void fill(Sum v) {
    for (int64_t i = 0; i < stretch_.count * stretch_.columns; ++i) put(sums_, i, v);
  }

  // Folds another slab's accumulators of the destinations [begin, end) into these.
  GATHERUM_NOINLINE void fold_in(const Slab& other, int64_t begin, int64_t end) {
    static_assert(!Counted);
    char* GATHERUM_RESTRICT sums = sums_;
    const char* GATHERUM_RESTRICT others = other.sums_;
    for (int64_t i = begin; i < end; ++i) put(sums, i, F::fold(get(sums, i), get(others, i)));
  }

  // Writes the destinations [begin, end). Untouched ones get the bits they had: conversions there and back
  // lose none.
  GATHERUM_NOINLINE void write(int64_t begin, int64_t end) const {
    const bool streams = (end - begin) * stretch_.step >= kStreamBytes;
    each_run(begin, end, [this, streams](int64_t slot, int64_t offset, int64_t n, auto stride) {
      char* to = stretch_.to + offset;
      if constexpr (kPlain && kIsPacked<decltype(stride)>)
        return streams && to != place(slot) ? stream_bytes(to, place(slot), n * kPacked)
                                            : copy_items(to, place(slot), n);
      finish(to, stride, slot, n);
    });
    if (streams) stream_fence();
  }

 private:
  static constexpr auto kPacked = static_cast<int64_t>(sizeof(Stored));
  template <class Stride>
  static constexpr bool kIsPacked = !std::is_same_v<Stride, int64_t>;
  static constexpr bool kSame = std::is_same_v<Sum, Stored>;
  // Sums are stored as they are in the output.
  static constexpr bool kPlain = kSame && !Counted;

  char* place(int64_t slot) const { return sums_ + slot * static_cast<int64_t>(sizeof(Sum)); }

  // Stores n slots from the first-th on. By what is local: members would be read anew after every store.
  template <class Stride>
  GATHERUM_INLINE void finish(char* GATHERUM_RESTRICT to, Stride stride, int64_t first, int64_t n) const {
    const char* GATHERUM_RESTRICT sums = place(first);
    const int64_t* GATHERUM_RESTRICT counts = counts_ + (Counted ? first : 0);
    const int64_t start = start_;
    for (int64_t i = 0; i < n; ++i) {
      const Sum sum = get(sums, i);
      Stored v;
      if constexpr (!Counted)
        v = F::template narrow<Selected>(sum);
      else
        v = F::template finish<Selected>(sum, counts[i], counts[i] != start);
      std::memcpy(to + i * stride, &v, sizeof v);
    }
  }

  // The output may be the slab itself.
  static void copy_items(char* to, const char* from, int64_t n) {
    if (to != from) copy_run(to, from, n * kPacked);
  }

  static GATHERUM_INLINE Sum get(const char* sums, int64_t slot) {
    return load_value<Sum>(sums + slot * static_cast<int64_t>(sizeof(Sum)));
  }
  static GATHERUM_INLINE void put(char* sums, int64_t slot, const Sum& v) {
    std::memcpy(sums + slot * static_cast<int64_t>(sizeof(Sum)), &v, sizeof v);
  }

  // Calls run(first slot, byte offset, n, stride) for the stretches of destinations [begin, end) that step
  // evenly; the stride is a constant where the elements are contiguous.
  template <class Run>
  void each_run(int64_t begin, int64_t end, const Run& run) const {
    constexpr std::integral_constant<int64_t, static_cast<int64_t>(sizeof(Stored))> packed;
    const Stretch& s = stretch_;
    if (s.columns == 1) {
      if (s.step == packed) return run(begin, begin * s.step, end - begin, packed);
      return run(begin, begin * s.step, end - begin, s.step);
    }
    for (int64_t i = begin; i < end; ++i) {
      if (s.column_step == packed)
        run(i * s.columns, i * s.step, s.columns, packed);
      else
        run(i * s.columns, i * s.step, s.columns, s.column_step);
    }
  }

  const Stretch stretch_;
  const int64_t start_;
  int64_t* counts_;
  char* sums_;  // Sum after Sum; unaligned where they lie in the output
};

}  // namespace gatherum::GATHERUM_LEVEL
