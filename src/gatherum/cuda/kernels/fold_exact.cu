// Sums every run exactly: one thread per run and item of the row.
//
//   D[e] = rounded(sum of u[i..i+n-1], and of the old D[e] with include_self)   for the run of e, u[j] as in
//          fold.cu; for fmean that sum over the number of its terms
//
// Destinations without a run keep their bits. Neighbouring threads sum neighbouring items of a row, or
// neighbouring runs. fold_exact_long.cu sums runs of more than `longest` entries.
//
// The plan guarantees: as in fold.cu. Cost: as in fold.cu, plus the limbs in use (exact.cuh). `longest` is
// not measured.
#include "exact.cuh"
#include "runs.cuh"

extern "C" __global__ void fold_exact(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  if (is_stopped(call.guard)) return;
  const Sorted& sorted = call.sorted;
  const Offset total = static_cast<Offset>(call.total), longest = static_cast<Offset>(call.longest);
  for (Offset f = first_of_thread(1); f < total; f += whole_grid(1)) {
    const Offset begin = sorted.each.divide(f);
    const Key key = sorted.keys[begin];
    if (!sorted.is_destination(key) || !sorted.begins(begin)) continue;
    if (sorted.has(begin + longest, key)) continue;
    const Place p = place_of(sorted.row, f - begin * static_cast<Offset>(sorted.each.extent));
    Sum sum;
    Offset j = begin;
    for (; sorted.has(j, key); ++j) sum.take(update_of(sorted, call.moved, j, p.moved));
    finish(call.data + sorted.destination(key) + p.data, sum, j - begin, call.include_self != 0);
  }
}
