// Kernel: kernels/gather_stretches.hpp. A gather in which every line reads a short stretch of the data.
// During the gather of a line, the stretch of the next line is prefetched. If all lines have the same
// indices, the indices are staged once.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {

// The longest stretch for which streaming stores are used. With streaming stores, gathering 4096 of 16384
// float32 per line took 1.05 times as long, and gathering 250 of 1000 took 0.63 times as long.
constexpr int64_t kLongestStreamedStretch = int64_t{32} << 10;

bool applies_gather_prefetched(const Program& p, int, std::string* why) {
  if (!gathers_items(p, nullptr)) return false;
  const Nest& nest = p.nest;
  const Loop& line = nest.line_loop();
  const int64_t most = thresholds().stretch_bytes;
  const Component& only = nest.component[0];
  const bool is_short =
      only.stride > 0 && only.size > 0 && only.size <= most / only.stride && line.extent <= most;
  if (line.data != 0 || nest.line == 0 || !is_short) return false;
  const int64_t stretch = only.size * only.stride;
  if (line.extent * kCacheLine < stretch / 2) return false;
  append(why, "each line of ", line.extent, " indices reads from ", stretch, " bytes, at most ", most,
         "; the bytes of the next line are prefetched during the gather of a line");
  return true;
}

int64_t scratch_gather_prefetched(const Program& p, int threads) {
  return limited_product(8 * p.nest.line_loop().extent, threads);
}

RunResult run_gather_prefetched(const Program& p, const Execution& call) {
  Nest nest = p.nest;
  nest.fetches_indices = false;  // gather_stretches prefetches them, a few lines at a time
  const Split s = split(nest.outer_count(), nest.line_loop().extent, false, 0, work_bytes(p), call.threads);
  const WorkerScratch scratch(nest.line_loop().extent * 8 + kTile * 8, s.threads);
  if (!scratch) return {.has_memory = false};
  const bool streams = nest.component[0].size * nest.component[0].stride <= kLongestStreamedStretch &&
                       streams_past_cache(nest, call.operands.moved);
  return run_units_of(s, call, [&](int64_t begin, int64_t end, int worker) {
    auto* staged = reinterpret_cast<int64_t*>(scratch.memory_of(worker));
    return chosen_kernels().gather_stretches(nest, call.operands, begin, end, staged, streams);
  });
}

}  // namespace gatherum
