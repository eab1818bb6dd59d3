// scatter of items into more destinations than a cache holds, by a stable partition.
//
//   count    for every piece of the updates, how many fall into each block of destinations
//   spread   copies (destination within its block, value) to the block's list, in order
//   apply    folds a block's list, in order, into a slab of that block
//
// Pieces are in order, and so is what each contributes to a list: a destination meets its updates in
// row-major order of the indices, whoever did the work. The lists of the blocks are the only random
// writes, a stream each. An index that changes between count and spread can only leave its place in a
// list unused: every piece keeps to what it counted. Cost: 4 + W bytes an update written and read
// once; then a fold in cache.
#pragma once

#include "scatter_slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class Stored>
inline constexpr int64_t kEntryBytes = static_cast<int64_t>(sizeof(uint32_t) + sizeof(Stored));

inline Range piece_range(const PartitionScatter& p, int64_t piece) {
  return {p.chunk, piece * p.piece_units, std::min((piece + 1) * p.piece_units, p.units)};
}

inline bool partition_count(const PartitionScatter& p, const char* index, int64_t piece) {
  int64_t* counts = p.counts + piece * p.blocks;
  std::memset(counts, 0, sizeof(int64_t) * static_cast<size_t>(p.blocks));
  Blocks blocks(*p.ids, p.ids->line, piece_range(p, piece));
  Block b;
  bool valid = true;
  while (stage_next(*p.ids, index, blocks, b)) {
    valid &= !b.any_invalid;
    for (int j = 0; j < b.n; ++j)
      if (!b.any_invalid || b.offsets[j] != kInvalid) ++counts[b.offsets[j] >> p.shift];
  }
  return valid;
}

template <class Stored>
void partition_spread(const PartitionScatter& p, const Operands& at, int64_t piece) {
  constexpr int64_t kAhead = 12;
  auto* GATHERUM_RESTRICT cursors = p.cursors + piece * p.blocks;
  for (int64_t block = 0; block < p.blocks; ++block) {
    // The share of the last piece ends with the list, which is what the row behind it says.
    const int64_t* begin = p.counts + piece * p.blocks + block;
    cursors[block] = {begin[0], begin[p.blocks]};
  }
  const int64_t mask = (int64_t{1} << p.shift) - 1;
  Blocks blocks(*p.ids, p.ids->line, piece_range(p, piece));
  Block b;
  while (stage_next(*p.ids, at.index, blocks, b)) {
    const char* updates = at.other + b.place.other;
    const int64_t su = p.ids->line_loop().other;
    for (int j = 0; j < b.n; ++j) {
      if (b.any_invalid && b.offsets[j] == kInvalid) continue;
      PartitionScatter::Cursor& cursor = cursors[b.offsets[j] >> p.shift];
      if (cursor.place == cursor.limit) continue;
      char* entry = p.entries + cursor.place++ * kEntryBytes<Stored>;
      const auto local = static_cast<uint32_t>(b.offsets[j] & mask);
      const Stored value = load_value<Stored>(updates + j * su);
      std::memcpy(entry, &local, sizeof local);
      std::memcpy(entry + sizeof local, &value, sizeof value);
      prefetch_write(entry + kAhead * kEntryBytes<Stored>);
    }
  }
}

template <class F, bool Counted>
void partition_apply(const PartitionScatter& p, const Operands& at, int64_t block, char* scratch) {
  using Stored = typename F::Stored;
  const int64_t first = block << p.shift;
  const int64_t count = std::min(int64_t{1} << p.shift, p.destinations - first);
  const char* from = p.source != nullptr ? p.source : at.data;
  Slab<F, Counted> slab(scratch, {from + first * p.step, at.data + first * p.step, p.step, 0, count, 1},
                        p.combine.include_self, true);
  slab.read();
  const auto take = slab.taker();
  for (int64_t piece = 0; piece < p.pieces; ++piece) {
    const char* entry = p.entries + p.counts[piece * p.blocks + block] * kEntryBytes<Stored>;
    const char* end = p.entries + p.cursors[piece * p.blocks + block].place * kEntryBytes<Stored>;
    for (; entry < end; entry += kEntryBytes<Stored>)
      take(load_value<uint32_t>(entry), load_value<Stored>(entry + sizeof(uint32_t)));
  }
  slab.write();
}

}  // namespace gatherum::GATHERUM_LEVEL
