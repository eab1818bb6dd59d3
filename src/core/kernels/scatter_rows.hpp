// scatter, one row per index:  D[j * sd + offset[j] + r] op= U[j * su + r],  j ascending.
//
// A row is `block` contiguous bytes repeated over the row loops, which move with no index and are
// independent of each other. Cost: the rows of U read once, those of D read (folds) and written.
#pragma once

#include "kernels/scatter_lines.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class Apply>
struct ScatterRow {
  const Nest& nest;
  const Operands& at;
  const Apply& apply;

  void prefetch_block(const Block&) const {}

  void move(const Block& b, const Block& then) const {
    if (nest.row_rank() == 0) return move_blocks(b, then);
    for (int i = 0; i < b.chosen; ++i) {
      if (nest.far) prefetch_row(b, then, i + rows_ahead(nest.block));
      const int j = b.at(i);
      move_row(at.data + b.offsets[j], advance(b.place, nest.line_loop(), j));
    }
  }

 private:
  // A lambda of copies, for the same reason.
  void move_row(char* to, const Place& place) const {
    each_row_point(nest.rows(), nest.row_rank(), place, [to, from = at.other, apply = apply](const Place& p) {
      apply(to + p.data, from + p.other);
    });
  }

  // Rows that are one run of bytes. Everything is copied first: the compiler must think that a store changes
  // whatever lies in memory.
  void move_blocks(const Block& b, const Block& then) const {
    const int chosen = b.chosen;
    const bool all = chosen == b.n, far = nest.far;
    const int64_t data_step = nest.line_loop().data, other_step = nest.line_loop().other;
    char* const to = at.data + b.place.data;
    const char* const from = at.other + b.place.other;
    const Apply op = apply;
    for (int i = 0; i < chosen; ++i) {
      if (far) prefetch_row(b, then, i + kAhead);
      const int j = all ? i : b.which[i];
      op(to + j * data_step + b.offsets[j], from + j * other_step);
    }
  }

  // The i-th chosen row from the block on.
  GATHERUM_INLINE void prefetch_row(const Block& now, const Block& then, int i) const {
    const Block& b = i < now.chosen ? now : then;
    if (i >= now.chosen) i -= now.chosen;
    if (i >= b.chosen) return;
    const int j = b.at(i);
    const Place row = advance(b.place, nest.line_loop(), j);
    const int64_t bytes = std::min(nest.block, kPrefetchBytes);
    prefetch_run<FetchTo::write>(at.data, row.data + b.offsets[j], bytes);
    // The processor fetches adjacent rows itself, and our prefetches would slow it down (1M rows of 64
    // float32 into 100k: 45 ms -> 38 on one thread). Of rows apart, it also fetches what lies between them
    // once the cache line behind them is fetched (the same, half of the columns per thread: 33 ms -> 24).
    if (b.chosen != b.n || nest.line_loop().other != nest.block)
      prefetch_run(at.other, row.other, bytes + kCacheLine);
  }

  static constexpr int kAhead = 12;
};

// Runs a scatter over a range of units; false when it has met (and skipped) an invalid tuple.
template <class Kernel>
bool scatter_blocks(const Nest& nest, int units, const Operands& at, const Range& range, const Owned& owned,
                    const Kernel& kernel) {
  Walk walk(nest, units, range, at.index, {.owned = &owned});
  for (kernel.prefetch_block(walk.now()); !walk.done(); walk.turn()) {
    walk.stage();
    kernel.prefetch_block(walk.then());
    kernel.move(walk.now(), walk.then());
  }
  return walk.valid();
}

}  // namespace gatherum::GATHERUM_LEVEL
