// Moves the last update of every segment to its destination. Used if there are too many destinations for the
// table of winners.cu.
//
//   D[key[j]] = U[payload[j]] for every j that ends a segment
//
// The plan guarantees: as in scatter.cu. Cost: keys and payload read once, the winning updates read and
// written once.
#include "sorted.cuh"

namespace gatherum {

struct Arguments {
  char* data;
  const char* moved;
  const Record* guard;
  int64 total;  // entries times the chunks of a row
  Sorted sorted;
};

}  // namespace gatherum

extern "C" __global__ void scatter_sorted(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  using Chunk = typename Word<CHUNK_BYTES>::Type;
  if (is_stopped(call.guard)) return;
  const Sorted& sorted = call.sorted;
  const Offset total = static_cast<Offset>(call.total);
  for (Offset f = first_of_thread(1); f < total; f += grid_stride(1)) {
    const Offset j = sorted.row_chunks.divide(f);
    const Key key = sorted.keys[j];
    if (!sorted.is_destination(key) || !sorted.ends_segment(j)) continue;
    const Point p = point_of(sorted.row_loops, f - j * static_cast<Offset>(sorted.row_chunks.value));
    const Chunk chunk = load<Chunk, CHUNK_BYTES>(call.moved + sorted.update_offset(j) + p.moved);
    store<Chunk, CHUNK_BYTES>(call.data + sorted.destination_offset(key) + p.data, chunk);
  }
}
