// Checks every index tuple, in row-major order of the indices.
//
//   count = number of invalid tuples        inverse = max of ~p over the invalid positions p
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
  for (Offset f = first_of_thread(1); f < total; f += whole_grid(1)) {
    const Place p = place_of(call.loops, f);
    if (target_of<mode_raise>(call.tuple, call.index + p.index).valid) continue;
    atomicAdd(&call.record->count, uint64{1});
    atomicMax(&call.record->inverse, ~static_cast<uint64>(f));
  }
}
