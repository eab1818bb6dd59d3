// Converts every item to the type in which a reduction accumulates: U[f . sU] = widen(D[f . sD]).
//
// The call guarantees: U does not overlap D; D is aligned to VALUE_ALIGN, U to its items. Cost: each item
// read and written once.
#include "arithmetic.cuh"
#include "nest.cuh"

namespace gatherum {

using F = Fold<VALUE, Reduction::REDUCTION>;

struct Arguments {
  const char* data;
  char* moved;
  int64 total;
  Loops loops;
};

}  // namespace gatherum

extern "C" __global__ void widen(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  const Offset total = static_cast<Offset>(call.total);
  for (Offset f = first_of_thread(1); f < total; f += grid_stride(1)) {
    const Point p = point_of(call.loops, f);
    const auto item = load<typename F::Stored, VALUE_ALIGN>(call.data + p.data);
    *reinterpret_cast<typename F::Sum*>(call.moved + p.moved) = F::widen(item);
  }
}
