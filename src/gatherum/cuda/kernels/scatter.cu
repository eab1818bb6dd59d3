// Moves updates to the indexed positions; if several have the same destination, only the last.
//
//   *(D + f . sD + sum over components c of check(X[f . sX + x_c], n_c) * d_c) = *U(f . sU)
//
// f runs over all chunks as in gather.cu. A chunk moves if its tuple is the winner found by winners.cu.
// WINNER_WIDTH 0 means that no two tuples have the same destination. An invalid tuple moves nothing. The same
// holds for a tuple that another stream has changed since the winners were found: at worst, a destination
// keeps its old value.
//
// The plan guarantees: D does not overlap U or X, nor itself; D, U and all their strides are multiples of
// WIDTH. Cost: the winning updates read and written once, the indices and the winners read once.
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
#if WINNER_WIDTH != 0
  using Winner = typename Word<WINNER_WIDTH>::Type;
  return static_cast<const Winner*>(call.winners)[destination] == static_cast<Winner>(position) + 1;
#else
  return true;
#endif
}

}  // namespace gatherum

extern "C" __global__ void scatter(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  using Chunk = typename Word<WIDTH>::Type;
  if (is_stopped(call.guard)) return;
  const Offset total = static_cast<Offset>(call.total);
  for (Offset base = first_of_thread(EACH); base < total; base += whole_grid(EACH)) {
    const char* from[EACH];
    char* to[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const Offset f = base + k * static_cast<Offset>(blockDim.x);
      to[k] = nullptr;
      if (f >= total) continue;
      const Place p = place_of(call.loops, f);
      const Target t = target_of<MODE>(call.tuple, call.index + p.index);
      if (!t.valid || !wins(call, p.destination + t.destination, p.position)) continue;
      from[k] = call.moved + p.moved;
      to[k] = call.data + p.data + t.data;
    }
    Chunk chunks[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k)
      if (to[k] != nullptr) chunks[k] = load<Chunk, WIDTH>(from[k]);
#pragma unroll
    for (int k = 0; k < EACH; ++k)
      if (to[k] != nullptr) store<Chunk, WIDTH>(to[k], chunks[k]);
  }
}
