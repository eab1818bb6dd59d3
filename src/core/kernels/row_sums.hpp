// row_sums: sums of rows, which are kept in registers from the first row to the last row.
//
//   S[e] = canonical(row0[e] + row1[e] + ...), left to right;  D[e] = finish(S[e], count)
//
// A sum that is NaN stays NaN, so one test at the end has the same result as a test at each step. The caller
// guarantees that every row has kBytes bytes. Cost: a load and an addition per vector of each row.
#pragma once

#include <utility>

#include "fold/exact/exact_sums.hpp"
#include "kernels/indices.hpp"
#include "kernels/lanes.hpp"

namespace gatherum::GATHERUM_LEVEL {

// True for folds that add values as float32 or float64; half-precision values are added as float32.
template <class F>
inline constexpr bool kSumsRows = false;
template <class F>
inline constexpr bool kSumsProducts = false;  // weighted values need no rounding before the sum
#if GATHERUM_LANES > 1
template <class V, Reduction R>
  requires(R == Reduction::add || R == Reduction::mean)
inline constexpr bool kSumsRows<Fold<V, R>> = std::is_floating_point_v<V> || kIsHalf<V>;
template <class V, Reduction R>
  requires(R == Reduction::add || R == Reduction::mean)
inline constexpr bool kSumsProducts<Fold<V, R>> = std::is_floating_point_v<V>;
#endif

// Sums in kVectors vectors of kVectorItems items, or scalars if kVectorItems is 1.
template <class F, int kVectors, int kVectorItems = 64 / sizeof(typename F::Sum)>  // a vector is a cache line
class RowSums {
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;
  template <class T>
  using VectorOf = std::conditional_t<kVectorItems == 1, T, typename Vector<T, kVectorItems>::Type>;
  using Values = VectorOf<Sum>;
  using Rare = std::conditional_t<kVectorItems == 1, Branched, Selected>;

 public:
  // The number of bytes of each row that are used.
  static constexpr int64_t kBytes = int64_t{kVectors} * kVectorItems * sizeof(Stored);

  GATHERUM_INLINE void begin(const char* row) {
    each([&](Values& sum, int k) { sum = values(row, k); });
  }
  GATHERUM_INLINE void begin(const char* row, Sum weight) {
    each([&](Values& sum, int k) { sum = product(row, k, weight); });
  }
  GATHERUM_INLINE void add(const char* row) {
    each([&](Values& sum, int k) { sum += values(row, k); });
  }
  GATHERUM_INLINE void add(const char* row, Sum weight) {
    each([&](Values& sum, int k) { sum += product(row, k, weight); });
  }

  // `computed` is false if the sums are a copy of one row.
  GATHERUM_INLINE void finish(char* to, int64_t count, bool computed) const {
    Sum sums[kVectors * kVectorItems];
    if constexpr (kVectorItems == 1)
      for (int e = 0; e < kVectors; ++e)
        sums[e] = opaque(sums_[e]);  // else sums pass through integer registers
    else
      std::memcpy(sums, sums_, sizeof sums);
    if (computed)
      for (Sum& v : sums) v = Rare::canonical(v);
    for (int e = 0; e < kVectors * kVectorItems; ++e) {
      const Stored v = F::template finish<Selected>(sums[e], count, true);
      std::memcpy(to + e * static_cast<int>(sizeof v), &v, sizeof v);
    }
  }

 private:
  template <class Work>
  GATHERUM_INLINE void each(const Work& work) {
    // This is not a loop, because compilers unroll a loop too late to keep its sums in registers.
    [&]<int... k>(std::integer_sequence<int, k...>) {
      (work(sums_[k], k), ...);
    }(std::make_integer_sequence<int, kVectors>{});
  }

  static GATHERUM_INLINE Values values(const char* row, int k) {
    const char* address = row + int64_t{k} * kVectorItems * static_cast<int64_t>(sizeof(Stored));
    if constexpr (std::is_same_v<Stored, Sum>) {
      return load_lanes<Values>(address);
    } else {
      using Words = VectorOf<uint32_t>;
      const auto halves = load_lanes<VectorOf<Stored>>(address);
      return widen_halves<typename F::Value, Values>(convert_lanes<Words>(halves));
    }
  }

  // Broadcasts the weight by a subtraction: adding zero would lose the sign of -0.
  static GATHERUM_INLINE Values product(const char* row, int k, Sum weight) {
    return values(row, k) * (weight - Values{});
  }

  Values sums_[kVectors];
};

// The fold that multiplies values of another fold's type.
template <class V, Reduction R>
Fold<V, Reduction::mul> product_of(Fold<V, R>);

// Folds a few items, with the step of any fold.
template <class F, int N>
class RowFold {
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;
  using Product = decltype(product_of(F{}));
  using Rare = std::conditional_t<N == 1, Branched, Selected>;

 public:
  static constexpr int64_t kBytes = int64_t{N} * sizeof(Stored);

  GATHERUM_INLINE void begin(const char* row) {
    each([&](Sum& sum, int e) { sum = F::template widen<Rare>(item(row, e)); });
  }
  GATHERUM_INLINE void begin(const char* row, Stored weight) {
    each([&](Sum& sum, int e) { sum = F::template widen<Rare>(product(row, e, weight)); });
  }
  GATHERUM_INLINE void add(const char* row) {
    each([&](Sum& sum, int e) { sum = F::template fold<Rare>(sum, F::template widen<Rare>(item(row, e))); });
  }
  GATHERUM_INLINE void add(const char* row, Stored weight) {
    each([&](Sum& sum, int e) {
      sum = F::template fold<Rare>(sum, F::template widen<Rare>(product(row, e, weight)));
    });
  }
  GATHERUM_INLINE void finish(char* to, int64_t count, bool) const {
    Stored items[N];
    for (int e = 0; e < N; ++e) items[e] = F::template finish<Selected>(sums_[e], count, true);
    std::memcpy(to, items, sizeof items);
  }

 private:
  template <class Work>
  GATHERUM_INLINE void each(const Work& work) {
    GATHERUM_UNROLL(16)
    for (int e = 0; e < N; ++e) work(sums_[e], e);
  }
  static GATHERUM_INLINE Stored item(const char* row, int e) {
    return load_lanes<Stored>(row + e * static_cast<int>(sizeof(Stored)));
  }
  static GATHERUM_INLINE Stored product(const char* row, int e, Stored weight) {
    const auto x = Product::template widen<Rare>(item(row, e)), w = Product::template widen<Rare>(weight);
    return Product::template narrow<Rare>(Product::template fold<Rare>(x, w));
  }

  Sum sums_[N];
};

// The vectors of N items. Vectors wider than a register take twice the time (64 bytes on x86-64-v3).
template <class F, int N, int kVectorItems = std::min<int>(N, kLanes * 8 / int{sizeof(typename F::Sum)})>
using VectorSums = RowSums<F, N / kVectorItems, kVectorItems>;

// The type that folds N items of a row, with or without weights.
template <class F, int N, bool Weighted>
using FewItemsFold =
    std::conditional_t<kSumsRows<F> && (!Weighted || kSumsProducts<F>), VectorSums<F, N>, RowFold<F, N>>;
// True for folds that are faster in registers. Other folds have items smaller than a word, or complex items.
template <class F>
inline constexpr bool kFoldsFewItems = false;
template <class V, Reduction R>
inline constexpr bool kFoldsFewItems<Fold<V, R>> =
    std::is_arithmetic_v<V> && sizeof(V) >= 4 && !kIsExact<Fold<V, R>>;

}  // namespace gatherum::GATHERUM_LEVEL
