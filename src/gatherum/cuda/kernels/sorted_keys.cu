// Writes the keys and payload of keys.cu in sorted order, for up to MOST_TUPLES tuples.
//
// One block computes the keys and sorts them in shared memory (block_sort.cuh).
//
// The plan guarantees: as in keys.cu; one block of whole warps; keys of 4 bytes; `padded` is a power of 2
// from `total` to MOST_TUPLES. Cost: as in keys.cu; carried updates are read in sorted order.
#include "block_sort.cuh"

namespace gatherum {

struct Arguments {
  const char* index;
  const char* moved;
  typename Word<KEY_BYTES>::Type* keys;
  typename Word<PAYLOAD_BYTES>::Type* payload;
  int64 destinations;
  int64 padded;
  int64 total;
  Loops loops;
  Tuple tuple;
};

static_assert(KEY_BYTES == 4, "a key and the number of a tuple share 64 bits");

}  // namespace gatherum

extern "C" __global__ void __launch_bounds__(SORT_THREADS, 1)
    sorted_keys(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ uint64 entries[MOST_TUPLES];
  write_entries(call, entries, nullptr);
  sort_entries(entries, static_cast<int>(call.padded));
  const int total = static_cast<int>(call.total);
  const int first = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int j = first; j < total; j += threads) {
    const uint64 entry = entries[j];
    const Offset f = tuple_of(entry);
    call.keys[j] = key_of(entry);
#if CARRIED_BYTES != 0
    const auto payload =
        load<typename Word<CARRIED_BYTES>::Type, VALUE_ALIGN>(call.moved + point_of(call.loops, f).moved);
#else
    const Offset payload = f;
#endif
    call.payload[j] = static_cast<typename Word<PAYLOAD_BYTES>::Type>(payload);
  }
}
