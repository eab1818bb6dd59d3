// Values of updates sorted by destination, shared by fold.cu and fold_long.cu.
//
// A thread folds LANES neighbouring items of a row independently. It reads and writes them as one word if
// they are aligned.
#pragma once

#include "arithmetic.cuh"
#include "sorted.cuh"

namespace gatherum {

using F = Fold<VALUE, Reduction::REDUCTION>;
using Stored = typename F::Stored;
using Sum = typename F::Sum;

// Updates in flight per thread. On an H100 (2026-11-26), 8 took 29 % longer than 4 for 2^22 rows of 64
// float32 into 100,000, and no case was faster by more than 10 %.
inline constexpr int kAhead = 4;

struct Items {
  Stored item[LANES];
};
struct Sums {
  Sum item[LANES];
};

__device__ __forceinline__ Items load_items(const char* at) { return load<Items, VALUE_ALIGN>(at); }

// Returns the items of entry j at byte `place` of its row. A weighted item has the bits of the reduction
// "mul".
template <class Call>
__device__ __forceinline__ Items update_of(const Call& call, Offset j, [[maybe_unused]] Offset place) {
  const Sorted& sorted = call.sorted;
#if CARRIED != 0
  Items items;
  items.item[0] = bits_as<Stored>(static_cast<typename Word<CARRIED>::Type>(sorted.payload[j]));
  return items;
#elif WEIGHTED != 0
  using Product = Fold<VALUE, Reduction::mul>;
  const Offset tuple = static_cast<Offset>(sorted.payload[j]);
  const Offset row = static_cast<Offset>(call.weights.rows[tuple]);
  constexpr int bytes = static_cast<int>(sizeof(Stored));
  const Stored weight = load_constant<Stored, bytes>(call.weights.items + tuple * Offset{bytes});
  Items items = load_items(call.moved + place_of(sorted.from, row).moved + place);
#pragma unroll
  for (int l = 0; l < LANES; ++l) {
    const auto product = Product::fold(Product::widen(items.item[l]), Product::widen(weight));
    items.item[l] = Product::finish(product, 2, true);
  }
  return items;
#else
  return load_items(call.moved + sorted.update(j) + place);
#endif
}

__device__ __forceinline__ Sums widen(const Items& items) {
  Sums sums;
#pragma unroll
  for (int l = 0; l < LANES; ++l) sums.item[l] = F::widen(items.item[l]);
  return sums;
}

__device__ __forceinline__ void fold_into(Sums& a, const Sums& b) {
#pragma unroll
  for (int l = 0; l < LANES; ++l) a.item[l] = F::fold(a.item[l], b.item[l]);
}

// Stores the fold of `entries` updates, and of the old value if `self`.
__device__ __forceinline__ void finish(char* at, const Sums& a, Offset entries, bool self) {
  const int64 count = static_cast<int64>(entries) + (self ? 1 : 0);
  Items items;
#pragma unroll
  for (int l = 0; l < LANES; ++l) items.item[l] = F::finish(a.item[l], count, count > 1);
  store<Items, VALUE_ALIGN>(at, items);
}

}  // namespace gatherum
