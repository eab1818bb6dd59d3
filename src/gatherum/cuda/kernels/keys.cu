// Writes the keys and payload that sort updates by destination.
//
//   key[f] = number of the destination of tuple f, or the number of destinations if the tuple is invalid
//   payload[f] = f, or, if the sort carries the updates, the update
//
// A stable sort by the key keeps each destination's updates in row-major order of the indices, with invalid
// tuples last. Single items of up to 8 bytes are carried as payload. Then this kernel and the fold read them
// contiguously, instead of one by one from scattered positions.
//
// The plan guarantees: loops over the tuples, without the loops of the row. Cost: the indices read once, keys
// and payload written once; carried updates read once.
#include "indices.cuh"

namespace gatherum {

struct Arguments {
  const char* index;
  const char* moved;
  typename Word<KEY_BYTES>::Type* keys;
  typename Word<PAYLOAD_BYTES>::Type* payload;
  int64 destinations;
  int64 total;
  Loops loops;
  Tuple tuple;
};

}  // namespace gatherum

extern "C" __global__ void keys(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  const Offset total = static_cast<Offset>(call.total);
  for (Offset f = first_of_thread(1); f < total; f += grid_stride(1)) {
    const Point p = point_of(call.loops, f);
    const Target t = target_of<MODE>(call.tuple, call.index + p.index);
    const int64 key = t.valid ? static_cast<int64>(p.destination + t.destination) : call.destinations;
    call.keys[f] = static_cast<typename Word<KEY_BYTES>::Type>(key);
#if CARRIED_BYTES != 0
    const auto payload = load<typename Word<CARRIED_BYTES>::Type, VALUE_ALIGN>(call.moved + p.moved);
#else
    const Offset payload = f;
#endif
    call.payload[f] = static_cast<typename Word<PAYLOAD_BYTES>::Type>(payload);
  }
}
