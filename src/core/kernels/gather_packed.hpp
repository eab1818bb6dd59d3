// gather_packed: gathers small blocks along an axis that is not the last. The columns of a unit are first
// copied to contiguous scratch memory, in which a page holds many rows of the columns. They are then gathered
// from this memory.
//
//   P[i * columns + j] = D[i * step + j * W];   U[...] = P[index * columns + j]
//
// The plan guarantees: no row loops, one component, contiguous columns (line.data == W), and only the line
// loop moves the data inside a unit. Cost: the data are read once in order, which avoids a TLB miss per item.
// This is faster if the indices have about as many rows as the data.
#pragma once

#include "kernels/gather_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <int W, bool streams>
bool gather_packed(const PackedGather& call, const Operands& operands, int64_t begin, int64_t end,
                   char* scratch) {
  const Loop& line = call.nest->line_loop();
  const int64_t chunks = (line.extent + call.chunk - 1) / call.chunk;
  Nest packed = *call.nest;
  packed.far = packed.fetches_indices = false;
  packed.loops[packed.line].data = W;
  for (int i = 0; i < call.unit_loops; ++i) packed.loops[i].data = 0;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t first = unit % chunks * call.chunk;
    const int64_t columns = std::min(call.chunk, line.extent - first);
    const Odometer lead(call.nest->loops, call.unit_loops, unit / chunks);
    const char* from = operands.data + lead.offsets().data + first * W;
    for (int64_t i = 0; i < call.destinations; ++i) {
      prefetch_bytes(from, (i + kRowsAhead) * call.step, columns * W);
      copy_run(scratch + i * columns * W, from + i * call.step, columns * W);
    }
    packed.component[0].stride = columns * W;
    Operands inside = operands;
    // In the line, columns are counted from the start of the row. In the scratch, they are counted from the
    // start of the chunk.
    inside.data =
        reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(scratch) - static_cast<uintptr_t>(first * W));
    const Range range{.chunk = call.chunk, .begin = unit, .end = unit + 1};
    if (!gather_lines<W, streams>(packed, call.unit_loops, inside, range, true)) return false;
  }
  return true;
}

}  // namespace gatherum::GATHERUM_LEVEL
