// fold_items: reduces items by the lists of buckets of destinations. The accumulators of a bucket are in
// cache. A bucket has one list of its updates, in order. The list contains the number of each update, and the
// position of its destination in the bucket (`slot`).
//
//   slab[slot(i)] = fold(slab[slot(i)], widen(table[number(i)])),   i in the list of the bucket
//
// Positions and numbers were checked when the core created the lists, and the table has a row for each edge.
// A list is divided into stretches whose numbers differ only in the last 16 bits; only these bits are stored.
// Cost: 4 or 6 bytes per update are read in order, the table is read from front to back once per bucket, and
// accumulators are in cache.
#pragma once

#include "kernels/slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class F, bool Counted, class Slot>
void fold_items(const ListFold& call, int64_t list, char* scratch) {
  using Stored = typename F::Stored;
  const int64_t first = list * call.bucket_size,
                count = std::min(call.bucket_size, call.destinations - first);
  const int64_t offset = first * call.out_step, step = call.table_step;
  Slab<F, Counted> slab(scratch, {call.start + offset, call.out + offset, call.out_step, 0, count, 1},
                        call.fold_rule.include_self, true);
  slab.read();
  const auto take = slab.taker();
  const int64_t* const bounds = call.bounds + list * (call.stretches + 1);
  const auto* GATHERUM_RESTRICT slots = reinterpret_cast<const Slot*>(call.numbers);
  const auto* GATHERUM_RESTRICT numbers = reinterpret_cast<const uint16_t*>(call.edges);
  for (int64_t s = 0; s < call.stretches; ++s) {
    const char* GATHERUM_RESTRICT stretch = call.table + s * kUpdatesPerStretch * step;
    for (int64_t i = bounds[s]; i < bounds[s + 1]; ++i)
      take(slots[i], load_value<Stored>(stretch + numbers[i] * step));
  }
  slab.write(0, count, false);
}

}  // namespace gatherum::GATHERUM_LEVEL
