// gather_lines: one small block per index:  U[j * su] = D[j * sd + offset[j]],  block of W bytes.
//
// The plan guarantees: no row loops, block == W, W one of Widths; offsets are staged (checked). Cost:
// one load and one store per item. If the table is larger than the cache, the next tile is prefetched, and
// the random-access rate of the memory limits the speed.
#pragma once

#include <cstring>

#include "fold/combine.hpp"
#include "kernels/tiles.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <int W>
GATHERUM_INLINE Item<W> load_item(const char* p) {
  Item<W> v;
  std::memcpy(&v, p, W);
  return v;
}

template <int W>
GATHERUM_INLINE void store_item(char* p, const Item<W>& v) {
  std::memcpy(p, &v, W);
}

// Moves the items of n tuples of a line that begin at `base`, or the fill value for invalid tuples. The
// offsets already include the line's steps.
template <int W>
void move_items(const Nest& nest, const Operands& operands, const ByteOffsets& base, const int64_t* offsets,
                int n, bool any_invalid) {
  const char* src = operands.data + base.data;
  char* dst = operands.moved + base.moved;
  const int64_t moved_step = nest.line_loop().moved;
  if (any_invalid) {
    const Item<W> fill = load_item<W>(operands.fill);
    for (int j = 0; j < n; ++j)
      store_item(dst + j * moved_step, offsets[j] == kInvalid ? fill : load_item<W>(src + offsets[j]));
  } else if (moved_step != W) {
    for (int j = 0; j < n; ++j) store_item(dst + j * moved_step, load_item<W>(src + offsets[j]));
  } else {
    GATHERUM_UNROLL(8)
    for (int j = 0; j < n; ++j) store_item(dst + j * W, load_item<W>(src + offsets[j]));
  }
}

// Prefetches the cache lines that a tile addresses. Invalid offsets may point anywhere, because a prefetch
// never faults.
struct Addressed {
  uintptr_t base;
  const int64_t* offsets;  // being staged

  Addressed(const Operands& operands, const Tile& tile)
      : base(reinterpret_cast<uintptr_t>(operands.data + tile.base.data)), offsets(tile.offsets) {}

  GATHERUM_INLINE void fetch(int j) const {
    prefetch(reinterpret_cast<const void*>(base + static_cast<uintptr_t>(offsets[j])));
    keep();
  }
};

// Returns the number of tuples of a range if the range covers a whole nest with evenly spaced indices and at
// most a tile of tuples, as in small calls. Otherwise returns 0.
inline int tuples_at_once(const Nest& nest, int unit_loops, const Range& range) {
  const Loop& line = nest.line_loop();
  int64_t tuples = line.extent, first_units = 1;
  for (int i = nest.line - 1; i >= 0 && tuples <= kTile; --i) {
    if (nest.loops[i].index != line.index * tuples) return 0;
    tuples *= nest.loops[i].extent;
    if (i < unit_loops) first_units *= nest.loops[i].extent;
  }
  const bool all = range.chunk >= line.extent && range.end - range.begin == first_units;
  return all && tuples <= kTile ? static_cast<int>(tuples) : 0;
}

// Stages all indices in one call, without an iterator or prefetches.
template <int W>
GATHERUM_NOINLINE bool gather_at_once(const Nest& nest, const Operands& operands, int tuples) {
  const Loop& line = nest.line_loop();
  const int n = static_cast<int>(line.extent);
  alignas(64) int64_t offsets[kTile];
  const bool any_invalid = stage(nest, operands.index, line.index, tuples, offsets);
  if (any_invalid && nest.mode == Mode::raise) return false;
  Odometer lines(nest.loops, nest.line, 0);
  for (int i = 0; i < tuples; i += n, lines.next()) {
    if (line.data != 0) add_steps(line.data, 0, n, offsets + i);
    move_items<W>(nest, operands, lines.offsets(), offsets + i, n, any_invalid);
  }
  return true;
}

// Gathers a range of units. Returns false if an index is invalid and the mode is raise. While the items of a
// tile are moved, the cache lines of the next tile are prefetched one by one. If all were prefetched
// together, their number would exceed the misses that a core can have in flight, and a Zen 3 would stall.
template <int W, bool streams = false>
bool gather_lines(const Nest& nest, int unit_loops, const Operands& operands, const Range& range,
                  bool by_column) {
  if (const int tuples = tuples_at_once(nest, unit_loops, range); tuples > 0)
    return gather_at_once<W>(nest, operands, tuples);
  const Loop& line = nest.line_loop();
  TileIterator tiles(nest, unit_loops, range, operands.index, {.step = line.data, .by_column = by_column});
  for (int j = 0; nest.far && j < tiles.current().n; ++j) Addressed(operands, tiles.current()).fetch(j);
  for (; !tiles.done(); tiles.turn()) {
    const Tile& tile = tiles.current();
    if (tile.any_invalid && nest.mode == Mode::raise) return false;
    const int m = tile.n, n = tiles.following().n;
    const Addressed next(operands, tiles.following());
    const char* src = operands.data + tile.base.data;
    char* dst = operands.moved + tile.base.moved;
    const int64_t* GATHERUM_RESTRICT offsets = tile.offsets;
    const bool valid_and_contiguous = !tile.any_invalid && line.moved == W,
               fetches = nest.far && valid_and_contiguous && n >= m;
    const auto move = [=](int j) {
      if (fetches) next.fetch(j);
      if constexpr (streams)
        stream_item<W>(dst + j * W, src + offsets[j]);
      else
        store_item(dst + j * W, load_item<W>(src + offsets[j]));
    };
    if (valid_and_contiguous && tiles.interleaves()) {
      tiles.stage_while(by_column && !streams ? dst + tiles.ahead().moved : nullptr, W, move,
                        [](int, int) {});
    } else {
      if (by_column && !streams) prefetch_rows_ahead(nest, tiles.ahead(), operands, tile);
      tiles.stage();
      GATHERUM_UNROLL(8)
      for (int j = 0; fetches && j < m; ++j) move(j);
      if (!fetches) move_items<W>(nest, operands, tile.base, offsets, m, tile.any_invalid);
    }
    for (int j = fetches ? m : 0; nest.far && j < n; ++j) next.fetch(j);
  }
  if constexpr (streams) stream_fence();
  return true;
}

}  // namespace gatherum::GATHERUM_LEVEL
