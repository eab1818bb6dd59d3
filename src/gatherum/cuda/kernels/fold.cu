// Folds every run in row-major order of the indices: one thread per run and LANES items of the row.
//
//   D[e] = finish(fold(...fold(a, u[i])..., u[i + n - 1]))   for the run i..i+n-1 of e, u[j] entry j's update
//
// a is the old value or, without include_self, a copy of the first update. Destinations without a run keep
// their bits. Neighbouring threads fold neighbouring items of a row, or neighbouring runs. fold_long.cu folds
// runs of more than `longest` entries, because a single thread would wait for each load.
//
// The plan guarantees: D overlaps neither U nor X nor itself; D, U and all their strides are multiples of
// VALUE_ALIGN. Cost: keys read twice, payload once, the updates once, each destination read and written once.
// cuda/folds.py has the measurements of `longest`.
#include "folding.cuh"
#include "runs.cuh"

extern "C" __global__ void fold(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  if (is_stopped(call.guard)) return;
  const Sorted& sorted = call.sorted;
  const bool self = call.include_self != 0;
  const Offset total = static_cast<Offset>(call.total), longest = static_cast<Offset>(call.longest);
  for (Offset f = first_of_thread(1); f < total; f += whole_grid(1)) {
    const Offset begin = sorted.each.divide(f);
    const Key key = sorted.keys[begin];
    if (!sorted.is_destination(key) || !sorted.begins(begin)) continue;
    if (sorted.has(begin + longest, key)) continue;
    const Place p = place_of(sorted.row, f - begin * static_cast<Offset>(sorted.each.extent));
    char* const at = call.data + sorted.destination(key) + p.data;
    Sums a = widen(self ? load_items(at) : update_of(call, begin, p.moved));
    Offset j = begin + (self ? 0 : 1);
    while (sorted.has(j, key)) {
      Items u[kAhead];
      int n = 0;
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (!sorted.has(j + k, key)) continue;
        u[k] = update_of(call, j + k, p.moved);
        n = k + 1;
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k)
        if (k < n) fold_into(a, widen(u[k]));
      j += n;
    }
    finish(at, a, j - begin, self);
  }
}
