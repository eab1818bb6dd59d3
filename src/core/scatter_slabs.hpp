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

// Which of the updates of a block concern a slab, and where in it they go.
struct Share {
  int64_t first, count;     // the slab's destinations
  bool all;                 // they are all there are
  int64_t columns, column;  // columns of the slab, and the first of this block
};

// Takes the updates of one staged block, in order. su: bytes from one update to the next.
template <class Stored, class Taker>
GATHERUM_INLINE void take_block(Taker take, Block& b, const Share& share, const char* updates, int64_t su) {
  const int64_t* GATHERUM_RESTRICT offsets = b.offsets;
  const int n = b.n;
  const int64_t first = share.first, columns = share.columns, column = share.column;
  if (share.all && !b.any_invalid) {
    if (columns == 1)
      for (int j = 0; j < n; ++j) take(offsets[j], load_value<Stored>(updates + j * su));
    else
      for (int j = 0; j < n; ++j)
        take(offsets[j] * columns + column + j, load_value<Stored>(updates + j * su));
    return;
  }
  choose(b, first, first + share.count);
  const int* GATHERUM_RESTRICT which = b.which;
  for (int i = 0, chosen = b.chosen; i < chosen; ++i) {
    const int j = which[i];
    const int64_t slot = columns == 1 ? offsets[j] - first : (offsets[j] - first) * columns + column + j;
    take(slot, load_value<Stored>(updates + j * su));
  }
}

// Takes the updates of a range of units, in order; false when it has met (and skipped) an invalid tuple.
// enter(block) is called before those of a block are taken.
template <class Stored, class Taker, class Enter>
bool take_units(const Taker& take, const Nest& ids, Blocks& blocks, const Operands& at, const Share& share,
                const Enter& enter) {
  constexpr auto packed = static_cast<int64_t>(sizeof(Stored));
  const Loop& line = ids.line_loop();
  Block pair[2];
  Block* now = &pair[0];
  Block* then = &pair[1];
  bool valid = true;
  bool more = stage_next(ids, at.index, blocks, *now);
  while (more) {
    valid &= !now->any_invalid;
    enter(*now);
    const char* updates = at.other + now->place.other;
    if (share.all && !now->any_invalid && share.columns == 1 && line.other == packed) {
      more = blocks.next(then->place, then->n);
      const int64_t *GATHERUM_RESTRICT offsets = now->offsets, *next = then->offsets;
      const bool far = ids.far;
      const auto fold = [=](int j) { take(offsets[j], load_value<Stored>(updates + j * packed)); };
      const auto fetch = [=](int j) {
        if (far)
          for (int l = 0; l < kLanes; ++l) take.fetch(next[j + l]);
      };
      then->any_invalid = stage_while(ids, at.index + then->place.index, line.index, more ? then->n : 0,
                                      then->offsets, now->n, fold, fetch);
    } else {
      take_block<Stored>(take, *now, share, updates, line.other);
      more = stage_next(ids, at.index, blocks, *then);
    }
    std::swap(now, then);
  }
  return valid;
}

// Columns are short runs far apart, which the processor does not foresee: fetch those of a few rows on.
// Items more than a line apart are left to it: the run between them may be the whole array.
GATHERUM_INLINE void prefetch_rows_on(const Nest& nest, int units, const Operands& at, const Block& b) {
  if (units == nest.line) return;
  const Loop& row = nest.loops[nest.line - 1];
  const Loop& line = nest.line_loop();
  const Place on = advance(b.place, row, kRowsOn);
  const auto fetch = [&](const char* base, int64_t offset, int64_t step) {
    if (std::abs(step) > kCacheLine) return;
    const int64_t bytes = b.n * std::abs(step);
    prefetch_run(base, step < 0 ? offset - bytes - step : offset, bytes);
  };
  fetch(at.index, on.index, line.index);
  fetch(at.other, on.other, line.other);
}

// Which slab a task has: the destinations [first, first + stretch.count) of a unit, and its columns.
struct Task {
  int64_t unit, first, chunk_begin, lead;
  Stretch stretch;
};

inline Task slab_task(const SlabScatter& call, const Operands& at, int64_t task) {
  const Nest& ids = *call.ids;
  const Loop& line = ids.line_loop();
  const bool by_column = line.data != 0;
  const int64_t chunks = by_column ? (line.extent - 1) / call.chunk + 1 : 1;
  Task t{};
  t.unit = task / call.ranges;
  t.first = task % call.ranges * call.range_size;
  t.chunk_begin = t.unit % chunks * call.chunk;
  t.lead = Odometer(ids.loops, call.units, t.unit / chunks).place().data;
  const int64_t start = t.lead + t.first * call.step + t.chunk_begin * line.data;
  const char* from = call.source != nullptr ? call.source : at.data;
  const int64_t columns = by_column ? std::min(call.chunk, line.extent - t.chunk_begin) : 1;
  t.stretch = {from + start,
               at.data + start,
               call.step,
               line.data,
               std::min(call.range_size, call.destinations - t.first),
               columns};
  return t;
}

template <class F, bool Counted>
bool slab_take(const SlabScatter& call, const Operands& at, int64_t task, char* scratch) {
  const Nest& ids = *call.ids;
  const Loop& line = ids.line_loop();
  const Task t = slab_task(call, at, task);
  Slab<F, Counted> slab(scratch, t.stretch, call.combine.include_self, call.direct);
  slab.read();
  Blocks blocks(ids, call.units, {call.chunk, t.unit, t.unit + 1});
  Share share{t.first, t.stretch.count, call.ranges == 1, t.stretch.columns, 0};
  return take_units<typename F::Stored>(slab.taker(), ids, blocks, at, share, [&](const Block& b) {
    if (line.data == 0) return;
    prefetch_rows_on(ids, call.units, at, b);
    share.column = (b.place.data - t.lead) / line.data - t.chunk_begin;
  });
}

template <class F, bool Counted>
void slab_write(const SlabScatter& call, const Operands& at, int64_t task, char* scratch) {
  const Stretch stretch = slab_task(call, at, task).stretch;
  const Slab<F, Counted> slab(scratch, stretch, call.combine.include_self, call.direct);
  slab.write(0, stretch.count);
}

}  // namespace gatherum::GATHERUM_LEVEL
