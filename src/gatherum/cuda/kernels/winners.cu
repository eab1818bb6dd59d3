// Finds the last update of every destination, if a table can hold all destinations.
//
//   W[e] = max over tuples with destination e of 1 + their position        0: none
//
// e numbers the destinations. Positions are counted in row-major order of the indices, so the greatest
// position is that of the last update. The maximum of integers is the same in any order. An invalid tuple has
// no destination.
//
// The plan guarantees: loops over the tuples, without the loops of the row; W is zero. Cost: the indices read
// once, and one atomic per tuple.
#include "indices.cuh"

namespace gatherum {

struct Arguments {
  const char* index;
  typename Word<WINNER_BYTES>::Type* winners;
  int64 total;
  Loops loops;
  Tuple tuple;
};

}  // namespace gatherum

extern "C" __global__ void winners(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  using Winner = typename Word<WINNER_BYTES>::Type;
  const Offset total = static_cast<Offset>(call.total);
  for (Offset f = first_of_thread(1); f < total; f += grid_stride(1)) {
    const Point p = point_of(call.loops, f);
    const Target t = target_of<MODE>(call.tuple, call.index + p.index);
    if (t.valid) atomicMax(&call.winners[p.destination + t.destination], static_cast<Winner>(p.position) + 1);
  }
}
