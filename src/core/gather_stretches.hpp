// gather of small blocks, line by line, where each line reads a short stretch of the data (an axis gather,
// or the last axis of gather_elements).
//
// While one line is gathered, the stretch of the next is brought into cache: it is read at random, so
// the processor does not foresee it. Indices that are the same for every line are staged once.
// The plan guarantees: no row loops, block in {1, 2, 4, 8, 16}, one component.
#pragma once

#include "gather_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <int W>
bool gather_stretches(const Nest& nest, const Operands& at, int64_t begin, int64_t end, int64_t* staged) {
  const Loop& line = nest.line_loop();
  const GatherLine<W> kernel{nest, at};
  const int64_t stretch = nest.component[0].size * nest.component[0].stride;
  const int64_t share = (stretch * kBlock / line.extent + kCacheLine - 1) / kCacheLine * kCacheLine;
  bool repeated = true;
  for (int i = 0; i < nest.line; ++i) repeated &= nest.loops[i].index == 0;
  bool any_invalid = false;
  Odometer lead(nest.loops, nest.line, begin);
  Odometer ahead(nest.loops, nest.line, begin);
  for (int64_t unit = begin; unit < end; ++unit, lead.next()) {
    ahead.next();
    const char* next = unit + 1 < end ? at.data + ahead.place().data : nullptr;
    int64_t fetched = 0;
    for (int64_t p = 0; p < line.extent; p += kBlock) {
      const int n = static_cast<int>(std::min<int64_t>(kBlock, line.extent - p));
      const Place place = advance(lead.place(), line, p);
      int64_t* offsets = repeated ? staged + p : staged;
      if (!repeated) any_invalid = false;
      if (!repeated || unit == begin)
        any_invalid |= stage(nest, at.index + place.index, line.index, n, offsets);
      if (any_invalid && nest.mode == Mode::raise) return false;
      if (next != nullptr) prefetch_run(next, fetched, std::min(share, stretch - fetched));
      fetched += share;
      kernel.move(place, offsets, n, any_invalid);
    }
  }
  return true;
}

}  // namespace gatherum::GATHERUM_LEVEL
