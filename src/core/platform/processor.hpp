// Functions and macros that differ between compilers and processors. system.hpp contains the functions that
// differ between operating systems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) || defined(_M_X64)
#define GATHERUM_X86 1
#ifdef __GNUC__
#include <cpuid.h>
#elif defined(_MSC_VER)
#include <intrin.h>
#endif
#include <immintrin.h>
#else
#define GATHERUM_X86 0
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define GATHERUM_INLINE __forceinline
#define GATHERUM_NOINLINE __declspec(noinline)
#define GATHERUM_RESTRICT __restrict
#else
#define GATHERUM_INLINE inline __attribute__((always_inline))
#define GATHERUM_NOINLINE __attribute__((noinline))
#define GATHERUM_RESTRICT __restrict__
#endif

namespace gatherum {

// Ends the process, in a case that cannot occur.
[[noreturn]] GATHERUM_INLINE void impossible() { std::abort(); }

inline constexpr int64_t kCacheLine = 64;
// About the size of a core's private cache, without the part that streams of indices and updates use.
inline constexpr int64_t kPrivateCacheBytes = int64_t{512} << 10;

// An empty instruction. The compiler treats it as a side effect, so it does not remove calls to the function
// that contains it.
GATHERUM_INLINE void keep() {
#if !defined(_MSC_VER) || defined(__clang__)
  asm volatile("");
#endif
}

// The cache that a prefetch loads into: the first-level cache (to read or to write), or the second-level
// cache if there are more lines than the first level can hold.
enum class FetchTo : uint8_t { first, second, write };

// Hints that the line at `p` will be read (or written) soon. Never faults, even for invalid addresses. A
// function that only prefetches must call keep(); otherwise GCC 12 sees no effect in the function and removes
// the calls to it (rows without prefetch are three times as slow).
template <FetchTo to = FetchTo::first>
GATHERUM_INLINE void prefetch(const void* p) {
#if defined(_MSC_VER) && !defined(__clang__)
  _mm_prefetch(static_cast<const char*>(p), to == FetchTo::second ? _MM_HINT_T1 : _MM_HINT_T0);
#else
  __builtin_prefetch(p, to == FetchTo::write ? 1 : 0, to == FetchTo::second ? 2 : 3);
#endif
}
GATHERUM_INLINE void prefetch_second(const void* p) { prefetch<FetchTo::second>(p); }
GATHERUM_INLINE void prefetch_write(const void* p) { prefetch<FetchTo::write>(p); }

// Prefetches every cache line of a run of bytes. A run that begins inside a cache line, as in memory from
// NumPy, covers one more line than its size suggests. The run may be at any address, even outside its array,
// and the address of its end may wrap around to 0. The loop therefore counts lines and does not compare
// addresses.
template <FetchTo to = FetchTo::first>
GATHERUM_INLINE void prefetch_bytes(const char* base, int64_t offset, int64_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(offset);
  const uintptr_t inside = begin % kCacheLine;
  for (int64_t r = 0; r < bytes + static_cast<int64_t>(inside); r += kCacheLine)
    prefetch<to>(reinterpret_cast<const void*>(begin - inside + static_cast<uintptr_t>(r)));
  keep();
}

// Copies 4, 8 or 16 bytes to an address that is a multiple of that size, with a store that bypasses the
// caches (with a plain store if the processor has no such store). Consecutive copies are combined into lines.
inline constexpr int64_t kStreamed = 16;
template <int W>
GATHERUM_INLINE void stream_item(char* to, const char* from) {
  static_assert(W == 4 || W == 8 || W == kStreamed);
#if GATHERUM_X86
  if constexpr (W == kStreamed) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  } else if constexpr (W == 8) {
    long long item;
    std::memcpy(&item, from, W);
    _mm_stream_si64(reinterpret_cast<long long*>(to), item);
  } else {
    int item;
    std::memcpy(&item, from, W);
    _mm_stream_si32(reinterpret_cast<int*>(to), item);
  }
#else
  std::memcpy(to, from, W);
#endif
}

// The same for one aligned cache line.
GATHERUM_INLINE void stream_line(char* to, const char* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX__)
  for (int i = 0; i < 2; ++i)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + i,
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + i));
#elif GATHERUM_X86
  for (int i = 0; i < 4; ++i) stream_item<kStreamed>(to + i * kStreamed, from + i * kStreamed);
#else
  std::memcpy(to, from, kCacheLine);
#endif
}

// A memory fence: streamed lines are ordered before everything that follows.
GATHERUM_INLINE void stream_fence() {
#if GATHERUM_X86
  _mm_sfence();
#endif
}

// Unrolls a loop that is so short that its counter is a third of the work (items in cache: -0.3 ns).
#define GATHERUM_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define GATHERUM_UNROLL(n) GATHERUM_PRAGMA(unroll n)
#elif defined(__GNUC__)
#define GATHERUM_UNROLL(n) GATHERUM_PRAGMA(GCC unroll n)
#else
#define GATHERUM_UNROLL(n)
#endif

// A compiler barrier for the memory at `p`. Values that were copied from `p` to local memory are read from
// the copies; the compiler cannot read `p` a second time instead.
GATHERUM_INLINE void compiler_barrier(const void* p) {
#if defined(_MSC_VER) && !defined(__clang__)
  static_cast<void>(p);
  _ReadWriteBarrier();
#else
  asm volatile("" : : "r"(p) : "memory");
#endif
}

// Returns the value, and hides from the compiler how it was computed. The compiler then cannot load the value
// a second time. It also cannot fuse a complex product with the sum that follows, as GCC 12 does even with
// -ffp-contract=off.
template <class T>
GATHERUM_INLINE T opaque(T value) {
#if GATHERUM_X86 && !(defined(_MSC_VER) && !defined(__clang__))
  asm("" : "+x"(value));
#elif defined(__aarch64__) && !(defined(_MSC_VER) && !defined(__clang__))
  asm("" : "+w"(value));
#endif
  return value;
}

// The same for an integer that is used in a general register.
template <class T>
GATHERUM_INLINE T opaque_integer(T value) {
#if !(defined(_MSC_VER) && !defined(__clang__))
  asm("" : "+r"(value));
#endif
  return value;
}

// The thread's control register for floating-point arithmetic. kNearest rounds to nearest and keeps
// subnormals.
#if GATHERUM_X86
using FloatControl = unsigned;
constexpr FloatControl kNearest = 0x1F80;
GATHERUM_INLINE FloatControl float_control() { return _mm_getcsr(); }
GATHERUM_INLINE void set_float_control(FloatControl control) { _mm_setcsr(control); }
#elif defined(__aarch64__)
using FloatControl = uint64_t;
constexpr FloatControl kNearest = 0;
GATHERUM_INLINE FloatControl float_control() {
  FloatControl control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
GATHERUM_INLINE void set_float_control(FloatControl control) {
  asm volatile("msr fpcr, %0" : : "r"(control));
}
#else
using FloatControl = unsigned;
constexpr FloatControl kNearest = 0;
GATHERUM_INLINE FloatControl float_control() { return 0; }
GATHERUM_INLINE void set_float_control(FloatControl) {}
#endif

// Sets kNearest for one scope. Another library in this process may have set flush-to-zero on the calling
// thread, and a sum must not depend on that.
class FloatMode {
 public:
  FloatMode() : saved_(float_control()) { set_float_control(kNearest); }
  ~FloatMode() { set_float_control(saved_); }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  FloatControl saved_;
};

// Returns true if the processor and the system support an instruction-set level: 3 and 4 are x86-64-v3 and
// v4, and 0 is the compiler's default. __builtin_cpu_supports is not used, because it detects no features
// with Zig's compiler library.
inline bool processor_has(int level) {
#if GATHERUM_X86 && defined(__GNUC__)
  unsigned a = 0, basic = 0, more = 0, extended = 0, d = 0, saved = 0;
  constexpr unsigned v3_basic = bit_SSE3 | bit_SSSE3 | bit_FMA | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 |
                                bit_MOVBE | bit_POPCNT | bit_OSXSAVE | bit_AVX | bit_F16C;
  constexpr unsigned v3_more = bit_BMI | bit_AVX2 | bit_BMI2;
  constexpr unsigned v4_more = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  constexpr unsigned v3_extended = bit_LAHF_LM | bit_LZCNT;
  const auto all_of = [](unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; };
  if (level != 0) {
    unsigned b = 0, c = 0;
    if (!__get_cpuid(1, &a, &b, &basic, &d) || !all_of(basic, v3_basic)) return false;
    if (!__get_cpuid_count(7, 0, &a, &more, &c, &d) || !all_of(more, v3_more)) return false;
    if (!__get_cpuid(0x80000001, &a, &b, &extended, &d) || !all_of(extended, v3_extended)) return false;
    asm volatile("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));  // the registers that the system saves
    if (level == 3) return all_of(saved, 0x6);
    return level == 4 && all_of(more, v4_more) && all_of(saved, 0xe6);
  }
#endif
  return level == 0;
}

// Returns true for processors made by Intel.
inline bool is_intel() {
  constexpr unsigned genu = 0x756E6547;  // the first letters of "GenuineIntel"
#if GATHERUM_X86 && defined(_MSC_VER)
  int words[4];
  __cpuid(words, 0);
  return static_cast<unsigned>(words[1]) == genu;
#elif GATHERUM_X86
  unsigned highest_leaf = 0, first = 0, second = 0, third = 0;
  return __get_cpuid(0, &highest_leaf, &first, &third, &second) != 0 && first == genu;
#else
  return genu == 0;
#endif
}

}  // namespace gatherum
