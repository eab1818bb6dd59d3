// Writes the keys and payload of keys.cu in sorted order, for up to MOST_TUPLES tuples.
//
// One block computes the keys and sorts them in shared memory with a bitonic network. Entries are compared as
// `key * 2^32 + f`, where `f` is the number of the tuple. All entries differ, so the order is the stable
// order by key: each destination's updates remain in row-major order of the indices, with invalid tuples
// last.
//
// The plan guarantees: as in keys.cu; one block of whole warps; keys of 4 bytes; `padded` is a power of 2
// from `total` to MOST_TUPLES. Cost: as in keys.cu; carried updates are read in sorted order.
#include "indices.cuh"

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

// In a pass of this stride or less, each warp exchanges entries only within a range of twice its threads.
inline constexpr int kWithinWarp = kWarpThreads;

__device__ __forceinline__ void sort_entries(uint64* entries, int padded) {
  const int first = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int size = 2; size <= padded; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      for (int t = first; t < padded / 2; t += threads) {
        const int i = 2 * t - (t & (stride - 1));
        const uint64 a = entries[i], b = entries[i + stride];
        const bool ascends = (i & size) == 0;
        entries[i] = (a > b) == ascends ? b : a;
        entries[i + stride] = (a > b) == ascends ? a : b;
      }
      const int next = stride > 1 ? stride / 2 : size;
      if (stride > kWithinWarp || next > kWithinWarp)
        __syncthreads();
      else
        __syncwarp();
    }
  }
  __syncthreads();
}

}  // namespace gatherum

extern "C" __global__ void __launch_bounds__(SORT_THREADS)
    sorted_keys(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ uint64 entries[MOST_TUPLES];
  const int total = static_cast<int>(call.total), padded = static_cast<int>(call.padded);
  const int first = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int f = first; f < padded; f += threads) {
    uint64 key = ~uint64{0} >> 32;  // after all keys
    if (f < total) {
      const Point p = point_of(call.loops, f);
      const Target t = target_of<MODE>(call.tuple, call.index + p.index);
      key = static_cast<uint64>(t.valid ? static_cast<int64>(p.destination + t.destination)
                                        : call.destinations);
    }
    entries[f] = key << 32 | static_cast<uint64>(f);
  }
  __syncthreads();
  sort_entries(entries, padded);
  for (int j = first; j < total; j += threads) {
    const uint64 entry = entries[j];
    const Offset f = static_cast<Offset>(entry & (~uint64{0} >> 32));
    call.keys[j] = static_cast<uint32>(entry >> 32);
#if CARRIED_BYTES != 0
    const auto payload =
        load<typename Word<CARRIED_BYTES>::Type, VALUE_ALIGN>(call.moved + point_of(call.loops, f).moved);
#else
    const Offset payload = f;
#endif
    call.payload[j] = static_cast<typename Word<PAYLOAD_BYTES>::Type>(payload);
  }
}
