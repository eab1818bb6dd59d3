// Folds every run in row-major order of the indices: one thread a run and item of the row.
//
//   D[e] = finish(fold(...fold(a, U[payload[i]])..., U[payload[i + n - 1]]))   for the run i..i+n-1 of e
//
// a is the old value, or, without INCLUDE_SELF, the first update, copied. Destinations without a run keep their
// bits. Neighbouring threads fold neighbouring items of a row, or neighbouring runs. A run of more than
// `longest` entries (0: no limit) is left to fold_long.cu: its thread alone would wait for each load.
//
// The plan guarantees: D overlaps neither U nor X nor itself; D, U and all their strides are multiples of
// VALUE_ALIGN. Cost: keys read twice, payload once, the updates once, each destination read and written once.
//
// Waiting for a measurement on a device: kAhead, several items a thread in rows, and for single items the
// updates themselves as the payload of the sort.
#include "arithmetic.cuh"
#include "sorted.cuh"

namespace gatherum {

struct Arguments {
  char* data;
  const char* other;
  const Record* guard;
  int64 total;  // entries times the items of a row
  int64 longest;
  Sorted sorted;
};

// So many updates are under way at a time.
inline constexpr int kAhead = 4;

}  // namespace gatherum

extern "C" __global__ void fold(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  using F = Fold<VALUE, Reduction::REDUCTION>;
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;
  if (is_stopped(call.guard)) return;
  const Sorted& sorted = call.sorted;
  const Offset total = static_cast<Offset>(call.total), longest = static_cast<Offset>(call.longest);
  for (Offset f = first_of_thread(1); f < total; f += whole_grid(1)) {
    const Offset begin = sorted.each.divide(f);
    const Key key = sorted.keys[begin];
    if (!sorted.is_destination(key) || !sorted.begins(begin)) continue;
    if (longest > 0 && sorted.has(begin + longest, key)) continue;
    const Place p = place_of(sorted.row, f - begin * static_cast<Offset>(sorted.each.extent));
    char* const at = call.data + sorted.destination(key) + p.data;
    const char* const updates = call.other + p.other;
    Offset j = begin + (INCLUDE_SELF ? 0 : 1);
    Sum a = F::widen(load<Stored, VALUE_ALIGN>(INCLUDE_SELF ? at : updates + sorted.update(begin)));
    while (sorted.has(j, key)) {
      Stored u[kAhead];
      int n = 0;
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (!sorted.has(j + k, key)) continue;
        u[k] = load<Stored, VALUE_ALIGN>(updates + sorted.update(j + k));
        n = k + 1;
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k)
        if (k < n) a = F::fold(a, F::widen(u[k]));
      j += n;
    }
    const Offset entries = j - begin;
    const bool folded = INCLUDE_SELF || entries > 1;
    store<Stored, VALUE_ALIGN>(at, F::finish(a, static_cast<int64>(entries) + INCLUDE_SELF, folded));
  }
}
