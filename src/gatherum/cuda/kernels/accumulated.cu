// Rounds the sums of an accumulator: out[i] = finish(sum[i], count[i] + include_self) for every item with
// updates.
//
// An item without updates keeps its data. `last` contains the last update of each item. This update is the
// result if nothing was folded, because a copy keeps the payload of a NaN. A null `last` means that no result
// is a copy of an update.
//
// The call guarantees: all arrays are contiguous and aligned to their items; out overlaps none of them. Cost:
// each item read and written once.
#include "arithmetic.cuh"
#include "nest.cuh"

namespace gatherum {

using F = Fold<VALUE, Reduction::REDUCTION>;

struct Arguments {
  const typename F::Sum* sums;
  const int64* counts;
  const typename F::Stored* data;
  const typename F::Stored* last;
  typename F::Stored* out;
  int64 include_self;  // 1 if the data takes part
  int64 total;
};

}  // namespace gatherum

extern "C" __global__ void accumulated(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  const Offset total = static_cast<Offset>(call.total);
  for (Offset i = first_of_thread(1); i < total; i += grid_stride(1)) {
    const int64 updates = call.counts[i], terms = updates + call.include_self;
    if (updates == 0)
      call.out[i] = call.data[i];
    else if (terms == 1 && call.last != nullptr)
      call.out[i] = call.last[i];
    else
      call.out[i] = F::finish(call.sums[i], terms, terms > 1);
  }
}
