// Atomic folds of integers, shared by fold_atomic.cu and fold_table.cu.
#pragma once

#include "platform.cuh"
#include "reductions.cuh"

namespace gatherum {

template <Reduction R, class T>
__device__ __forceinline__ void fold_at(char* address, T update) {
  using Bits = typename Word<sizeof(T)>::Type;
  if constexpr (R == Reduction::add)
    atomicAdd(reinterpret_cast<Bits*>(address), static_cast<Bits>(update));
  else if constexpr (R == Reduction::max)
    atomicMax(reinterpret_cast<T*>(address), update);
  else if constexpr (R == Reduction::min)
    atomicMin(reinterpret_cast<T*>(address), update);
  else
    static_assert(!kIsUnhandled<R>, "fold_at: no atomic folds with this reduction");
}

}  // namespace gatherum
