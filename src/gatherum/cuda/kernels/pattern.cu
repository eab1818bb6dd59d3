// Writes up to PATTERN_BYTES bytes of the arguments to scratch memory: a piece of a fill item. Runs as one
// block.
//
// A copy from the host would need memory that outlives a captured graph.
#include "platform.cuh"

namespace gatherum {

struct Arguments {
  char* to;
  int64 count;
  char bytes[PATTERN_BYTES];
};

}  // namespace gatherum

extern "C" __global__ void pattern(const __grid_constant__ gatherum::Arguments call) {
  using namespace gatherum;
  for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(call.count);
       i += static_cast<int>(blockDim.x))
    call.to[i] = call.bytes[i];
}
