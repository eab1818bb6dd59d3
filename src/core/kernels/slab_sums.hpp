// Reads accumulators of a slab (slabs.hpp) from the data, and writes them to the output, for folds whose
// accumulators are single values.
#pragma once

#include "kernels/scatter_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The fold for `none`, on items of W bytes: the last update wins.
template <int W>
struct Replace : Bytes<W> {
  using Conversion = Bytes<W>;
  using typename Conversion::Sum;
  static constexpr bool kDivides = false;
  static Sum fold(Sum, Sum b) { return b; }
};

// The addresses of a slab's destinations.
struct Layout {
  const char* from;
  char* to;
  int64_t step, column_step;  // bytes from one destination, and from one column, to the next
  int64_t count, columns;
};

template <class Sum>
GATHERUM_INLINE Sum get(const char* sums, int64_t slot) {
  return load_value<Sum>(sums + slot * static_cast<int64_t>(sizeof(Sum)));
}
template <class Sum>
GATHERUM_INLINE void put(char* sums, int64_t slot, const Sum& v) {
  std::memcpy(sums + slot * static_cast<int64_t>(sizeof(Sum)), &v, sizeof v);
}

// Reads and writes the accumulators of a slab. `Conversion` converts them from and to stored values.
template <class Conversion>
class Sums {
 public:
  using Stored = typename Conversion::Stored;
  using Sum = typename Conversion::Sum;

  // Reads the destinations [begin, end).
  GATHERUM_NOINLINE void read(int64_t begin, int64_t end) {
    each_run(begin, end, [this](int64_t slot, int64_t offset, int64_t n, auto stride) {
      const char* from = layout_.from + offset;
      if (kIsPacked<decltype(stride)> && layout_.columns > 1)
        prefetch_bytes(from, kRowsAhead * layout_.step, n * kPacked);
      if constexpr (kSame && kIsPacked<decltype(stride)>)
        copy_items(sum_at(slot), from, n);
      else
        for (int64_t i = 0; i < n; ++i)
          put<Sum>(sums_, slot + i,
                   Conversion::template widen<Selected>(load_value<Stored>(from + i * stride)));
    });
  }

  // Writes the destinations [begin, end), with streaming stores if `streams`. Destinations without updates
  // keep their bits, because conversion to the accumulation type and back is exact.
  GATHERUM_NOINLINE void write(int64_t begin, int64_t end, bool streams) const {
    each_run(begin, end, [this, streams](int64_t slot, int64_t offset, int64_t n, auto stride) {
      char* GATHERUM_RESTRICT to = layout_.to + offset;
      const char* GATHERUM_RESTRICT sums = sum_at(slot);
      if constexpr (kSame && kIsPacked<decltype(stride)>)
        return streams && to != sums ? stream_bytes(to, sums, n * kPacked) : copy_items(to, sums, n);
      for (int64_t i = 0; i < n; ++i) {
        const Stored v = Conversion::template narrow<Selected>(get<Sum>(sums, i));
        std::memcpy(to + i * stride, &v, sizeof v);
      }
    });
    if (streams) stream_fence();
  }

 protected:
  explicit Sums(const Layout& s) : layout_(s) {}

  static constexpr auto kPacked = static_cast<int64_t>(sizeof(Stored));
  // True if sums have the same representation as the output.
  static constexpr bool kSame = std::is_same_v<Sum, Stored>;
  template <class Stride>
  static constexpr bool kIsPacked = !std::is_same_v<Stride, int64_t>;

  char* sum_at(int64_t slot) const { return sums_ + slot * static_cast<int64_t>(sizeof(Sum)); }
  int64_t slots() const { return layout_.count * layout_.columns; }

  // The slab may be in the output itself.
  static void copy_items(char* to, const char* from, int64_t n) {
    if (to != from) copy_run(to, from, n * kPacked);
  }

  // Calls `run(first slot, byte offset, n, stride)` for evenly spaced runs of the destinations [begin, end).
  // The stride is a compile-time constant if the elements are contiguous.
  template <class Run>
  void each_run(int64_t begin, int64_t end, const Run& run) const {
    constexpr std::integral_constant<int64_t, static_cast<int64_t>(sizeof(Stored))> packed;
    const Layout& s = layout_;
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

  const Layout layout_;
  char* sums_;  // contiguous; unaligned if the slab is in the output
};

}  // namespace gatherum::GATHERUM_LEVEL
