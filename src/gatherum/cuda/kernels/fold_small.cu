// Copies the data and folds every update of a small scatter, in row-major order of the indices.
//
//   D[e] = S[e], or the fold of S[e] and the updates of e as in fold.cu, for every destination e
//
// S are the old values, which may be D itself. A thread folds a chunk of CHUNK_ITEMS items of a row, with all
// updates of its destination.
//
// The plan guarantees: as in fold.cu; keys of 4 bytes; blocks of whole warps; `padded` is a power of 2 from
// `total` to MOST_TUPLES; unless SOURCE is 0, the destinations are all items of D, and S has the layout of D,
// or is one item that all items of D start from (SOURCE 2). Cost: the indices read by every block, the
// updates once, old values and destinations once.
#include "items.cuh"
#include "small.cuh"

namespace gatherum {

__device__ __forceinline__ Items old_items(const Part& part) {
#if SOURCE == 2
  constexpr int align = VALUE_ALIGN < static_cast<int>(sizeof(Stored)) ? VALUE_ALIGN : sizeof(Stored);
  Items items;
#pragma unroll
  for (int l = 0; l < CHUNK_ITEMS; ++l) items.item[l] = load<Stored, align>(part.from);
  return items;
#else
  return load_items(SOURCE == 0 ? part.to : part.from);
#endif
}

}  // namespace gatherum

extern "C" __global__ void __launch_bounds__(SMALL_THREADS, 1)
    fold_small(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ uint64 entries[MOST_TUPLES];
  __shared__ uint32 invalid;
  if (!sort_tuples(call, entries, &invalid)) return;
  const bool include_self = call.include_self != 0;
  const Offset total = static_cast<Offset>(call.total), points = static_cast<Offset>(call.points);
  for (Offset f = first_of_thread(1); f < points; f += grid_stride(1)) {
    const Part part = part_at<false>(call, entries, f);
    if (part.entry < 0) {
      if constexpr (SOURCE != 0) store<Items, VALUE_ALIGN>(part.to, old_items(part));
      continue;
    }
    const auto has = [&](Offset j) { return j < total && key_of(entries[j]) == part.key; };
    const auto update = [&](Offset j) { return load_items(update_at(call, entries[j], part.moved)); };
    Sums sums = widen(include_self ? old_items(part) : update(part.entry));
    const Offset end = fold_entries(sums, part.entry + (include_self ? 0 : 1), has, update);
    finish(part.to, sums, end - part.entry, include_self);
  }
}
