// scatter through slabs: every unit folds its updates into accumulators for its destinations.
//
// Two ways to share the work. Where units are many (lines of *_elements), each is one task. Where
// there is one unit, its destinations are cut into ranges, and the task of a range looks at every
// index and takes the updates of its own range, in order: nobody else writes there.
//
// The plan guarantees: no row loops, block == item, destination i of a unit lies at i * step, and a
// source that is read in place of the output has the output's strides.
// Cost: the updates read once a range; the fold itself in cache.
#pragma once

#include "slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Takes the updates of one staged block into a slab. `ids` are destination numbers less `first`.
template <class S>
GATHERUM_INLINE void take_block(S& slab, const Block& b, int64_t first, int64_t count, bool all_inside,
                                int64_t columns, int64_t column, const char* updates, int64_t su) {
  using T = typename S::Stored;
  if (all_inside) {
    for (int j = 0; j < b.n; ++j) {
      const int64_t slot = columns == 1 ? b.offsets[j] : b.offsets[j] * columns + column + j;
      slab.take(slot, load_value<T>(updates + j * su));
    }
    return;
  }
  // Collect first whom the block concerns: a branch on every index would be mispredicted.
  int mine[kBlock];
  int n = 0;
  for (int j = 0; j < b.n; ++j) {
    mine[n] = j;
    n += static_cast<uint64_t>(b.offsets[j]) - static_cast<uint64_t>(first) < static_cast<uint64_t>(count);
  }
  for (int k = 0; k < n; ++k) {
    const int j = mine[k];
    const int64_t slot = columns == 1 ? b.offsets[j] - first : (b.offsets[j] - first) * columns + column + j;
    slab.take(slot, load_value<T>(updates + j * su));
  }
}

template <class F, bool Counted>
void scatter_slab_tasks(const SlabScatter& call, const Operands& at, int64_t begin, int64_t end,
                        char* scratch) {
  const Nest& ids = *call.ids;
  const Loop& line = ids.line_loop();
  const bool by_column = line.data != 0;
  const int64_t chunks = (line.extent + call.chunk - 1) / call.chunk;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t unit = task / call.ranges, range = task % call.ranges;
    const int64_t first = range * call.range_size;
    const int64_t chunk_begin = by_column ? unit % chunks * call.chunk : 0;
    const int64_t columns = by_column ? std::min(call.chunk, line.extent - chunk_begin) : 1;
    const Odometer lead(ids.loops, call.units, by_column ? unit / chunks : unit);
    const int64_t start = lead.place().data + first * call.step + chunk_begin * line.data;
    const int64_t count = std::min(call.range_size, call.destinations - first);
    const char* from = call.source != nullptr ? call.source : at.data;
    Slab<F, Counted> slab(scratch, {from + start, at.data + start, call.step, line.data, count, columns},
                          call.combine.include_self);
    slab.read();
    Blocks blocks(ids, call.units, {call.chunk, unit, unit + 1});
    Block b;
    while (stage_next(ids, at.index, blocks, b)) {
      const int64_t column = by_column ? (b.place.data - lead.place().data) / line.data - chunk_begin : 0;
      take_block(slab, b, first, count, call.ranges == 1 && !b.any_invalid, columns, column,
                 at.other + b.place.other, line.other);
    }
    slab.write();
  }
}

}  // namespace gatherum::GATHERUM_LEVEL
