// Sums every segment exactly: one thread per segment and item of the row.
//
//   D[e] = rounded(sum of u[i..i+n-1], and of the old D[e] with include_self)   for the segment of e, u[j] as
//          in fold.cu; for fmean that sum over the number of its terms
//
// Destinations without a segment keep their bits. Neighbouring threads sum neighbouring items of a row, or
// neighbouring segments. fold_exact_long.cu sums segments of more than `at_most` entries.
//
// The plan guarantees: as in fold.cu. Cost: as in fold.cu, plus the limbs in use (exact.cuh). `at_most` is
// not measured.
#include "exact.cuh"
#include "segments.cuh"

extern "C" __global__ void fold_exact(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  if (is_stopped(call.guard)) return;
  const Sorted& sorted = call.sorted;
  const Offset total = static_cast<Offset>(call.total), at_most = static_cast<Offset>(call.at_most);
  for (Offset f = first_of_thread(1); f < total; f += grid_stride(1)) {
    const Offset begin = sorted.row_chunks.divide(f);
    const Key key = sorted.keys[begin];
    if (!sorted.is_destination(key) || !sorted.begins_segment(begin)) continue;
    if (sorted.has_key(begin + at_most, key)) continue;
    const Point p = point_of(sorted.row_loops, f - begin * static_cast<Offset>(sorted.row_chunks.value));
    Sum sum;
    Offset j = begin;
    for (; sorted.has_key(j, key); ++j) sum.add_term(update_of(sorted, call.moved, j, p.moved));
    finish(call.data + sorted.destination_offset(key) + p.data, sum, j - begin, call.include_self != 0);
  }
}
