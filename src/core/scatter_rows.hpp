// scatter, a row an index:  D[j * sd + offset[j] + r] op= U[j * su + r],  j ascending.
//
// A row is `block` contiguous bytes repeated over the row loops, which move with no index and are
// independent of each other. Cost: the rows of U read once, those of D read (folds) and written.
#pragma once

#include "scatter_lines.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class Apply>
struct ScatterRow {
  const Nest& nest;
  const Operands& at;
  const Apply& apply;

  void prefetch_block(const Block&) const {}

  void move(const Block& b, const Block& then) const {
    const bool contiguous = nest.row_rank() == 0;
    const int ahead = rows_ahead(nest.block);
    for (int i = 0; i < b.chosen; ++i) {
      const int on = i + ahead - b.chosen;
      if (nest.far) prefetch_row(on < 0 ? b : then, on < 0 ? i + ahead : on);
      const int j = b.at(i);
      const Place place = advance(b.place, nest.line_loop(), j);
      char* to = at.data + b.offsets[j];
      if (contiguous)
        apply(to + place.data, at.other + place.other);
      else
        each_row_point(nest.rows(), nest.row_rank(), place,
                       [&](const Place& p) { apply(to + p.data, at.other + p.other); });
    }
  }

 private:
  void prefetch_row(const Block& b, int i) const {
    if (i >= b.chosen) return;
    const int j = b.at(i);
    const Place row = advance(b.place, nest.line_loop(), j);
    const int64_t bytes = std::min(nest.block, kPrefetchBytes);
    prefetch_run<true>(at.data, row.data + b.offsets[j], bytes);
    // Rows one behind the other are fetched by the processor; ours would be in its way (1M rows of 64 float32
    // into 100k: 45 ms -> 38 on one thread).
    if (nest.line_loop().other != nest.block) prefetch_run(at.other, row.other, bytes);
  }
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
