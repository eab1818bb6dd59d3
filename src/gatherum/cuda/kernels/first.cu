// Reads the first invalid tuple again, for the error message. Runs as one thread.
//
// If `invalid_tuples` is not 0, `inverse_position` holds the position. Records nothing if another stream has
// changed the indices meanwhile.
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

extern "C" __global__ void first(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  Record& record = *call.record;
  if (record.invalid_tuples == 0) return;
  const Point p = point_of(call.loops, static_cast<Offset>(~record.inverse_position));
  for (int i = 0; i < static_cast<int>(call.tuple.count); ++i) {
    const Component& c = call.tuple.component[i];
    const int64 value = load_index(call.index + p.index + c.offset);
    if (resolve<mode_raise>(value, c).valid) continue;
    record.found = 1;
    record.component = static_cast<uint64>(i);
    record.value = value;
    return;
  }
}
