// scatter_last: scatters rows without a reduction, and writes each destination once.
//
//   last[d] = max {t + 1 : X[t] = d},  0 without updates        D[d] = U[last[d] - 1] if last[d] > 0
//
//   find    computes `last` from a piece of the updates; the order of the pieces does not matter
//   write   copies the rows of some destinations, in order of the destinations
//
// If `source` is not null, destinations without updates are copied from there.
//
// The plan guarantees: one unit, one loop, rows of contiguous bytes at even steps that do not overlap, and
// fewer than 2^32 - 1 updates. Cost: 4 bytes per destination are written and read, and one row is read at a
// random position and written for each destination that has updates.
#pragma once

#include "kernels/gather_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

inline bool last_find(const LastUpdates& call, const Operands& operands, int64_t piece) {
  const Nest& numbering = *call.numbering;
  std::atomic<uint32_t>* const last = call.last;
  const int64_t begin = piece * call.piece_units, end = std::min(begin + call.piece_units, call.units);
  auto number = static_cast<uint32_t>(begin * call.chunk) + 1;
  TileIterator tiles(numbering, numbering.line, {call.chunk, begin, end}, operands.index);
  for (; !tiles.done(); tiles.turn()) {
    tiles.stage();
    const Tile &current = tiles.current(), &following = tiles.following();
    // Invalid numbers may point anywhere, because a prefetch never faults.
    for (int j = 0; j < following.n; ++j)
      prefetch_write(reinterpret_cast<const void*>(
          reinterpret_cast<uintptr_t>(last) + static_cast<uintptr_t>(following.offsets[j]) * sizeof *last));
    for (int j = 0; j < current.n; ++j, ++number) {
      if (current.offsets[j] == kInvalid) continue;
      std::atomic<uint32_t>& of = last[current.offsets[j]];
      if (call.pieces == 1) {
        of.store(number, std::memory_order_relaxed);
        continue;
      }
      uint32_t seen = of.load(std::memory_order_relaxed);
      while (seen < number && !of.compare_exchange_weak(seen, number, std::memory_order_relaxed)) {
      }
    }
  }
  return tiles.valid();
}

inline void last_write(const LastUpdates& call, const Operands& operands, int64_t begin, int64_t end) {
  const int64_t bytes = call.numbering->block, step = call.step;
  const auto number_of = [last = call.last](int64_t d) {
    return int64_t{last[d].load(std::memory_order_relaxed)};
  };
  const auto update = [from = operands.moved, along = call.numbering->line_loop().moved](int64_t number) {
    return from + (number - 1) * along;
  };
  for (int64_t d = begin; d < end; ++d) {
    each_of_burst(d - begin, end - begin, [&](int64_t k) {
      const int64_t number = number_of(begin + k);
      if (number != 0) prefetch_bytes<FetchTo::second>(update(number), 0, std::min(bytes, kPrefetchBytes));
    });
    const int64_t number = number_of(d);
    if (number == 0 && call.source == nullptr) continue;
    const char* from = number != 0 ? update(number) : call.source + d * step;
    if (call.streams)
      stream_bytes(operands.data + d * step, from, bytes);
    else
      copy_run(operands.data + d * step, from, bytes);
  }
  if (call.streams) stream_fence();
}

}  // namespace gatherum::GATHERUM_LEVEL
