// scatter_partition: scatters items into more destinations than the cache holds, by a stable partition.
//
//   distribute  appends the pair (destination within its bucket, value) of every update of a piece to the
//               piece's list for that bucket
//   apply       folds the lists of a bucket, piece after piece, into a slab of that bucket
//
// Pieces and lists are in order, so a destination folds its updates in row-major order of the indices on any
// thread. A list is a chain of runs, so no counting pass is needed, and each index is read once. The output
// is written only after all pieces have been distributed and all indices checked. The number of runs is
// sufficient, because a list of n pairs needs at most n / run + 1 runs. Cost: 4 + W bytes per update are
// written and read once, in one stream per list; then updates are folded in cache.
#pragma once

#include "kernels/scatter_slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class Stored>
inline constexpr int64_t kPairBytes = PartitionScatter::kLocalBytes + static_cast<int64_t>(sizeof(Stored));

inline Range piece_range(const PartitionScatter& p, int64_t piece) {
  return {.chunk = p.chunk,
          .begin = piece * p.piece_units,
          .end = std::min((piece + 1) * p.piece_units, p.units)};
}

// Appends a run to a list.
GATHERUM_NOINLINE inline void extend_list(const PartitionScatter& p, int64_t list,
                                          PartitionScatter::Cursor& cursor) {
  const int64_t run = p.taken->fetch_add(1, std::memory_order_relaxed);
  if (cursor.limit == nullptr)
    p.first[list] = run;
  else
    p.next[(cursor.limit - p.runs) / p.run_bytes - 1] = run;
  cursor.next = p.runs + run * p.run_bytes;
  cursor.limit = cursor.next + p.run_bytes;
}

template <class Stored>
bool partition_distribute(const PartitionScatter& p, const Operands& operands, int64_t piece) {
  constexpr int64_t kAhead = 12;
  const int64_t lists = piece * p.buckets;
  auto* GATHERUM_RESTRICT cursors = p.cursors + lists;
  std::fill_n(cursors, p.buckets, PartitionScatter::Cursor{});
  const int64_t mask = (int64_t{1} << p.shift) - 1;
  const int64_t shift = p.shift, su = p.numbering->line_loop().moved;
  TileIterator tiles(*p.numbering, p.numbering->line, piece_range(p, piece), operands.index);
  for (; !tiles.done(); tiles.turn()) {
    const Tile& tile = tiles.current();
    const bool any_invalid = tile.any_invalid;
    const int64_t* GATHERUM_RESTRICT offsets = tile.offsets;
    const char* updates = operands.moved + tile.base.moved;
    const auto append = [=, &p](int j) {
      if (any_invalid && offsets[j] == kInvalid) return;
      const int64_t bucket = offsets[j] >> shift;
      if (cursors[bucket].next == cursors[bucket].limit) [[unlikely]]
        extend_list(p, lists + bucket, cursors[bucket]);
      char* pair = cursors[bucket].next;
      cursors[bucket].next = pair + kPairBytes<Stored>;
      const auto local = static_cast<uint32_t>(offsets[j] & mask);
      const Stored value = load_value<Stored>(updates + j * su);
      std::memcpy(pair, &local, sizeof local);
      std::memcpy(pair + sizeof local, &value, sizeof value);
      prefetch_write(pair + kAhead * kPairBytes<Stored>);
    };
    tiles.stage_while(nullptr, 0, append, [](int, int) {});
  }
  return tiles.valid();
}

template <class F, bool Counted>
void partition_apply(const PartitionScatter& p, const Operands& operands, int64_t bucket, char* scratch) {
  using Stored = typename F::Stored;
  const int64_t first = bucket << p.shift;
  const int64_t count = std::min(int64_t{1} << p.shift, p.destinations - first);
  const char* from = p.source != nullptr ? p.source : operands.data;
  Slab<F, Counted> slab(scratch, {from + first * p.step, operands.data + first * p.step, p.step, 0, count, 1},
                        p.fold_rule.include_self, true);
  slab.read();
  const auto take = slab.taker();
  for (int64_t list = bucket; list < p.pieces * p.buckets; list += p.buckets) {
    const auto [next, limit] = p.cursors[list];
    if (limit == nullptr) continue;
    for (int64_t run = p.first[list];; run = p.next[run]) {
      const char* pair = p.runs + run * p.run_bytes;
      const bool last = pair + p.run_bytes == limit;
      const char* end = last ? next : pair + p.run_bytes;
      for (; pair < end; pair += kPairBytes<Stored>)
        take(load_value<uint32_t>(pair), load_value<Stored>(pair + sizeof(uint32_t)));
      if (last) break;
    }
  }
  slab.write(0, count, false);
}

}  // namespace gatherum::GATHERUM_LEVEL
