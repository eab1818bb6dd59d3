// scatter through accumulators: the updates of a unit are put in order of destination (stably), then
// each destination folds its own updates, left to right, in registers, and is written once.
//
//   D[g] = finish(fold(... fold(fold(D[g], U[t0]), U[t1]) ...), count),   t0 < t1 < ... that hit g
//
// For folds that cannot live in the output: half types (rounded once at the end), mean (counts),
// include_self=False (the first update starts the fold). The plan guarantees that inside a unit no
// loop but the row loops moves the data. Scratch: at most 16 bytes an update.
#pragma once

#include <algorithm>

#include "scatter_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

struct Entry {
  int64_t destination, update;
  bool operator<(const Entry& o) const {
    return destination != o.destination ? destination < o.destination : update < o.update;
  }
};

// Calls visit(numbers, n) with the destination numbers of the updates of one unit, block by block.
template <class Visit>
void number_unit(const Nest& ids, int units, const char* index, int64_t unit, const Visit& visit) {
  Blocks blocks(ids, units, {ids.line_loop().extent, unit, unit + 1});
  Block b;
  while (stage_next(ids, index, blocks, b)) visit(b.offsets, b.n);
}

// Byte offset in the data of a numbered destination.
GATHERUM_NOINLINE inline int64_t offset_of(const Nest& nest, int64_t number) {
  int64_t offset = 0;
  for (int c = nest.components - 1; c >= 0; --c) {
    offset += number % nest.component[c].size * nest.component[c].stride;
    number /= nest.component[c].size;
  }
  return offset;
}

// Byte offset in the updates of the t-th update of a unit.
GATHERUM_NOINLINE inline int64_t update_offset(const Nest& nest, int units, int64_t t) {
  int64_t offset = 0;
  for (int i = nest.line; i >= units; --i) {
    offset += t % nest.loops[i].extent * nest.loops[i].other;
    t /= nest.loops[i].extent;
  }
  return offset;
}

inline int64_t update_of(const Entry& e) { return e.update; }
inline int64_t update_of(uint32_t t) { return t; }

// Folds one group, n updates in order, into the destination row; accumulators for a part of the row
// live on the stack.
template <class F>
struct FoldGroup {
  const Nest& nest;
  int units;
  bool include_self;

  template <class Update>
  void operator()(char* dst, const char* updates, const Update* group, int64_t n) const {
    each_row_point(nest.rows(), nest.row_rank(), Place{}, [&](const Place& p) {
      for (int64_t r = 0; r < nest.block; r += kPart * nest.item)
        part(dst + p.data + r, updates + p.other + r, group, n,
             std::min(kPart, (nest.block - r) / nest.item));
    });
  }

 private:
  static constexpr int64_t kPart = 256;
  using T = typename F::Stored;

  template <class Update>
  void part(char* dst, const char* updates, const Update* group, int64_t n, int64_t elements) const {
    typename F::Sum sums[kPart];
    int64_t t = 0;
    const char* first = include_self ? dst : updates + update_offset(nest, units, update_of(group[t++]));
    for (int64_t e = 0; e < elements; ++e) sums[e] = F::widen(load_value<T>(first + e * nest.item));
    for (; t < n; ++t) {
      const char* src = updates + update_offset(nest, units, update_of(group[t]));
      for (int64_t e = 0; e < elements; ++e)
        sums[e] = F::template fold<Selected>(sums[e], F::widen(load_value<T>(src + e * nest.item)));
    }
    for (int64_t e = 0; e < elements; ++e) {
      const T v = F::finish(sums[e], n + (include_self ? 1 : 0));
      std::memcpy(dst + e * nest.item, &v, sizeof v);
    }
  }
};

// Whether the updates of a unit are counted out to their destinations (few of those), or sorted.
inline bool counts_out(int64_t updates, int64_t destinations) {
  return destinations <= updates && updates < int64_t{0xFFFFFFFF};
}

inline int64_t grouped_bytes(int64_t updates, int64_t destinations) {
  if (counts_out(updates, destinations)) return (destinations + 1 + 2 * updates) * 4;
  return times(updates, sizeof(Entry));
}

// Few destinations: the updates are counted out to them, in order. 12 bytes an update.
template <class Fold>
void fold_counted(const Nest& ids, int units, const char* index, int64_t unit, int64_t updates,
                  int64_t destinations, char* scratch, const Fold& fold) {
  constexpr uint32_t kNone = 0xFFFFFFFFu;
  auto* starts = reinterpret_cast<uint32_t*>(scratch);
  uint32_t* numbers = starts + destinations + 1;
  uint32_t* order = numbers + updates;
  std::memset(starts, 0, sizeof(uint32_t) * static_cast<size_t>(destinations + 1));
  int64_t t = 0;
  number_unit(ids, units, index, unit, [&](const int64_t* block, int n) {
    for (int j = 0; j < n; ++j, ++t) {
      numbers[t] = block[j] == kInvalid ? kNone : static_cast<uint32_t>(block[j]);
      if (numbers[t] != kNone) ++starts[numbers[t] + int64_t{1}];
    }
  });
  for (int64_t d = 0; d < destinations; ++d) starts[d + 1] += starts[d];
  for (t = 0; t < updates; ++t)
    if (numbers[t] != kNone) order[starts[numbers[t]]++] = static_cast<uint32_t>(t);
  // Every start has moved on to the next one's place.
  for (int64_t d = 0, begin = 0; d < destinations; begin = starts[d++])
    if (starts[d] != begin) fold(d, &order[begin], starts[d] - begin);
}

// Many destinations: the updates are sorted. 16 bytes an update.
template <class Fold>
void fold_sorted(const Nest& ids, int units, const char* index, int64_t unit, char* scratch,
                 const Fold& fold) {
  auto* entries = reinterpret_cast<Entry*>(scratch);
  int64_t t = 0, kept = 0;
  number_unit(ids, units, index, unit, [&](const int64_t* block, int n) {
    for (int j = 0; j < n; ++j, ++t)
      if (block[j] != kInvalid) entries[kept++] = {block[j], t};
  });
  std::sort(entries, entries + kept);
  for (int64_t i = 0, end = 0; i < kept; i = end) {
    while (end < kept && entries[end].destination == entries[i].destination) ++end;
    fold(entries[i].destination, &entries[i], end - i);
  }
}

template <class F>
void scatter_by_group(const Nest& nest, const Nest& ids, int units, const Operands& at, const Range& range,
                      bool include_self, int64_t destinations, char* scratch) {
  int64_t updates = nest.line_loop().extent;
  for (int i = units; i < nest.line; ++i) updates *= nest.loops[i].extent;
  const FoldGroup<F> group{nest, units, include_self};
  Odometer lead(nest.loops, units, range.begin);
  for (int64_t unit = range.begin; unit < range.end; ++unit, lead.next()) {
    const auto fold = [&](int64_t destination, const auto* order, int64_t n) {
      group(at.data + lead.place().data + offset_of(nest, destination), at.other + lead.place().other, order,
            n);
    };
    if (counts_out(updates, destinations))
      fold_counted(ids, units, at.index, unit, updates, destinations, scratch, fold);
    else
      fold_sorted(ids, units, at.index, unit, scratch, fold);
  }
}

}  // namespace gatherum::GATHERUM_LEVEL
