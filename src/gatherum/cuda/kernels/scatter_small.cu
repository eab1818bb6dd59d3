// Copies the data and moves the last update of every destination of a small scatter.
//
//   D[e] = U[the last update of e], or S[e] if e has no update
//
// S are the old values, which may be D itself.
//
// The plan guarantees: as in scatter.cu, and as in fold_small.cu for the sort and S. If SOURCE is 2, a chunk
// is one item. Cost: the indices read by every block, the winning updates and the other old values once.
#include "small.cuh"

extern "C" __global__ void __launch_bounds__(SMALL_THREADS, 1)
    scatter_small(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  using Chunk = typename Word<CHUNK_BYTES>::Type;
  __shared__ uint64 entries[MOST_TUPLES];
  __shared__ uint32 invalid;
  if (!sort_tuples(call, entries, &invalid)) return;
  const Offset points = static_cast<Offset>(call.points);
  for (Offset f = first_of_thread(1); f < points; f += grid_stride(1)) {
    const Part part = part_at<true>(call, entries, f);
    if (part.entry >= 0)
      store<Chunk, CHUNK_BYTES>(part.to,
                                load<Chunk, CHUNK_BYTES>(update_at(call, entries[part.entry], part.moved)));
    else if constexpr (SOURCE != 0)
      store<Chunk, CHUNK_BYTES>(part.to, load<Chunk, CHUNK_BYTES>(part.from));
  }
}
