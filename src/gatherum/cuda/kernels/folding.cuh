// Values of updates sorted by destination, shared by fold.cu and fold_long.cu.
#pragma once

#include "items.cuh"
#include "sorted.cuh"

namespace gatherum {

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

}  // namespace gatherum
