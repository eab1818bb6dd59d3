#include "algorithms/rows.hpp"

#include <algorithm>

#include "engine/thresholds.hpp"
#include "model/program.hpp"

namespace gatherum {

bool writes_in_order(const Nest& nest) {
  int64_t step = nest.block;
  for (int i = nest.rank - 1; i >= 0; --i) {
    const Loop& loop = nest.loops[i];
    if (loop.extent != 1 && loop.moved != step) return false;
    step = limited_product(step, loop.extent);
  }
  return true;
}

bool streams_past_cache(const Nest& nest, const char* address) {
  if (limited_product(nest.block, points(nest, nest.rank)) < thresholds().streamed_bytes) return false;
  const bool items = nest.row_rank() == 0 && (nest.block == 4 || nest.block == 8);
  const int64_t unit = !writes_in_order(nest) ? kCacheLine : items ? nest.block : kStreamed;
  bool whole = reinterpret_cast<uintptr_t>(address) % unit == 0 && nest.block % unit == 0;
  for (int i = 0; i < nest.rank; ++i) whole &= nest.loops[i].moved % unit == 0;
  return whole;
}

int64_t row_bytes(const Nest& nest) {
  int64_t n = nest.block;
  for (int i = 0; i < nest.row_rank(); ++i) n = limited_product(n, nest.rows()[i].extent);
  return n;
}

// Four to eight cache lines, or as many as fit in the cache. If eight lines exceed a core's private cache,
// four lines are up to a third faster (sums along axis 0 of 8192 x 4096 float32); otherwise eight lines are a
// fifth faster.
int64_t columns_in_cache(int64_t column, int64_t item, int64_t most) {
  const int64_t line = std::max<int64_t>(1, kCacheLine / item);
  const int64_t wanted =
      limited_product(8 * line, column) <= thresholds().private_cache_bytes ? 8 * line : 4 * line;
  const int64_t fit = thresholds().shared_cache_bytes / std::max<int64_t>(column, 1) / line * line;
  return std::min(most, std::max(line, std::min(wanted, fit)));
}

}  // namespace gatherum
