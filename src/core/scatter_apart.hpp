// scatter of sums and means with counters, by two threads: one folds all updates, in order, the other counts.
//
//   S[i] = D[i], or what changes nothing that it is added to, where the fold leaves D out
//   S[i] = fold(S[i], U[t])                            sums, one task
//   C[i] = how many U[t] hit i (and D[i] is one more)  counts, another
//   D[i] = finish(S[i], C[i]); D[i] where nothing hits i    write
//
// -0 added to a value is the value, but for a NaN, which becomes the canonical one: where an update is NaN
// and alone, and is to be copied as it is, the caller does without. The accumulators lie as those of a
// counted slab. The plan guarantees what it does for slabs; the caller, that there is one unit, without
// columns. Cost: an update takes a sum on one thread, an index a counter on the other, at the same time.
#pragma once

#include "scatter_slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Whether the first update of a fold may be added to something.
template <class F>
inline constexpr bool kAddsFirst = false;
template <class V, Reduction R>
  requires(R == Reduction::add || R == Reduction::mean)
inline constexpr bool kAddsFirst<Fold<V, R>> = !std::is_same_v<V, Boolean>;

// What changes nothing that it is added to.
template <class Sum>
inline constexpr Sum kNothing = Sum{};
template <>
inline constexpr float kNothing<float> = -0.0f;
template <>
inline constexpr double kNothing<double> = -0.0;
template <class T>
inline constexpr Complex<T> kNothing<Complex<T>> = {-T{0}, -T{0}};

template <class T>
bool is_nan(T v) {
  return v != v;
}
template <class T>
bool is_nan(Complex<T> v) {
  return is_nan(v.re) || is_nan(v.im);
}

// A slab of which nothing but counters is kept.
struct Counters {
  int64_t* counts;

  struct Taker {
    int64_t* GATHERUM_RESTRICT const counts;
    template <class Stored>
    GATHERUM_INLINE void operator()(int64_t slot, Stored) const {
      ++counts[slot];
    }
    GATHERUM_INLINE void fetch(int64_t slot) const { fetch_slot<int64_t>(counts, slot); }
  };
  Taker taker(int64_t = 0) const { return {counts}; }
};

// The two halves of the accumulators of a counted slab, which a task each fills.
template <class F>
struct ApartSlab {
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;

  ApartSlab(const SlabScatter& call, const Operands& at, char* scratch)
      : how(call.combine),
        layout(slab_task(call, at, 0).layout),
        counts(reinterpret_cast<int64_t*>(scratch)),
        sums(scratch + layout.count * static_cast<int64_t>(sizeof *counts)),
        whole(scratch, layout, how.include_self, false) {}

  const Combine how;
  const Layout layout;
  int64_t* const counts;
  char* const sums;
  const Slab<F, true> whole;
};

// Returns false when it met an invalid index.
template <class F>
bool apart_take(const SlabScatter& call, const Operands& at, bool counts, char* scratch) {
  const ApartSlab<F> slab(call, at, scratch);
  const Taking taking(call, slab_task(call, at, 0));
  const auto take = [&](const auto& into) {
    return take_units<typename F::Stored>(into, taking.ids(), call.units, taking.range, at, taking.share);
  };
  if (counts) {
    std::fill_n(slab.counts, slab.layout.count, slab.how.include_self ? 1 : 0);
    return take(Counters{slab.counts});
  }
  Slab<F, false> sums(slab.sums, slab.layout, false, false);
  slab.how.include_self ? sums.read() : sums.fill(kNothing<typename F::Sum>);
  return take(sums);
}

// Whether no NaN among the destinations [begin, end) may have been the only update, to be copied as it is.
template <class F>
bool apart_is_exact(const SlabScatter& call, const Operands& at, int64_t begin, int64_t end, char* scratch) {
  using Sum = typename F::Sum;
  if (F::kDivides || call.combine.include_self || std::is_integral_v<Sum>) return true;
  const ApartSlab<F> slab(call, at, scratch);
  bool exact = true;
  for (int64_t i = begin; i < end; ++i) exact &= slab.counts[i] != 1 || !is_nan(get<Sum>(slab.sums, i));
  return exact;
}

template <class F>
void apart_write(const SlabScatter& call, const Operands& at, int64_t begin, int64_t end, char* scratch) {
  const ApartSlab<F> slab(call, at, scratch);
  for (int64_t i = begin; i < end && !slab.how.include_self; ++i) {
    if (slab.counts[i] != 0) continue;
    const auto old = load_value<typename F::Stored>(slab.layout.from + i * slab.layout.step);
    put<typename F::Sum>(slab.sums, i, F::template widen<Selected>(old));
  }
  slab.whole.write(begin, end, call.streams);
}

}  // namespace gatherum::GATHERUM_LEVEL
