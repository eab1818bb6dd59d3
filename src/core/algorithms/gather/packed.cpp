// Kernel: kernels/gather_packed.hpp. A gather along an axis that is not the last. Columns are first copied to
// contiguous memory.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

int64_t column_bytes(const Program& p) { return limited_product(p.nest.component[0].size, p.nest.block); }

int64_t columns_of(const Program& p) {
  return columns_in_cache(column_bytes(p), p.nest.block, p.nest.line_loop().extent);
}

// Returns true if runs of this many bytes are whole cache lines of the output, so that streaming stores are
// used.
bool streams_columns(const Nest& nest, int64_t bytes, const char* to) {
  const int64_t block = nest.block;
  bool whole = (bytes | reinterpret_cast<intptr_t>(to)) % kCacheLine == 0 && nest.line_loop().moved == block;
  for (int i = 0; i < nest.rank; ++i) whole &= i == nest.line || nest.loops[i].moved % kCacheLine == 0;
  return whole && (block == 4 || block == 8 || block == kStreamed) &&
         limited_product(block, points(nest, nest.rank)) >= thresholds().streamed_bytes;
}

}  // namespace

bool applies_gather_packed(const Program& p, int, std::string* why) {
  if (!gathers_items(p, nullptr)) return false;
  const Nest& nest = p.nest;
  const int64_t size = nest.component[0].size;
  const int64_t rows = points(nest, nest.line) / points(nest, p.unit_loops);
  const bool pays = nest.line_loop().data == nest.block && nest.component[0].stride > 0 &&
                    limited_product(2, rows) >= size &&
                    column_bytes(p) <= thresholds().shared_cache_bytes / 32;
  if (!pays) return false;
  append(why, "neighbouring indices read from different columns of ", size, " items: ", columns_of(p),
         " columns at a time are first copied to contiguous memory in the cache");
  return true;
}

int64_t scratch_gather_packed(const Program& p, int threads) {
  return limited_product(limited_product(columns_of(p), column_bytes(p)), threads);
}

RunResult run_gather_packed(const Program& p, const Execution& call) {
  const Nest& nest = p.nest;
  const Split s = split(points(nest, p.unit_loops), nest.line_loop().extent, true, columns_of(p),
                        work_bytes(p), call.threads);
  const WorkerScratch scratch(p.destinations * s.chunk * nest.block, s.threads);
  if (!scratch) return {.has_memory = false};
  const bool streams = streams_columns(nest, s.chunk * nest.block, call.operands.moved);
  const PackedGather packed{.nest = &nest,
                            .unit_loops = p.unit_loops,
                            .chunk = s.chunk,
                            .destinations = p.destinations,
                            .step = p.step,
                            .streams = streams};
  return run_units_of(s, call, [&](int64_t begin, int64_t end, int worker) {
    return chosen_kernels().gather_packed(packed, call.operands, begin, end, scratch.memory_of(worker));
  });
}

}  // namespace gatherum
