// The loop nest to which every call is lowered, and the iteration over its outer loops.
//
//   addr = D + p . sD + sum over components c of check(X[p . sX + x_c], n_c) * d_c
//   gather: *U(p . sU) = *addr          scatter: *addr op= *U(p . sU)
//
// The terms of the core:
//   - nest: the loops of a call, and their strides in the three operands
//   - line: the loop whose points' indices are read together
//   - tile: up to 256 neighbouring points of a line, whose indices are staged: read, checked and converted to
//     byte offsets
//   - row: the data that one index tuple moves: the loops inside the line, and a block at each point of them
//   - block: contiguous bytes that are moved together (Nest::block)
//   - unit: an independent batch: points of a scatter that may share a destination, or a piece of a gather
//   - slab: accumulators in cache, for the destinations of a unit or for a range of them
//
// D is the address of the data (for a scatter, of the output). X is the address of the indices. U is the
// address of the moved operand: the output of a gather, or the updates of a scatter. p is a point: one
// integer for each loop. sD, sX and sU are the strides of the loops. c is a component of an index tuple, x_c
// bytes after the first component. n_c and d_c are the size and the stride of the dimension that component c
// addresses. check resolves negative indices and applies the mode. All strides are in bytes. lowering.cpp
// makes the nest and guarantees its form. Nothing here depends on the element type.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/types.hpp"
#include "model/widths.hpp"
#include "platform/processor.hpp"

namespace gatherum {

inline constexpr int kMaxLoops = 64;
inline constexpr int kMaxComponents = 64;
// The largest number of points in a tile.
inline constexpr int kTile = 256;
// The widest block that is loaded and stored as one value.
inline constexpr int kWidestBlock = 16;

// The product of two nonnegative numbers, limited to kSizeLimit. kSizeLimit exceeds any memory, yet a sum of
// a few such products does not overflow. Only broadcast operands can have kSizeLimit elements.
inline constexpr int64_t kSizeLimit = int64_t{1} << 60;
GATHERUM_INLINE int64_t limited_product(int64_t a, int64_t b) {
  if (static_cast<uint64_t>(a | b) < uint64_t{1} << 30) return a * b;  // faster than a division
  return b > 0 && a > kSizeLimit / b ? kSizeLimit : a * b;
}

struct Loop {
  int64_t extent, data, index, moved;
};

struct Component {
  int64_t size, stride, offset;
};

struct IndexType {
  uint8_t width = 8;  // bytes: 1, 2, 4, 8
  bool is_signed = true;
  bool swapped = false;
};

// Loops are in order, outermost first: `line` outer loops, then the line, then `rank - line - 1` row loops.
// The indices of the points of the line are staged together. Row loops read no index (index stride 0). Every
// point moves `block` contiguous bytes. A scatter visits the points of one destination in row-major order of
// the indices.
struct Nest {
  int rank = 1;
  int line = 0;
  int components = 0;
  Mode mode = Mode::raise;
  bool negative = true;
  IndexType index;
  int64_t block = 0;            // the contiguous bytes that a point moves: a multiple of item
  int64_t item = 0;             // bytes of one element
  bool far = false;             // the addressed data is larger than a core's cache, so prefetching is faster
  bool fetches_indices = true;  // whether contiguous indices are prefetched
  Loop loops[kMaxLoops] = {{1, 0, 0, 0}};
  Component component[kMaxComponents] = {};

  GATHERUM_INLINE int64_t outer_count() const {
    int64_t n = 1;
    for (int i = 0; i < line; ++i) n = limited_product(n, loops[i].extent);
    return n;
  }
  GATHERUM_INLINE const Loop& line_loop() const { return loops[line]; }
  GATHERUM_INLINE const Loop* rows() const { return loops + line + 1; }
  GATHERUM_INLINE int row_rank() const { return rank - line - 1; }
};

// Returns true if each index tuple moves one item.
GATHERUM_INLINE bool moves_items(const Nest& nest) { return nest.row_rank() == 0 && nest.block == nest.item; }

// Returns true if the line kernels run a nest: each index tuple moves one value of a compiled width, or folds
// one item. The row kernels run all other nests.
GATHERUM_INLINE bool runs_by_lines(const Nest& nest, const FoldRule& fold_rule) {
  if (fold_rule.reduction != Reduction::none) return moves_items(nest);
  return nest.row_rank() == 0 && is_width(nest.block);
}

// Byte offsets into the three operands.
struct ByteOffsets {
  int64_t data = 0, index = 0, moved = 0;
};

GATHERUM_INLINE ByteOffsets advance(ByteOffsets p, const Loop& loop, int64_t steps) {
  return {p.data + steps * loop.data, p.index + steps * loop.index, p.moved + steps * loop.moved};
}

}  // namespace gatherum
