// Values of updates sorted by destination, shared by fold.cu and fold_long.cu.
//
// A thread folds CHUNK_ITEMS neighbouring items of a row independently. The thread reads and writes these
// items as one word if they are aligned.
#pragma once

#include "arithmetic.cuh"
#include "sorted.cuh"

namespace gatherum {

using F = Fold<VALUE, Reduction::REDUCTION>;
using Stored = typename F::Stored;
using Sum = typename F::Sum;

// Updates in flight per thread. On an H100 (2026-11-26), 8 took 29 % longer than 4 for 2^22 rows of 64
// float32 into 100,000, and no case was faster by more than 10 %.
inline constexpr int kUpdatesInFlight = 4;

struct Items {
  Stored item[CHUNK_ITEMS];
};
struct Sums {
  Sum item[CHUNK_ITEMS];
};

__device__ __forceinline__ Items load_items(const char* address) { return load<Items, VALUE_ALIGN>(address); }

// Returns the items of entry j at byte `offset` of its row. A weighted item is bit-for-bit equal to a product
// by the reduction "mul".
template <class Call>
__device__ __forceinline__ Items update_of(const Call& call, Offset j, [[maybe_unused]] Offset offset) {
  const Sorted& sorted = call.sorted;
#if CARRIED_BYTES != 0
  Items items;
  items.item[0] = bits_as<Stored>(static_cast<typename Word<CARRIED_BYTES>::Type>(sorted.payload[j]));
  return items;
#elif ROW_NUMBER_BYTES != 0
  using Product = Fold<VALUE, Reduction::mul>;
  const Offset tuple = static_cast<Offset>(sorted.payload[j]);
  const Offset row = static_cast<Offset>(call.weights.rows[tuple]);
  constexpr int bytes = static_cast<int>(sizeof(Stored));
  const Stored weight = load_constant<Stored, bytes>(call.weights.items + tuple * Offset{bytes});
  Items items = load_items(call.moved + point_of(sorted.tuple_loops, row).moved + offset);
#pragma unroll
  for (int l = 0; l < CHUNK_ITEMS; ++l) {
    const auto product = Product::fold(Product::widen(items.item[l]), Product::widen(weight));
    items.item[l] = Product::finish(product, 2, true);
  }
  return items;
#else
  return load_items(call.moved + sorted.update_offset(j) + offset);
#endif
}

__device__ __forceinline__ Sums widen(const Items& items) {
  Sums sums;
#pragma unroll
  for (int l = 0; l < CHUNK_ITEMS; ++l) sums.item[l] = F::widen(items.item[l]);
  return sums;
}

__device__ __forceinline__ void fold_into(Sums& sums, const Sums& values) {
#pragma unroll
  for (int l = 0; l < CHUNK_ITEMS; ++l) sums.item[l] = F::fold(sums.item[l], values.item[l]);
}

// Stores the fold of `entries` updates, and of the old value if `include_self`.
__device__ __forceinline__ void finish(char* address, const Sums& sums, Offset entries, bool include_self) {
  const int64 count = static_cast<int64>(entries) + (include_self ? 1 : 0);
  Items items;
#pragma unroll
  for (int l = 0; l < CHUNK_ITEMS; ++l) items.item[l] = F::finish(sums.item[l], count, count > 1);
  store<Items, VALUE_ALIGN>(address, items);
}

}  // namespace gatherum
