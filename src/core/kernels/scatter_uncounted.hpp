// scatter_uncounted: scatters sums, maxima and minima, and excludes the old values (include_self=False),
// without counters.
//
//   S[i] = e, S[i] = fold(S[i], U[t])     for the updates t that hit i      take
//   D[i] = S[i]; D[i] if S[i] is e                                          write
//
// e is the neutral element: -0 for float sums, 0 for integer sums, and an infinity or the least or greatest
// integer for maxima and minima. S[i] therefore equals the fold that starts from the first update, with two
// rare exceptions. First, S[i] is also e if all updates are e. Second, a NaN that is the only update must
// keep its bits. If a sum is e and the old value is not e, or if a sum is NaN, the updates are searched for e
// and NaN. If one is found, the fold is repeated with counters; nothing has been written yet. Integers can
// add up to 0, so their old values must be 0 initially.
//
// If the order does not matter, as for maxima and minima (a NaN becomes the canonical NaN), each task has
// private accumulators. Otherwise each task has a range of the destinations. scatter_slabs.hpp lists the
// guarantees of the plan. The caller guarantees that there is exactly one unit, without columns. Cost: a
// load, a step and a store per update. A counter would double that and add a branch (10M float64 into
// 100: 12.4 ms with counters, 6.8 without; into 1M: 48 and 23).
#pragma once

#include "kernels/scatter_private.hpp"

namespace gatherum::GATHERUM_LEVEL {

// True if this file has kernels for a fold. They need its neutral element.
template <class F>
inline constexpr bool kRunsUncounted = false;
template <class V>
  requires(!std::is_same_v<V, Boolean>)
inline constexpr bool kRunsUncounted<Fold<V, Reduction::add>> = true;
template <class V, Reduction R>
  requires((R == Reduction::max || R == Reduction::min) && (sizeof(V) >= 4) && std::is_arithmetic_v<V>)
inline constexpr bool kRunsUncounted<Fold<V, R>> = true;

// The fold of a real or imaginary part; for values that are not complex, the fold itself.
template <class F>
struct PartOf {
  using PartFold = F;
};
template <class T, Reduction R>
struct PartOf<Fold<Complex<T>, R>> {
  using PartFold = Fold<T, R>;
};

// True if values that are not the neutral element can fold to the neutral element.
template <class F>
inline constexpr bool kReturnsToNeutral = false;
template <class V>
  requires std::is_integral_v<V>
inline constexpr bool kReturnsToNeutral<Fold<V, Reduction::add>> = true;

template <class T>
bool is_nan(T v) {
  return v != v;
}
template <class T>
bool is_nan(Complex<T> v) {
  return is_nan(v.re) || is_nan(v.im);
}

template <class T>
GATHERUM_INLINE bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class F>
GATHERUM_INLINE bool is_neutral(const typename F::Sum& sum) {
  return same_bits(sum, F::neutral());
}

template <class T>
GATHERUM_INLINE T settled(T v) {
  if constexpr (std::is_floating_point_v<T>) return Selected::canonical(v);
  return v;
}
template <class T>
GATHERUM_INLINE Complex<T> settled(Complex<T> v) {
  return {settled(v.re), settled(v.im)};
}

// The accumulators of a task.
template <class F>
Slab<F, false> uncounted_slab(const PrivateScatter& call, const Operands& operands, int64_t task) {
  const int64_t first = task * call.range_size;
  const int64_t most = call.range_size == 0 ? call.destinations : call.range_size;
  char* const sums =
      call.slabs + (call.range_size == 0 ? task * call.slab_bytes : Slab<F, false>::bytes(first));
  return {sums,
          {operands.data, operands.data, call.step, 0, std::min(most, call.destinations - first), 1},
          false,
          false};
}

// Calls `visit(offset, sum, old)` for the destinations [begin, end). The step is a compile-time constant if
// they are contiguous.
template <class F, class Visit>
void each_destination(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end,
                      const Visit& visit) {
  using Stored = typename F::Stored;
  constexpr std::integral_constant<int64_t, static_cast<int64_t>(sizeof(Stored))> packed;
  const char* const from = call.source != nullptr ? call.source : operands.data;
  const char* const sums = call.slabs;
  const auto visit_all = [=](auto step) {
    for (int64_t i = begin; i < end; ++i)
      visit(i * step, get<typename F::Sum>(sums, i), load_value<Stored>(from + i * step));
  };
  call.step == packed ? visit_all(packed) : visit_all(call.step);
}

// Returns false if an update is a NaN other than the canonical NaN, or, if `neutral` is true, the neutral
// element. A complex update has such a NaN if either part is such a NaN, and is neutral if both parts are
// neutral. Compares the bits as integers, vectorized if `step` is a constant.
template <class F, class Step>
bool are_values_unambiguous(const char* from, int n, Step step, bool neutral) {
  using PartFold = typename PartOf<F>::PartFold;
  using Part = typename PartFold::Sum;
  constexpr auto bytes = static_cast<int>(sizeof(typename PartFold::Stored));
  constexpr auto parts = static_cast<int>(sizeof(typename F::Stored)) / bytes;
  using Wide = std::conditional_t<bytes == 8, int64_t, int32_t>;
  using B = std::conditional_t<bytes >= 4, Wide, std::conditional_t<bytes == 2, int16_t, int8_t>>;
  const auto bits_of = [](Part v) { return std::bit_cast<B>(PartFold::template narrow<Selected>(v)); };
  const B neutral_bits = bits_of(PartFold::neutral()),
          neutral_mask = static_cast<B>(-static_cast<B>(neutral));
  B infinity = std::numeric_limits<B>::max(), canonical = infinity;
  if constexpr (std::is_floating_point_v<Part>) {
    infinity = bits_of(std::numeric_limits<Part>::infinity());
    canonical = bits_of(Selected::canonical(std::numeric_limits<Part>::quiet_NaN()));
  }
  B special = 0;
  for (int j = 0; j < n; ++j) {
    auto are_neutral = neutral_mask;
    for (int part = 0; part < parts; ++part) {
      const B b = load_value<B>(from + j * step + part * bytes);
      const bool is_nan = (b & std::numeric_limits<B>::max()) > infinity;
      special |= static_cast<B>(is_nan & (b != canonical));
      are_neutral &= static_cast<B>(b == neutral_bits);
    }
    special |= are_neutral;
  }
  return special == 0;
}

// The same for the updates of a range of units.
template <class F>
bool are_updates_unambiguous(const PrivateScatter& call, const Operands& operands, const Range& range,
                             bool neutral) {
  using Stored = typename F::Stored;
  const Nest& numbering = *call.numbering;
  const int64_t step = numbering.line_loop().moved;
  constexpr std::integral_constant<int64_t, static_cast<int64_t>(sizeof(Stored))> packed;
  bool unambiguous = true;
  ByteOffsets base;
  int n = 0;
  for (Tiles tiles(numbering, numbering.line, range); tiles.next(base, n) && unambiguous;) {
    const char* const from = operands.moved + base.moved;
    unambiguous = step == packed ? are_values_unambiguous<F>(from, n, packed, neutral)
                                 : are_values_unambiguous<F>(from, n, step, neutral);
  }
  return unambiguous;
}

template <class F>
bool uncounted_is_unambiguous(const PrivateScatter& call, const Operands& operands, int64_t piece) {
  return are_updates_unambiguous<F>(call, operands, units_of(call, piece), true);
}

// Returns false if the first updates contain a NaN other than the canonical NaN. Later updates then probably
// contain more of them, and all updates would be folded twice.
template <class F>
bool uncounted_is_suitable(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  bool is_suitable = begin > 0 || are_updates_unambiguous<F>(call, operands, {call.chunk, 0, 1}, false);
  if constexpr (kReturnsToNeutral<F>) {
    const char* const from = call.source != nullptr ? call.source : operands.data;
    for (int64_t i = begin; i < end; ++i)
      is_suitable &= load_value<typename F::Stored>(from + i * call.step) == 0;
  }
  return is_suitable;
}

template <class F>
bool uncounted_take(const PrivateScatter& call, const Operands& operands, int64_t task) {
  const Nest& numbering = *call.numbering;
  Slab<F, false> slab = uncounted_slab<F>(call, operands, task);
  slab.fill(F::neutral());
  const Range range =
      call.range_size == 0 ? units_of(call, task) : Range{.chunk = call.chunk, .begin = 0, .end = call.units};
  const bool all = call.range_size == 0 || call.range_size >= call.destinations;
  if (all && !numbering.far && folds_checked<F>(numbering))
    return take_checked(slab, numbering, numbering.line, range, operands);
  const int64_t first = task * call.range_size;
  const DestinationRange owned{.low = first, .high = std::min(first + call.range_size, call.destinations)};
  const SlabShare share{
      .owned = all ? DestinationRange{} : owned, .first = first, .by_column = false, .origin = 0};
  return take_units<typename F::Stored>(slab, numbering, numbering.line, range, operands, share);
}

template <class F>
bool uncounted_merge(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  if constexpr (F::kAnyOrderOfFirsts)
    for (int64_t piece = 1; piece < call.pieces && call.range_size == 0; ++piece)
      uncounted_slab<F>(call, operands, 0).fold_in(uncounted_slab<F>(call, operands, piece), begin, end);
  bool is_unambiguous = true;
  if constexpr (kReturnsToNeutral<F>) return is_unambiguous;
  each_destination<F>(call, operands, begin, end, [&](int64_t, typename F::Sum sum, typename F::Stored old) {
    const bool keeps = same_bits(F::template narrow<Selected>(sum), old);
    is_unambiguous &= is_neutral<F>(sum) ? keeps : !is_nan(sum);
  });
  return is_unambiguous;
}

template <class F>
void uncounted_write(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  char* const to = operands.data;
  each_destination<F>(call, operands, begin, end,
                      [=](int64_t offset, typename F::Sum sum, typename F::Stored old) {
                        const auto v = is_neutral<F>(sum) ? old : F::template narrow<Selected>(settled(sum));
                        std::memcpy(to + offset, &v, sizeof v);
                      });
}

}  // namespace gatherum::GATHERUM_LEVEL
