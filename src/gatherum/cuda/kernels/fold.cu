// Folds every segment in row-major order of the indices: one thread per segment and chunk of CHUNK_ITEMS
// items of the row.
//
//   D[e] = finish(fold(...fold(a, u[i])..., u[i + n - 1]))   for the segment i..i+n-1 of e, where u[j] is the
//                                                            update of entry j
//
// a is the old value or, without include_self, a copy of the first update. Destinations without a segment
// keep their bits. Neighbouring threads fold neighbouring chunks of a row, or neighbouring segments.
// fold_long.cu folds segments of more than `at_most` entries, because a single thread would wait for each
// load.
//
// The plan guarantees: D overlaps neither U nor X nor itself; D, U and all their strides are multiples of
// VALUE_ALIGN. Cost: keys read twice, payload once, the updates once, each destination read and written once.
// The measurements of `at_most` are in cuda/folds.py.
#include "folding.cuh"
#include "segments.cuh"

extern "C" __global__ void fold(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  if (is_stopped(call.guard)) return;
  const Sorted& sorted = call.sorted;
  const bool include_self = call.include_self != 0;
  const Offset total = static_cast<Offset>(call.total), at_most = static_cast<Offset>(call.at_most);
  for (Offset f = first_of_thread(1); f < total; f += grid_stride(1)) {
    const Offset begin = sorted.row_chunks.divide(f);
    const Key key = sorted.keys[begin];
    if (!sorted.is_destination(key) || !sorted.begins_segment(begin)) continue;
    if (sorted.has_key(begin + at_most, key)) continue;
    const Point p = point_of(sorted.row_loops, f - begin * static_cast<Offset>(sorted.row_chunks.value));
    char* const destination = call.data + sorted.destination_offset(key) + p.data;
    Sums sums = widen(include_self ? load_items(destination) : update_of(call, begin, p.moved));
    const Offset end = fold_entries(
        sums, begin + (include_self ? 0 : 1), [&](Offset j) { return sorted.has_key(j, key); },
        [&](Offset j) { return update_of(call, j, p.moved); });
    finish(destination, sums, end - begin, include_self);
  }
}
