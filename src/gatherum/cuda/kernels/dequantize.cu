// Gathers quantized values and dequantizes them, in one pass; src/core/kernels/dequantize.hpp states the
// rules.
//
//   U[f . sU] = round((value(v) - zero[s(v)]) * scale[s(v)]),  v = f . sD + check(X[f . sX], n) * d
//
// f runs over the chunks of the nest of a gather whose items are the values. CHUNK_ITEMS is the number of
// values in a chunk. In s(v), the position of v in the quantized dimension is divided by the block size. A
// filled index produces zeros.
//
// The call guarantees: data, scales and zero points are contiguous; v is a multiple of CHUNK_ITEMS; the data
// are aligned to the size of a chunk, and U to the size of CHUNK_ITEMS items. Cost: every code read and every
// item written once; the scales are read through the cache.
#include "arithmetic.cuh"
#include "indices.cuh"

namespace gatherum {

// Widens the magnitude of a float with FRACTION fraction bits, adding BIAS to its exponent. A subnormal is
// read as if it were a normal number with the smallest exponent, from which `small` is then subtracted.
template <int FRACTION, int BIAS>
__device__ __forceinline__ uint32 widen_small(uint32 magnitude, float small) {
  const uint32 in_place = magnitude << (23 - FRACTION);
  if (magnitude >= 1u << FRACTION) return in_place + (static_cast<uint32>(BIAS) << 23);
  return bits_as<uint32>(difference(bits_as<float>(in_place + (static_cast<uint32>(BIAS + 1) << 23)), small));
}

// The types of codes. Integers of fewer than 8 bits are in the lower bits of `code`.
struct code_uint8 {
  static __device__ __forceinline__ float widened(uint32 code) { return static_cast<float>(code); }
};
struct code_int8 {
  static __device__ __forceinline__ float widened(uint32 code) {
    constexpr uint32 sign = 1u << (CODE_BITS - 1);
    return static_cast<float>(static_cast<int32>(code ^ sign) - static_cast<int32>(sign));
  }
};
struct code_float8_e4m3fn {  // has no infinities; all ones is NaN
  static __device__ __forceinline__ float widened(uint32 code) {
    const uint32 magnitude = code & 0x7Fu, sign = (code & 0x80u) << 24;
    const uint32 number = magnitude == 0x7Fu ? 0x7FC00000u : widen_small<3, 120>(magnitude, 0x1p-6f);
    return bits_as<float>(sign | number);
  }
};
struct code_float8_e5m2 {
  static __device__ __forceinline__ float widened(uint32 code) {
    const uint32 magnitude = code & 0x7Fu, sign = (code & 0x80u) << 24;
    const uint32 special = (magnitude << 21) + 0x70000000u;
    const uint32 number = magnitude >= 0x7Cu ? special : widen_small<2, 112>(magnitude, 0x1p-14f);
    return bits_as<float>(sign | number);
  }
};

struct scale_float32 {
  using Stored = float;
  static __device__ __forceinline__ float widen(float scale) { return scale; }
};
struct scale_float16 {
  using Stored = uint16;
  static __device__ __forceinline__ float widen(uint16 scale) { return widened(Half{}, scale); }
};
struct scale_bfloat16 {
  using Stored = uint16;
  static __device__ __forceinline__ float widen(uint16 scale) { return widened(Bfloat16{}, scale); }
};
struct scale_float8_e8m0fnu {  // 2 to the power of code - 127; 2^-127 is subnormal
  using Stored = uint8;
  static __device__ __forceinline__ float widen(uint8 scale) {
    const uint32 number = scale == 0 ? 0x00400000u : static_cast<uint32>(scale) << 23;
    return bits_as<float>(scale == 0xFF ? 0x7FC00000u : number);
  }
};

struct Arguments {
  const uint8* data;
  const char* index;
  char* moved;
  Record* record;  // mode_raise counts invalid tuples here
  const SCALE::Stored* scales;
  const uint8* zeros;  // or null: then all are `zero`
  int64 zero;          // the bits of a float
  Divisor inner;       // values behind one position of the quantized dimension
  Divisor extent;      // of the quantized dimension
  Divisor block_size;
  int64 blocks;        // of the quantized dimension
  Divisor scale_line;  // the scales' last dimension; zero points start a new byte there
  int64 total;
  Loops loops;
  Tuple tuple;
};

inline constexpr int kCodesPerByte = PACKED ? 8 / CODE_BITS : 1;
using Item = typename StoredAs<VALUE>::Type;

__device__ __forceinline__ uint32 code_at(const uint8* codes, Offset i) {
  const uint32 byte = codes[i / kCodesPerByte];
  return byte >> (static_cast<int>(i % kCodesPerByte) * CODE_BITS) & ((1u << CODE_BITS) - 1);
}

__device__ __forceinline__ Offset scale_of(const Arguments& call, Offset value) {
  const Offset row = call.inner.divide(value), outer = call.extent.divide(row);
  const Offset position = row - outer * static_cast<Offset>(call.extent.value);
  const Offset inner = value - row * static_cast<Offset>(call.inner.value);
  return (outer * static_cast<Offset>(call.blocks) + call.block_size.divide(position)) *
             static_cast<Offset>(call.inner.value) +
         inner;
}

__device__ __forceinline__ float zero_of(const Arguments& call, Offset scale) {
  if (call.zeros == nullptr) return bits_as<float>(static_cast<uint32>(call.zero));
  const Offset size = static_cast<Offset>(call.scale_line.value), line = call.scale_line.divide(scale);
  const Offset padded = (size + kCodesPerByte - 1) / kCodesPerByte * kCodesPerByte;
  return CODE::widened(code_at(call.zeros, line * padded + scale - line * size));
}

template <class V>
__device__ __forceinline__ typename StoredAs<V>::Type rounded(float number) {
  if constexpr (kIsHalf<V>)
    return narrowed(V{}, number);
  else
    return number;
}

__device__ __forceinline__ Item item_of(const Arguments& call, Offset value, uint32 code) {
  const Offset scale = scale_of(call, value);
  const float shifted = difference(CODE::widened(code), zero_of(call, scale));
  return rounded<VALUE>(canonical(product(shifted, SCALE::widen(call.scales[scale]))));
}

struct Chunk {
  Item items[CHUNK_ITEMS];
};

// Returns the chunk that starts at a value. If BYTES is more than 1, one load reads all BYTES bytes of the
// chunk's codes.
template <int BYTES>
__device__ __forceinline__ Chunk chunk_at(const Arguments& call, Offset value) {
  Chunk chunk;
  if constexpr (BYTES <= 1) {
    for (int i = 0; i < CHUNK_ITEMS; ++i)
      chunk.items[i] = item_of(call, value + i, code_at(call.data, value + i));
  } else {
    using Codes = typename Word<BYTES>::Type;
    const Codes codes = load<Codes, BYTES>(reinterpret_cast<const char*>(call.data + value / kCodesPerByte));
    for (int i = 0; i < CHUNK_ITEMS; ++i) {
      const uint32 code = static_cast<uint32>(codes) >> (i * (8 / kCodesPerByte)) & ((1u << CODE_BITS) - 1);
      chunk.items[i] = item_of(call, value + i, code);
    }
  }
  return chunk;
}

}  // namespace gatherum

extern "C" __global__ void dequantize(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  constexpr int bytes = CHUNK_ITEMS * static_cast<int>(sizeof(Item));
  const Offset total = static_cast<Offset>(call.total);
  for (Offset f = first_of_thread(1); f < total; f += grid_stride(1)) {
    const Point p = point_of(call.loops, f);
    const Target t = target_of<MODE>(call.tuple, call.index + p.index);
    if (!t.valid && MODE == mode_raise) atomicAdd(&call.record->invalid_tuples, uint64{1});
    Chunk chunk = {};
    if (t.valid) chunk = chunk_at<CHUNK_ITEMS / kCodesPerByte>(call, p.data + t.data);
    store<Chunk, bytes>(call.moved + static_cast<int64>(p.moved) * static_cast<int64>(sizeof(Item)), chunk);
  }
}
