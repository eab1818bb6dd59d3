// gather_stretches: gathers small blocks, line by line, where each line reads a short stretch of the data (an
// axis gather, or the last axis of gather_elements).
//
// During the gather of one line, the stretch of the next line is prefetched, because the processor does not
// predict the random accesses to the stretch. Indices that are the same for every line are staged once. The
// plan guarantees: no row loops, one of the block sizes in Widths, one component. The caller guarantees that
// staging prefetches no indices.
#pragma once

#include "kernels/gather_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The number of bytes that are prefetched at a time. If all cache lines for a complete block were prefetched
// at once, there would be more outstanding misses than a core can have, and the core would stall (4096 of
// 16384 float32 per line: 6.6 ms instead of 5.0).
inline constexpr int64_t kFetchBytes = 8 * kCacheLine;

// The cache lines of a run that remain to be prefetched. (As in prefetch_on, indices are prefetched one page
// ahead, but in portions smaller than a block. This reduces the time of gather_elements with 4096 float32 per
// line from 8.2 ms to 7.1 ms.)
struct RemainingLines {
  uintptr_t next, end;

  RemainingLines(const char* base, int64_t offset, int64_t bytes) {
    const auto start = reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(offset);
    next = start / kCacheLine * kCacheLine;
    end = start + static_cast<uintptr_t>(bytes);
  }

  GATHERUM_INLINE void fetch(int64_t bytes) {
    const uintptr_t stop = std::min(end, next + static_cast<uintptr_t>(bytes));
    for (; next < stop; next += kCacheLine) prefetch(reinterpret_cast<const void*>(next));
    keep();
  }
};

template <int W>
void stream_items(const Operands& operands, const ByteOffsets& base, const int64_t* GATHERUM_RESTRICT offsets,
                  int n) {
  const char* from = operands.data + base.data;
  char* to = operands.moved + base.moved;
  for (int j = 0; j < n; ++j) stream_item<W>(to + j * W, from + offsets[j]);
}

// If `streams` is true, items use streaming stores.
template <int W, bool streams>
bool gather_stretches(const Nest& nest, const Operands& operands, int64_t begin, int64_t end,
                      int64_t* staged) {
  const Loop& line = nest.line_loop();
  const int64_t stretch = nest.component[0].size * nest.component[0].stride;
  // The number of items that are gathered per prefetch, and their share of the stretch.
  const int64_t items = stretch > 0 ? limited_product(kFetchBytes, line.extent) / stretch : kTile;
  const int step = static_cast<int>(std::clamp<int64_t>(items / 8 * 8, 8, kTile));
  const int64_t share = limited_product(std::max<int64_t>(stretch, 0), step) / line.extent + kCacheLine;
  bool repeated = true;
  for (int i = 0; i < nest.line; ++i) repeated &= nest.loops[i].index == 0;
  const int64_t index_bytes = repeated || line.index != nest.index.width ? 0 : line.index;
  bool any_invalid = false;
  Odometer lead(nest.loops, nest.line, begin);
  Odometer next_lead(nest.loops, nest.line, begin);
  for (int64_t unit = begin; unit < end; ++unit, lead.next()) {
    next_lead.next();
    RemainingLines data_lines(operands.data, next_lead.offsets().data, unit + 1 < end ? stretch : 0);
    RemainingLines index_lines(operands.index, lead.offsets().index + kIndexBytesAhead,
                               line.extent * index_bytes);
    for (int64_t p = 0; p < line.extent; p += kTile) {
      const int n = static_cast<int>(std::min<int64_t>(kTile, line.extent - p));
      const ByteOffsets base = advance(lead.offsets(), line, p);
      int64_t* offsets = repeated ? staged + p : staged;
      if (!repeated) any_invalid = false;
      if (!repeated || unit == begin)
        any_invalid |= stage(nest, operands.index + base.index, line.index, n, offsets);
      if (any_invalid && nest.mode == Mode::raise) return false;
      for (int q = 0; q < n; q += step) {
        data_lines.fetch(share);
        index_lines.fetch(step * index_bytes);
        const int count = std::min(step, n - q);
        if constexpr (streams) {
          if (!any_invalid) {
            stream_items<W>(operands, advance(base, line, q), offsets + q, count);
            continue;
          }
        }
        move_items<W>(nest, operands, advance(base, line, q), offsets + q, count, any_invalid);
      }
    }
  }
  if constexpr (streams) stream_fence();
  return true;
}

}  // namespace gatherum::GATHERUM_LEVEL
