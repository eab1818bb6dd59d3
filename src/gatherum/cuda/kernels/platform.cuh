// The first include of every kernel: fixed-width integer types, and the macros that a launch sets.
//
// NVRTC compiles these files without system headers. The tests compile the same files with g++;
// shim.hpp then provides the extensions of CUDA C++.
//
// Macros, if a kernel uses them (launch_sizes.py, folds.py, movement.py, small_scatters.py and radix_sort.py
// choose them):
//   OFFSET_BITS        64, or 32 if every offset, number and position of the launch is below 2^31
//   LOOPS              number of loops in a table of the arguments
//   COMPONENTS         number of components of an index tuple in the arguments
//   INDEX              the type of an index: int8 to uint64
//   INDEX_ALIGN        bytes that every index is aligned to, at most its width
//   INDEX_SWAPPED      1 if the indices have the other byte order
//   MODE               one of modes.cuh
//   CHUNK_BYTES        bytes moved as one word: 1, 2, 4, 8 or 16; data and moved are aligned to it
//   CHUNK_ITEMS        neighbouring items of a row that a thread folds, or values that it dequantizes
//   VALUE              value_bool to value_complex128
//   VALUE_ALIGN        bytes that CHUNK_ITEMS items of data and moved are aligned to, at most their size
//   CARRIED_BYTES      bytes of an item if the sort carries the updates as payload, else 0
//   ROW_NUMBER_BYTES   bytes of the number of a row if the updates are weighted rows, else 0
//   REDUCTION          one of reductions.cuh
//   THREADS            threads of a block
//   GROUP_THREADS      threads that fold the updates of one destination together: a warp or a block
//   FOLDING_THREADS    those of them that fold; the others fetch updates
//   PER_THREAD         chunks, updates or pairs in flight per thread
//   MOST_TUPLES        the most tuples that a block sorts
//   SORT_THREADS       the most threads of such a block
//   SMALL_THREADS      threads of a block that sorts and writes a small scatter
//   SOURCE             the old values of a small scatter: 0 in place, 1 with the layout of the data, 2 one
//   item ONE_BLOCK          1 if the only block of a launch fills the record, else 0 DIGIT_VALUES       the
//   most values of a digit of a sort by radix TABLE_BYTES        bytes of a table in shared memory
//   PATTERN_BYTES      the most bytes of a fill item that a launch writes
//   KEY_BYTES, PAYLOAD_BYTES, WINNER_BYTES   bytes of these integers: 4 or 8
//   CODE, CODE_BITS    the type of a quantized value, and its bits
//   PACKED             1 if a byte holds several quantized values
//   SCALE              the type of a quantized value's scale
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

inline constexpr int kWarpThreads = 32;  // threads of a warp, on every CUDA device

// The value types that are integers; arithmetic.cuh has the others.
using value_int8 = int8;
using value_int16 = int16;
using value_int32 = int32;
using value_int64 = int64;
using value_uint8 = uint8;
using value_uint16 = uint16;
using value_uint32 = uint32;
using value_uint64 = uint64;

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
struct Conditional {
  using Type = A;
};
template <class A, class B>
struct Conditional<false, A, B> {
  using Type = B;
};

// For `static_assert` in the last branch of a chain of conditions, which only a mode or a reduction
// that the chain lacks reaches.
template <auto>
inline constexpr bool kIsUnhandled = true;

template <class A, class B>
inline constexpr bool kIsSame = false;
template <class A>
inline constexpr bool kIsSame<A, A> = true;

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
struct AlignedWords {
  static constexpr int kBytes = static_cast<int>(sizeof(T)), kWidth = ALIGN < kBytes ? ALIGN : kBytes;
  static constexpr int kCount = kBytes / kWidth;
  using Unsigned = typename Word<kWidth>::Type;
  Unsigned word[kCount];

  __device__ __forceinline__ static const Unsigned* at(const char* address) {
    return reinterpret_cast<const Unsigned*>(address);
  }
  __device__ __forceinline__ static Unsigned* at(char* address) {
    return reinterpret_cast<Unsigned*>(address);
  }
  __device__ __forceinline__ T value() const {
    T result;
    memcpy(&result, word, sizeof(T));
    return result;
  }
};

// Reads a value from an address that is a multiple of ALIGN.
template <class T, int ALIGN>
__device__ __forceinline__ T load(const char* address) {
  AlignedWords<T, ALIGN> words;
#pragma unroll
  for (int i = 0; i < words.kCount; ++i) words.word[i] = words.at(address)[i];
  return words.value();
}

// Like `load`, for memory that no thread writes while the kernel runs.
template <class T, int ALIGN>
__device__ __forceinline__ T load_constant(const char* address) {
  AlignedWords<T, ALIGN> words;
#pragma unroll
  for (int i = 0; i < words.kCount; ++i) words.word[i] = __ldg(words.at(address) + i);
  return words.value();
}

template <class T, int ALIGN>
__device__ __forceinline__ void store(char* address, T value) {
  AlignedWords<T, ALIGN> words;
  memcpy(words.word, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < words.kCount; ++i) words.at(address)[i] = words.word[i];
}

// Like `store`, for values that are not read soon, so that other values stay in the caches.
template <class T, int ALIGN>
__device__ __forceinline__ void store_streaming(char* address, T value) {
  AlignedWords<T, ALIGN> words;
  memcpy(words.word, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < words.kCount; ++i) __stcs(words.at(address) + i, words.word[i]);
}

}  // namespace gatherum
