// First include of every kernel: fixed-width integer types, and the macros that a launch sets.
//
// NVRTC compiles these files without system headers. The tests compile the same files with g++;
// shim.hpp then provides the extensions of CUDA C++.
//
// Macros, if a kernel uses them (execution.py, folds.py, movement.py and radix_sort.py choose them):
//   OFFSET_BITS   64, or 32 if every offset, number and position of the launch is below 2^31
//   LOOPS         number of loops in a table of the arguments
//   COMPONENTS    number of components of an index tuple in the arguments
//   INDEX         the type of an index: int8 to uint64
//   INDEX_ALIGN   bytes that every index is aligned to, at most its width
//   SWAPPED       1 if the indices have the other byte order
//   MODE          mode_raise, mode_clip, mode_wrap or mode_drop
//   WIDTH         bytes moved as one word: 1, 2, 4, 8 or 16; data and moved are aligned to it
//   VALUE         value_bool to value_complex128
//   VALUE_ALIGN   bytes that LANES items of data and moved are aligned to, at most their size
//   LANES         neighbouring items of a row that a thread folds
//   CARRIED       bytes of an item if the sort carries the updates as payload, else 0
//   WEIGHTED      bytes of a row's number if the updates are weighted rows, else 0
//   REDUCTION     one of reductions.cuh
//   THREADS, GROUP, FOLDERS   threads per block, threads that share a run, threads that fold it
//   EACH          chunks or updates in flight per thread
//   MOST, SORTERS the most tuples, and the most threads, of a block that sorts
//   DIGITS        the most values of a digit of a sort by radix
//   TABLE         bytes of a table in shared memory
//   KEY_WIDTH, PAYLOAD_WIDTH, WINNER_WIDTH   bytes of these integers: 4 or 8
//   CODE, BITS, PACKED   the type of a quantized value, its bits, and whether a byte holds several values
//   SCALE         the type of a quantized value's scale
#pragma once

namespace gatherum {

using int8 = signed char;
using int16 = short;
using int32 = int;
using int64 = long long;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;

static_assert(sizeof(int16) == 2 && sizeof(int32) == 4 && sizeof(int64) == 8, "as on every CUDA device");

// The unsigned integer of W bytes; for 16 bytes, a vector.
template <int W>
struct Word;
template <>
struct Word<1> {
  using Type = uint8;
};
template <>
struct Word<2> {
  using Type = uint16;
};
template <>
struct Word<4> {
  using Type = uint32;
};
template <>
struct Word<8> {
  using Type = uint64;
};
template <>
struct Word<16> {
  using Type = uint4;  // one load of 128 bits
};

template <bool C, class A, class B>
struct Either {
  using Type = A;
};
template <class A, class B>
struct Either<false, A, B> {
  using Type = B;
};

// For static_assert in the last branch of a chain, reached only by a reduction that the chain lacks.
template <auto>
inline constexpr bool kIsForgotten = true;

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

// Reinterprets the bits as another type.
template <class T, class U>
__device__ __forceinline__ T bits_as(U value) {
  static_assert(sizeof(T) == sizeof(U), "as many bits");
  T same;
  memcpy(&same, &value, sizeof(T));
  return same;
}

// A value as the widest words that are aligned at a multiple of ALIGN.
template <class T, int ALIGN>
struct Pieces {
  static constexpr int kBytes = static_cast<int>(sizeof(T)), kWidth = ALIGN < kBytes ? ALIGN : kBytes;
  static constexpr int kCount = kBytes / kWidth;
  using Piece = typename Word<kWidth>::Type;
  Piece piece[kCount];

  __device__ __forceinline__ static const Piece* in(const char* at) {
    return reinterpret_cast<const Piece*>(at);
  }
  __device__ __forceinline__ static Piece* in(char* at) { return reinterpret_cast<Piece*>(at); }
  __device__ __forceinline__ T whole() const {
    T value;
    memcpy(&value, piece, sizeof(T));
    return value;
  }
};

// Reads a value from an address that is a multiple of ALIGN.
template <class T, int ALIGN>
__device__ __forceinline__ T load(const char* at) {
  Pieces<T, ALIGN> pieces;
#pragma unroll
  for (int i = 0; i < pieces.kCount; ++i) pieces.piece[i] = pieces.in(at)[i];
  return pieces.whole();
}

// Like load, for memory that no thread writes while the kernel runs.
template <class T, int ALIGN>
__device__ __forceinline__ T load_constant(const char* at) {
  Pieces<T, ALIGN> pieces;
#pragma unroll
  for (int i = 0; i < pieces.kCount; ++i) pieces.piece[i] = __ldg(pieces.in(at) + i);
  return pieces.whole();
}

template <class T, int ALIGN>
__device__ __forceinline__ void store(char* at, T value) {
  Pieces<T, ALIGN> pieces;
  memcpy(pieces.piece, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < pieces.kCount; ++i) pieces.in(at)[i] = pieces.piece[i];
}

// Like store, for values that are not read soon: other values stay in the caches.
template <class T, int ALIGN>
__device__ __forceinline__ void store_streaming(char* at, T value) {
  Pieces<T, ALIGN> pieces;
  memcpy(pieces.piece, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < pieces.kCount; ++i) __stcs(pieces.in(at) + i, pieces.piece[i]);
}

}  // namespace gatherum
