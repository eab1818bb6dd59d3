// scatter_slabs: scatters through slabs. Every unit (independent batch) folds its updates into accumulators
// for its destinations.
//
// The work is divided in one of two ways. With many units (lines of *_elements), each unit is a task. With
// only one unit, its destinations are divided into ranges. The task of a range reads every index, or those of
// the pieces of near updates with destinations in its range, and applies the updates of its range, in order.
// No other task writes to this range.
//
// The plan guarantees: no row loops, block == item, destination i of a unit is at i * step, and the source,
// if it is not the output, has the output's strides. Cost: the updates are read once per range; accumulators
// stay in cache.
#pragma once

#include <optional>

#include "kernels/scatter_shares.hpp"
#include "kernels/slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Accumulators of at most kOneByOneBytes stay in a core's private cache. Lines of columns are shorter than
// tiles. From kOneByOneLines lines per destination on, staging such lines therefore takes longer than the two
// passes of kFewestUpdatesToSettle.
inline constexpr int64_t kOneByOneBytes = int64_t{1} << 20, kOneByOneLines = 4;

// The updates of a slab, and their slots in it.
struct SlabShare {
  DestinationRange owned;  // the numbers of the slab's slots
  int64_t first;           // the number of its first slot
  bool by_column;          // a slot is a column of a destination
  int64_t origin;          // the offset in the data of the slab's columns
  bool near = false;       // most tiles have no updates that are not owned
};

// Returns true if all tuples of a tile are valid and owned.
inline bool are_owned(const Tile& tile, const DestinationRange& owned) {
  const int64_t first = owned.low, last = owned.high - owned.low - 1;
  const int64_t* GATHERUM_RESTRICT offsets = tile.offsets;
  int64_t outside = 0;
  for (int j = 0; j < tile.n; ++j) outside |= (offsets[j] - first) | (last - (offsets[j] - first));
  return outside >= 0 && !tile.any_invalid;
}

// Folds the updates of a range of units, in order. Returns false if it skipped an invalid tuple.
template <class Stored, class Slab>
bool take_units(const Slab& slab, const Nest& numbering, int unit_loops, const Range& range,
                const Operands& operands, const SlabShare& share) {
  constexpr auto packed = static_cast<int64_t>(sizeof(Stored));
  const Loop& line = numbering.line_loop();
  if (!share.owned.all() && !share.near && chooses_slots(numbering, share.owned.high))
    return take_share<Stored>(numbering, unit_loops, range, operands, share.owned, slab.taker());
  const DestinationRange* const owned = share.near ? nullptr : &share.owned;
  TileIterator tiles(numbering, unit_loops, range, operands.index,
                     {.step = share.by_column ? 1 : 0, .by_column = share.by_column, .owned = owned});
  for (; !tiles.done(); tiles.turn()) {
    const Tile& tile = tiles.current();
    const int64_t column = share.by_column ? (tile.base.data - share.origin) / line.data : 0;
    const auto take = slab.taker(column - share.first);
    const char* updates = operands.moved + tile.base.moved;
    const bool all = share.near ? are_owned(tile, share.owned) : share.owned.all() && !tile.any_invalid;
    if (all && line.moved == packed) {
      const int64_t *GATHERUM_RESTRICT offsets = tile.offsets, *next = tiles.following().offsets;
      const bool far = numbering.far;
      const char* beside = share.by_column ? updates + tiles.ahead().moved : nullptr;
      const auto fold = [=](int j) { take(offsets[j], load_value<Stored>(updates + j * packed)); };
      tiles.stage_while(beside, packed, fold, [=](int j, int count) {
        if (far)
          for (int l = 0; l < count; ++l) take.fetch(next[j + l]);
      });
    } else {
      if (share.by_column) prefetch_rows_ahead(numbering, tiles.ahead(), operands, tile);
      Tile rest;
      if (share.near) choose(rest = tile, share.owned);
      const int64_t* GATHERUM_RESTRICT offsets = tile.offsets;
      const int64_t step = line.moved;
      each_chosen(share.near ? rest : tile,
                  [=](int j) { take(offsets[j], load_value<Stored>(updates + j * step)); });
      tiles.stage();
    }
  }
  return tiles.valid();
}

// Folds the updates of a tile one by one, checking each index first. Returns the number of folded updates: n,
// or the position of the first negative or invalid index. If there are columns, the slot of update i with
// index x is x * columns + i. Otherwise it is x. Updates are folded in order, without staging (20M float32
// into 256: 14.5 ms staged, 11 ms this way).
template <class Stored, class T, class Step, class Columns, class Taker>
GATHERUM_INLINE int fold_checked(const char* values, uint64_t size, const char* updates, Step step,
                                 Columns columns, int n, const Taker take) {
  GATHERUM_UNROLL(8)
  for (int i = 0; i < n; ++i) {
    const auto slot = opaque_integer(load_value<T>(values + i * static_cast<int64_t>(sizeof(T))));
    if (static_cast<uint64_t>(int64_t{slot}) >= size) [[unlikely]]
      return i;
    const auto update = load_value<Stored>(updates + i * step);
    if constexpr (std::is_same_v<Columns, int64_t>)
      take.add(slot * columns + i, update);
    else
      take.add(slot, update);
  }
  return n;
}

// Returns true if a task with all destinations can use fold_checked: indices are contiguous, and updates are
// contiguous or, without columns, a single broadcast value.
template <class F>
bool folds_checked(const Nest& numbering, bool by_column = false) {
  const Loop& line = numbering.line_loop();
  return (line.data != 0) == by_column &&
         (line.moved == static_cast<int64_t>(sizeof(typename F::Stored)) ||
          (line.moved == 0 && !by_column)) &&
         numbering.components == 1 && line.index == numbering.index.width && line.index >= 4 &&
         reads_in_place(numbering.index, line.index);
}

// Folds with fold_checked. After a negative or invalid index, the rest of a tile is staged as usual.
template <class Slab>
bool take_checked(const Slab& slab, const Nest& numbering, int unit_loops, const Range& range,
                  const Operands& operands, const SlabShare& share = {}, int64_t columns = 1) {
  using Stored = typename Slab::Stored;
  constexpr std::integral_constant<int64_t, static_cast<int64_t>(sizeof(Stored))> packed;
  constexpr std::integral_constant<int64_t, 0> same;
  const auto size = static_cast<uint64_t>(numbering.component[0].size);
  const Loop& line = numbering.line_loop();
  const int64_t width = numbering.index.width, step = line.moved;
  bool valid = true;
  Chosen remaining;
  const auto fold_tile = [&](const ByteOffsets& base, int n) {
    const char* index = operands.index + base.index;
    const char* updates = operands.moved + base.moved;
    const char* values = index + numbering.component[0].offset;
    // A tile as wide as the slab starts at the slab's first column.
    const bool is_part = share.by_column && n < columns;
    const auto take = slab.taker(is_part ? (base.data - share.origin) / line.data : 0);
    const auto fold = [&](auto apart, auto each) {
      return width == 8 ? fold_checked<Stored, int64_t>(values, size, updates, apart, each, n, take)
                        : fold_checked<Stored, int32_t>(values, size, updates, apart, each, n, take);
    };
    const int taken = share.by_column  ? fold(packed, columns)
                      : step == packed ? fold(packed, same)
                                       : fold(same, same);
    if (taken == n) return;
    const int64_t slots = numbering.component[0].size * columns;
    valid &= choose_staged(numbering, index + taken * width, {0, slots}, n - taken, remaining);
    for (int k = 0; k < remaining.n; ++k) {
      const int at = taken + remaining.which[k];
      take(remaining.slots[k] + (share.by_column ? at : 0), load_value<Stored>(updates + at * step));
    }
  };
  Tiles tiles(numbering, unit_loops, range);
  ByteOffsets base;
  int n = 0;
  while (tiles.next(base, n)) {
    if (share.by_column && n == columns) {  // every tile of the unit is a whole line of the slab
      each_row_point(numbering.loops + unit_loops, numbering.line - unit_loops, base,
                     [&](const ByteOffsets& of_line) { fold_tile(of_line, n); });
      break;
    }
    fold_tile(base, n);
  }
  return valid;
}

// The slab of a task: the destinations [first, first + layout.count) of a unit, and its columns.
struct TaskPart {
  int64_t unit, first, chunk_begin, lead;
  Layout layout;
};

GATHERUM_NOINLINE inline TaskPart part_of_task(const SlabScatter& call, const Operands& operands,
                                               int64_t task) {
  const Nest& numbering = *call.numbering;
  const Loop& line = numbering.line_loop();
  const bool by_column = line.data != 0;
  const int64_t chunks = by_column ? (line.extent - 1) / call.chunk + 1 : 1;
  TaskPart part{};
  part.unit = task / call.ranges;
  part.first = call.near != nullptr ? call.near->cuts[task] : task % call.ranges * call.range_size;
  const int64_t size = call.near != nullptr ? call.near->cuts[task + 1] - part.first : call.range_size;
  part.chunk_begin = part.unit % chunks * call.chunk;
  part.lead = Odometer(numbering.loops, call.unit_loops, part.unit / chunks).offsets().data;
  const int64_t start = part.lead + part.first * call.step + part.chunk_begin * line.data;
  const char* from = call.source != nullptr ? call.source : operands.data;
  const int64_t columns = by_column ? std::min(call.chunk, line.extent - part.chunk_begin) : 1;
  part.layout = {.from = from + start,
                 .to = operands.data + start,
                 .step = call.step,
                 .column_step = line.data,
                 .count = std::min(size, call.destinations - part.first),
                 .columns = columns};
  return part;
}

// The input of a task: its share of the updates, and the nest that computes the slot number of each update's
// destination.
struct TaskInput {
  TaskInput(const SlabScatter& call, const TaskPart& part);

  const Nest& numbering() const { return in_slots ? *in_slots : *call_numbering; }

  const Nest* call_numbering;
  std::optional<Nest> in_slots;  // only if needed: a copy takes as long as a hundred updates
  SlabShare share;
  Range range;
};

GATHERUM_NOINLINE inline TaskInput::TaskInput(const SlabScatter& call, const TaskPart& part)
    : call_numbering(call.numbering), range{.chunk = call.chunk, .begin = part.unit, .end = part.unit + 1} {
  const Loop& line = call.numbering->line_loop();
  const bool by_column = line.data != 0;
  if (by_column) {
    in_slots = *call.numbering;
    for (int c = 0; c < in_slots->components; ++c) in_slots->component[c].stride *= part.layout.columns;
    in_slots->fetches_indices = false;
  }
  // A scatter with several ranges has no columns.
  const DestinationRange owned{.low = part.first, .high = part.first + part.layout.count};
  share = {.owned = call.ranges == 1 ? DestinationRange{} : owned,
           .first = part.first,
           .by_column = by_column,
           .origin = part.lead + part.chunk_begin * line.data,
           .near = call.near != nullptr};
}

// Folds the updates of the pieces that have destinations in the range of a share.
template <class Stored, class Slab>
bool take_near(const Slab& slab, const SlabScatter& call, const Operands& operands, const SlabShare& share) {
  const NearUpdates& all = *call.near;
  const auto meets = [&](int64_t i) {
    return all.lowest[i] < share.owned.high && all.highest[i] >= share.owned.low;
  };
  bool valid = true;
  for (int64_t begin = 0, end = 0; begin < all.pieces; begin = end) {
    for (end = begin; end < all.pieces && meets(end);) ++end;
    const Range range{.chunk = all.chunk,
                      .begin = begin * all.piece_units,
                      .end = std::min(end * all.piece_units, all.units)};
    if (begin < end)
      valid &= take_units<Stored>(slab, *call.numbering, call.numbering->line, range, operands, share);
    else
      ++end;
  }
  return valid;
}

// Returns true if a task folds updates one by one.
template <class F>
bool folds_one_by_one(const SlabScatter& call, const Layout& layout) {
  const Nest& numbering = *call.numbering;
  const int64_t slots = limited_product(layout.count, layout.columns);
  const bool by_column = numbering.line_loop().data != 0;
  if (call.ranges != 1 ||
      limited_product(slots, static_cast<int64_t>(sizeof(typename F::Sum))) > kOneByOneBytes ||
      !folds_checked<F>(numbering, by_column))
    return false;
  if (!by_column) return numbering.line_loop().extent >= kFewestUpdatesToSettle * slots;
  int64_t lines = 1;
  for (int i = call.unit_loops; i < numbering.line; ++i)
    lines = limited_product(lines, numbering.loops[i].extent);
  return lines >= kOneByOneLines * layout.count;
}

template <class F, bool Counted>
bool slab_take(const SlabScatter& call, const Operands& operands, int64_t task, char* scratch) {
  const TaskPart part = part_of_task(call, operands, task);
  Slab<F, Counted> slab(scratch, part.layout, call.fold_rule.include_self, call.direct);
  slab.read();
  const TaskInput input(call, part);
  if constexpr (Slab<F, Counted>::kFoldsAlike) {
    constexpr bool settles = kSettlesLater<F> && !Counted;
    [[maybe_unused]] const int64_t slots = part.layout.count * part.layout.columns;
    bool one_by_one = folds_one_by_one<F>(call, part.layout);
    if constexpr (settles) one_by_one = one_by_one && !slab.has_nan(0, slots);
    if (one_by_one) {
      const bool valid = take_checked(slab, input.numbering(), call.unit_loops, input.range, operands,
                                      input.share, part.layout.columns);
      if constexpr (settles) slab.settle(0, slots);
      return valid;
    }
  }
  if (call.near != nullptr) return take_near<typename F::Stored>(slab, call, operands, input.share);
  return take_units<typename F::Stored>(slab, input.numbering(), call.unit_loops, input.range, operands,
                                        input.share);
}

template <class F, bool Counted>
void slab_write(const SlabScatter& call, const Operands& operands, int64_t task, char* scratch) {
  const Layout layout = part_of_task(call, operands, task).layout;
  const Slab<F, Counted> slab(scratch, layout, call.fold_rule.include_self, call.direct);
  slab.write(0, layout.count, call.streams);
}

}  // namespace gatherum::GATHERUM_LEVEL
