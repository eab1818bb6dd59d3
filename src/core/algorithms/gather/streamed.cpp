// Kernel: kernels/gather_rows.hpp. Writes the rows of a large result with streaming stores. In all other
// respects, this algorithm is the same as in direct.cpp.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {

// The largest size of the data for which single items use streaming stores. Reads of larger data miss the
// cache more often, and these misses occupy the buffers that streaming stores use (10M float32 on two threads
// of a Xeon: out of 16 MB, streaming stores reduce the time from 21 to 19 ms; out of 64 MB, they increase it
// from 25 to 27 ms; out of 400 MB, from 67 to 76 ms).
constexpr int64_t kMostItemDataBytes = int64_t{32} << 20;

bool applies_streamed(const Program& p, int, std::string* why) {
  const bool items = p.nest.row_rank() == 0 && p.nest.block < kStreamed;
  if (!streams_past_cache(p.nest, nullptr) || (items && p.components_reach > kMostItemDataBytes))
    return false;
  append(why, "each index tuple moves ", row_bytes(p.nest), " bytes; the result has ", p.bytes / 2,
         " bytes, at least ", thresholds().streamed_bytes,
         ", so it is written with stores that bypass the cache");
  return true;
}

// If the output is not aligned for streaming stores, its rows are copied with normal stores.
RunResult run_streamed(const Program& p, const Execution& call) {
  return gather_direct(p, call, streams_past_cache(p.nest, call.operands.moved));
}

}  // namespace gatherum
