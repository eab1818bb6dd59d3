// Computes exp or log of every item, bit-for-bit equal to the CPU: out[i] = FUNCTION(in[i]).
//
// The call guarantees: both arrays are contiguous and aligned to their items; they may be the same. Cost:
// each item read and written once; about forty double operations per item.
#include "arithmetic.cuh"
#include "nest.cuh"

namespace gatherum {

__device__ __forceinline__ uint64 bits_of(double x) { return bits_as<uint64>(x); }
__device__ __forceinline__ double of_bits(uint64 bits) { return bits_as<double>(bits); }
__device__ __forceinline__ double choose(bool c, double a, double b) { return c ? a : b; }

#define GATHERUM_FORMULA __device__ __forceinline__
#include "exp_log.cuh"

__device__ __forceinline__ double value_of(double x) { return FUNCTION::of<false>(x); }
__device__ __forceinline__ float value_of(float x) {
  return canonical(static_cast<float>(FUNCTION::of<true>(x)));  // the device's conversion makes another NaN
}

template <class V>
__device__ __forceinline__ typename StoredAs<V>::Type item_of(typename StoredAs<V>::Type item) {
  if constexpr (kIsHalf<V>)
    return narrowed(V{}, value_of(widened(V{}, item)));
  else
    return value_of(item);
}

using Item = typename StoredAs<VALUE>::Type;

struct Arguments {
  const char* from;
  char* to;
  int64 count;
};

}  // namespace gatherum

extern "C" __global__ void elementary(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  const auto* in = reinterpret_cast<const Item*>(call.from);
  auto* out = reinterpret_cast<Item*>(call.to);
  const Offset count = static_cast<Offset>(call.count);
  for (Offset i = first_of_thread(1); i < count; i += grid_stride(1)) {
    out[i] = item_of<VALUE>(in[i]);
  }
}
