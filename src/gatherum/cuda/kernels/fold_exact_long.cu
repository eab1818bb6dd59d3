// Sums the longer segments exactly: a warp or a block per segment and stretch of its rows. A chunk is one
// item.
//
//   D[e] as in fold_exact.cu, for every segment of more than `more_than` entries and at most `at_most` (0: no
//        limit)
//
// Integers may be added in any order. The GROUP_THREADS threads share the updates in strides: each sums every
// n-th update of one item of the row. Then all threads add their limbs to shared memory with atomics, and one
// thread per item rounds the sum. At most FOLDING_THREADS items of a row form a stretch.
//
// The plan guarantees: as in fold_long.cu. Cost: as in fold_exact.cu, plus one atomic per thread and limb in
// use. FOLDING_THREADS, `more_than` and `at_most` are not measured for exact sums.
#include "exact.cuh"
#include "segments.cuh"

namespace gatherum {

using Sums = Sum::Shared[FOLDING_THREADS];

// All threads of the group call this with the same segment. Not inlined, because ptxas would otherwise take
// minutes for sm_100.
__device__ __noinline__ void sum_segment(const Arguments& call, const Segment& segment, int lane,
                                         Sums& sums) {
  const int stride = GROUP_THREADS / segment.chunks, first = lane / segment.chunks;
  const int chunk = lane - first * segment.chunks;
  if (lane < segment.chunks) sums[lane] = {};
  wait_for_group();
  const Point p = point_of(call.sorted.row_loops, segment.first_chunk + chunk);
  Sum sum;
  if (first < stride) {
    for (Offset j = segment.begin + first; j < segment.end; j += stride)
      sum.add_term(update_of(call.sorted, call.moved, j, p.moved));
    sum.add_to(sums[chunk]);
  }
  wait_for_group();
  if (lane < segment.chunks) {
    sum.copy_from(sums[chunk]);
    char* const destination =
        call.data + call.sorted.destination_offset(call.sorted.keys[segment.begin]) + p.data;
    finish(destination, sum, segment.end - segment.begin, call.include_self != 0);
  }
}

}  // namespace gatherum

extern "C" __global__ void fold_exact_long(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ Sums sums[THREADS / GROUP_THREADS];
  __shared__ Segment segments[THREADS];
  if (is_stopped(call.guard)) return;
  for_each_segment(call, segments, [&](const Segment& segment, int lane, int group) {
    sum_segment(call, segment, lane, sums[group]);
  });
}
