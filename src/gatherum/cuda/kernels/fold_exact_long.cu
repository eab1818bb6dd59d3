// Sums the longer runs exactly: a warp or a block per run and stretch of its rows.
//
//   D[e] as in fold_exact.cu, for every run of more than `above` entries and at most `longest` (0: no limit)
//
// Integers may be added in any order. The GROUP threads share the updates in strides: each sums every n-th
// update of one item of the row. Then all threads add their limbs to shared memory by atomics, and one thread
// per item rounds. At most FOLDERS items of a row form a stretch.
//
// The plan guarantees: as in fold_long.cu. Cost: as in fold_exact.cu, plus one atomic per thread and limb in
// use. FOLDERS, `above` and `longest` are not measured for exact sums.
#include "exact.cuh"
#include "runs.cuh"

namespace gatherum {

using Sums = Sum::Shared[FOLDERS];

// All threads of the group call this with the same run. Not inlined, or ptxas takes minutes on sm_100.
__device__ __noinline__ void add_run(const Arguments& call, const Run& run, int lane, Sums& sums) {
  const int strands = GROUP / run.parts, strand = lane / run.parts, part = lane - strand * run.parts;
  if (lane < run.parts) sums[lane] = {};
  wait_for_group();
  const Place p = place_of(call.sorted.row, run.first + part);
  Sum sum;
  if (strand < strands) {
    for (Offset j = run.begin + strand; j < run.end; j += strands)
      sum.take(update_of(call.sorted, call.moved, j, p.moved));
    sum.add_to(sums[part]);
  }
  wait_for_group();
  if (lane < run.parts) {
    sum.read(sums[part]);
    char* const at = call.data + call.sorted.destination(call.sorted.keys[run.begin]) + p.data;
    finish(at, sum, run.end - run.begin, call.include_self != 0);
  }
}

}  // namespace gatherum

extern "C" __global__ void fold_exact_long(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  __shared__ Sums sums[THREADS / GROUP];
  __shared__ Run found[THREADS];
  if (is_stopped(call.guard)) return;
  each_long_run(call, found,
                [&](const Run& run, int lane, int group) { add_run(call, run, lane, sums[group]); });
}
