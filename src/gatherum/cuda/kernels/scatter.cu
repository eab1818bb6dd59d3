// Moves updates to the indexed positions; if several have the same destination, only the last one is moved.
//
//   *(D + f . sD + sum over components c of check(X[f . sX + x_c], n_c) * d_c) = *U(f . sU)
//
// f runs over all chunks as in gather.cu. A chunk moves if its tuple is the winner found by winners.cu.
// WINNER_BYTES 0 means that no two tuples have the same destination. An invalid tuple moves nothing. The same
// holds for a tuple that another stream has changed since the winners were found: at worst, a destination
// keeps its old value.
//
// The plan guarantees: D does not overlap U or X, nor itself; D, U and all their strides are multiples of
// CHUNK_BYTES. Cost: the winning updates read and written once, the indices and the winners read once.
#include "indices.cuh"

namespace gatherum {

struct Arguments {
  char* data;
  const char* index;
  const char* moved;
  const Record* guard;
  const void* winners;
  int64 total;
  Loops loops;
  Tuple tuple;
};

__device__ __forceinline__ bool wins([[maybe_unused]] const Arguments& call,
                                     [[maybe_unused]] Offset destination, [[maybe_unused]] Offset position) {
#if WINNER_BYTES != 0
  using Winner = typename Word<WINNER_BYTES>::Type;
  return static_cast<const Winner*>(call.winners)[destination] == static_cast<Winner>(position) + 1;
#else
  return true;
#endif
}

}  // namespace gatherum

extern "C" __global__ void scatter(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  using Chunk = typename Word<CHUNK_BYTES>::Type;
  if (is_stopped(call.guard)) return;
  const Offset total = static_cast<Offset>(call.total);
  for (Offset base = first_of_thread(PER_THREAD); base < total; base += grid_stride(PER_THREAD)) {
    const char* from[PER_THREAD];
    char* to[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k) {
      const Offset f = base + k * static_cast<Offset>(blockDim.x);
      to[k] = nullptr;
      if (f >= total) continue;
      const Point p = point_of(call.loops, f);
      const Target t = target_of<MODE>(call.tuple, call.index + p.index);
      if (!t.valid || !wins(call, p.destination + t.destination, p.position)) continue;
      from[k] = call.moved + p.moved;
      to[k] = call.data + p.data + t.data;
    }
    Chunk chunks[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k)
      if (to[k] != nullptr) chunks[k] = load<Chunk, CHUNK_BYTES>(from[k]);
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k)
      if (to[k] != nullptr) store<Chunk, CHUNK_BYTES>(to[k], chunks[k]);
  }
}
