// CUDA's extensions of C++ for g++, as far as the kernels of src/gatherum/cuda/kernels use them.
//
// Each variant of a kernel is compiled with this file included first (-include) and -DKERNEL=name, into a
// separate library. runner.cpp runs its threads.
#pragma once

#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static  // kernels with shared memory run one block at a time

struct ShimIndex {
  unsigned x;
};
extern thread_local ShimIndex threadIdx, blockIdx;
extern ShimIndex blockDim, gridDim;

extern "C" void shim_wait_for_block();
extern "C" void shim_wait_for_warp();
extern "C" unsigned shim_lanes_with(int value);
inline void __syncthreads() { shim_wait_for_block(); }
inline void __syncwarp() { shim_wait_for_warp(); }
// For all lanes of a warp.
inline unsigned __match_any_sync(unsigned, int value) { return shim_lanes_with(value); }
inline int __popc(unsigned a) { return __builtin_popcount(a); }

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

template <class T>
inline T __ldg(const T* at) {
  return *at;
}
template <class T>
inline void __stcs(T* at, T value) {
  *at = value;
}

inline int __clz(int a) { return a == 0 ? 32 : __builtin_clz(static_cast<unsigned>(a)); }

// Each operation rounds separately: compilers do not fuse operations across a volatile.
template <class T>
inline T shim_rounded(T value) {
  volatile T rounded = value;
  return rounded;
}
inline float __fadd_rn(float a, float b) { return shim_rounded(a + b); }
inline float __fsub_rn(float a, float b) { return shim_rounded(a - b); }
inline float __fmul_rn(float a, float b) { return shim_rounded(a * b); }
inline float __fdiv_rn(float a, float b) { return shim_rounded(a / b); }
inline double __dadd_rn(double a, double b) { return shim_rounded(a + b); }
inline double __dsub_rn(double a, double b) { return shim_rounded(a - b); }
inline double __dmul_rn(double a, double b) { return shim_rounded(a * b); }
inline double __ddiv_rn(double a, double b) { return shim_rounded(a / b); }

// For the types that CUDA supports.
template <class T>
inline T shim_update(T* at, T value, bool (*replaces)(T, T)) {
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (replaces(value, old) &&
         !__atomic_compare_exchange_n(at, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
#define SHIM_EXTREMES(T)                                              \
  inline T atomicMax(T* at, T value) {                                \
    return shim_update<T>(at, value, [](T a, T b) { return a > b; }); \
  }                                                                   \
  inline T atomicMin(T* at, T value) {                                \
    return shim_update<T>(at, value, [](T a, T b) { return a < b; }); \
  }
#define SHIM_ADD(T) \
  inline T atomicAdd(T* at, T value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }
inline unsigned atomicOr(unsigned* at, unsigned value) {
  return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
SHIM_EXTREMES(int)
SHIM_EXTREMES(unsigned)
SHIM_EXTREMES(long long)
SHIM_EXTREMES(unsigned long long)
SHIM_ADD(unsigned)
SHIM_ADD(unsigned long long)
