// Moves data from the indexed positions; without components, copies the data.
//
//   *U(f . sU) = *(D + f . sD + sum over components c of check(X[f . sX + x_c], n_c) * d_c)
//
// f runs over all chunks of CHUNK_BYTES bytes: the loops of the nest and, last, the chunks of a contiguous
// block. Neighbouring threads move neighbouring chunks, so rows are read and written in whole cache lines.
// All threads of a row read its index, from one cache line. Each thread has PER_THREAD loads in flight.
//
// The plan guarantees: U does not overlap D or X, nor itself; D, U and all their strides are multiples of
// CHUNK_BYTES. Cost: every byte read and written once, some 30 instructions per chunk.
//
// Loads are ld.global.nc and stores are st.global.cs. The result is not read again soon, so it need not
// replace the data in the caches. On an H100 (2026-11-26), gather_elements of 8192 x 8192 float32 took 0.389
// ms with both and 0.467 without for near indices, and 0.437 and 0.510 for random ones; rows took the same
// time.
#include "indices.cuh"

namespace gatherum {

struct Arguments {
  const char* data;
  const char* index;
  char* moved;
  Record* record;        // mode_raise counts invalid tuples here
  const Record* guard;   // or null; see is_stopped
  const char* pattern;   // mode_drop stores this for an invalid tuple, chunk by chunk; null: zeros
  int64 pattern_chunks;  // divides the chunks of a block
  int64 total;
  Loops loops;
  Tuple tuple;
};

}  // namespace gatherum

extern "C" __global__ void gather(const __grid_constant__ gatherum::Arguments call) {
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
      from[k] = nullptr;
      to[k] = nullptr;
      if (f >= total) continue;
      const Point p = point_of(call.loops, f);
      const Target t = target_of<MODE>(call.tuple, call.index + p.index);
      to[k] = call.moved + p.moved;
      if (t.valid) {
        from[k] = call.data + p.data + t.data;
      } else if (MODE == mode_raise) {
        atomicAdd(&call.record->invalid_tuples, uint64{1});
      } else if (call.pattern != nullptr) {
        from[k] = call.pattern + f % static_cast<Offset>(call.pattern_chunks) * CHUNK_BYTES;
      }
    }
    Chunk chunks[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k)
      chunks[k] = from[k] != nullptr ? load_constant<Chunk, CHUNK_BYTES>(from[k]) : Chunk{};
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k)
      if (to[k] != nullptr) store_streaming<Chunk, CHUNK_BYTES>(to[k], chunks[k]);
  }
}
