// Checks every index tuple, in row-major order of the indices.
//
//   invalid_tuples     their number
//   inverse_position   max of ~p over the positions p of invalid tuples
//
// Many blocks add to a record that a clear has set to zero. If ONE_BLOCK is 1, a single block fills the
// record, which needs no clear.
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
#if ONE_BLOCK
  __shared__ Record found;
  if (threadIdx.x == 0) found = Record{0, 0, 0, 0, 0};
  __syncthreads();
  Record* const record = &found;
#else
  Record* const record = call.record;
#endif
  const Offset total = static_cast<Offset>(call.total);
  for (Offset f = first_of_thread(1); f < total; f += grid_stride(1)) {
    const Point p = point_of(call.loops, f);
    if (target_of<mode_raise>(call.tuple, call.index + p.index).valid) continue;
    atomicAdd(&record->invalid_tuples, uint64{1});
    atomicMax(&record->inverse_position, ~static_cast<uint64>(f));
  }
#if ONE_BLOCK
  __syncthreads();
  if (threadIdx.x == 0) *call.record = found;
#endif
}
