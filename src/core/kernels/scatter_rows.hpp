// scatter_rows: one row per index:  D[j * sd + offset[j] + r] op= U[j * su + r],  j ascending.
//
// A row is `block` contiguous bytes repeated over the row loops, which do not move the index and are
// independent of each other. Cost: the rows of U are read once. The rows of D are written, and for folds also
// read.
#pragma once

#include "kernels/scatter_lines.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class Apply>
struct ScatterRow {
  const Nest& nest;
  const Operands& operands;
  const Apply& apply;

  void prefetch_tile(const Tile&) const {}

  void move(const Tile& tile, const Tile& following) const {
    if (nest.row_rank() == 0) return move_tile(tile, following);
    for (int i = 0; i < tile.chosen_count; ++i) {
      if (nest.far) prefetch_row(tile, following, i + rows_ahead(nest.block));
      const int j = tile.chosen_at(i);
      move_row(operands.data + tile.offsets[j], advance(tile.base, nest.line_loop(), j));
    }
  }

 private:
  // The lambda captures by value, for the same reason as in move_tile.
  void move_row(char* to, const ByteOffsets& base) const {
    each_row_point(nest.rows(), nest.row_rank(), base,
                   [to, from = operands.moved, apply = apply](const ByteOffsets& p) {
                     apply(to + p.data, from + p.moved);
                   });
  }

  // For rows of contiguous bytes. Members are first copied to local variables, because the compiler must
  // assume that a store may change any memory.
  void move_tile(const Tile& tile, const Tile& following) const {
    const int count = tile.chosen_count;
    const bool all = count == tile.n, far = nest.far;
    const int64_t data_step = nest.line_loop().data, moved_step = nest.line_loop().moved;
    char* const to = operands.data + tile.base.data;
    const char* const from = operands.moved + tile.base.moved;
    const Apply op = apply;
    for (int i = 0; i < count; ++i) {
      if (far) prefetch_row(tile, following, i + kAhead);
      const int j = all ? i : tile.chosen[i];
      op(to + j * data_step + tile.offsets[j], from + j * moved_step);
    }
  }

  // Prefetches the i-th chosen row, counted from the start of this tile.
  GATHERUM_INLINE void prefetch_row(const Tile& current, const Tile& following, int i) const {
    const Tile& tile = i < current.chosen_count ? current : following;
    if (i >= current.chosen_count) i -= current.chosen_count;
    if (i >= tile.chosen_count) return;
    const int j = tile.chosen_at(i);
    const ByteOffsets row = advance(tile.base, nest.line_loop(), j);
    const int64_t bytes = std::min(nest.block, kPrefetchBytes);
    prefetch_bytes<FetchTo::write>(operands.data, row.data + tile.offsets[j], bytes);
    // The hardware prefetches adjacent rows, and software prefetches would slow it down (1M rows of 64
    // float32 into 100k: 45 ms -> 38 on one thread). For rows with gaps, a prefetch of the cache line after a
    // row makes the hardware fetch the gap, too (the same, half of the columns per thread: 33 ms -> 24).
    if (tile.chosen_count != tile.n || nest.line_loop().moved != nest.block)
      prefetch_bytes(operands.moved, row.moved, bytes + kCacheLine);
  }

  static constexpr int kAhead = 12;
};

// Runs a scatter over a range of units. Returns false if it skipped an invalid tuple.
template <class Kernel>
bool scatter_tiles(const Nest& nest, int unit_loops, const Operands& operands, const Range& range,
                   const DestinationRange& owned, const Kernel& kernel) {
  TileIterator tiles(nest, unit_loops, range, operands.index, {.owned = &owned});
  for (kernel.prefetch_tile(tiles.current()); !tiles.done(); tiles.turn()) {
    tiles.stage();
    kernel.prefetch_tile(tiles.following());
    kernel.move(tiles.current(), tiles.following());
  }
  return tiles.valid();
}

}  // namespace gatherum::GATHERUM_LEVEL
