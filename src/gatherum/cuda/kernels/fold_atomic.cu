// Folds 32-bit and 64-bit integers in place with atomics. Their sum, maximum and minimum are the same in any
// order.
//
//   *(D + f . sD + sum over components c of check(X[f . sX + x_c], n_c) * d_c) op= *U(f . sU)
//
// f runs over all items. Floats are not supported. An invalid tuple folds nothing.
//
// The plan guarantees: as in scatter.cu; the old value takes part; items are aligned. Cost: indices and
// updates read once, one atomic per update.
#include "atomics.cuh"
#include "indices.cuh"

namespace gatherum {

struct Arguments {
  char* data;
  const char* index;
  const char* moved;
  const Record* guard;
  int64 total;
  Loops loops;
  Tuple tuple;
};

}  // namespace gatherum

extern "C" __global__ void fold_atomic(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  if (is_stopped(call.guard)) return;
  const Offset total = static_cast<Offset>(call.total);
  for (Offset f = first_of_thread(1); f < total; f += grid_stride(1)) {
    const Point p = point_of(call.loops, f);
    const Target t = target_of<MODE>(call.tuple, call.index + p.index);
    if (!t.valid) continue;
    const VALUE update = load<VALUE, sizeof(VALUE)>(call.moved + p.moved);
    fold_at<Reduction::REDUCTION>(call.data + p.data + t.data, update);
  }
}
