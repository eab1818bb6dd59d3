// Checks every index tuple, in row-major order of the indices.
//
//   invalid_tuples     their number
//   inverse_position   max of ~p over the positions p of invalid tuples
//
// The plan guarantees: only loops over the tuples, none of them empty. Cost: the indices read once; atomics
// only for invalid tuples.
#include "indices.cuh"

namespace gatherum {

struct Arguments {
  Record* record;
  const char* index;
  int64 total;
  Loops loops;
  Tuple tuple;
};

}  // namespace gatherum

extern "C" __global__ void check(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  const Offset total = static_cast<Offset>(call.total);
  for (Offset f = first_of_thread(1); f < total; f += grid_stride(1)) {
    const Point p = point_of(call.loops, f);
    if (target_of<mode_raise>(call.tuple, call.index + p.index).valid) continue;
    atomicAdd(&call.record->invalid_tuples, uint64{1});
    atomicMax(&call.record->inverse_position, ~static_cast<uint64>(f));
  }
}
