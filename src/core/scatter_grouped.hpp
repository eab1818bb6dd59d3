// scatter through accumulators: the updates of a unit are put in order of destination (stably), then
// each destination folds its own updates, left to right, in registers, and is written once.
//
//   D[g] = finish(fold(... fold(fold(D[g], U[t0]), U[t1]) ...), count),   t0 < t1 < ... that hit g
//
// For folds that cannot live in the output: half types (rounded once at the end), mean (counts),
// include_self=False (the first update starts the fold). The plan guarantees that inside a unit no
// loop but the row loops moves the data. Scratch: 16 bytes an update, and a counter a destination
// only where there are no more destinations than updates.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "scatter_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

// malloc'd scratch that fails by being null. (std::vector would be shared between the levels.)
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n) : p_(static_cast<T*>(std::calloc(static_cast<size_t>(n) + 1, sizeof(T)))) {}
  ~Scratch() { std::free(p_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() const { return p_; }
  T& operator[](int64_t i) const { return p_[i]; }

 private:
  T* p_;
};

struct Entry {
  int64_t destination, update;
  bool operator<(const Entry& o) const {
    return destination != o.destination ? destination < o.destination : update < o.update;
  }
};

// Numbers the destinations of the updates of one unit, whose leading loops stand at `lead`.
GATHERUM_NOINLINE inline void number_unit(const Nest& ids, int units, const char* index, int64_t unit,
                                          int64_t* numbers) {
  Blocks blocks(ids, units, {ids.line_loop().extent, unit, unit + 1});
  Place place;
  int n = 0;
  while (blocks.next(place, n)) {
    stage(ids, index + place.index, ids.line_loop().index, n, numbers);
    numbers += n;
  }
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

// Orders entries by destination, stably, dropping invalid ones; returns how many are left. With few
// destinations by counting, else by sorting.
GATHERUM_NOINLINE inline int64_t order_entries(const int64_t* numbers, int64_t updates, int64_t destinations,
                                               Entry* entries) {
  int64_t kept = 0;
  if (destinations <= updates) {
    Scratch<int64_t> starts(destinations + 1);
    if (starts.get() == nullptr) return -1;
    for (int64_t t = 0; t < updates; ++t)
      if (numbers[t] != kInvalid) ++starts[numbers[t] + 1], ++kept;
    for (int64_t d = 0; d < destinations; ++d) starts[d + 1] += starts[d];
    for (int64_t t = 0; t < updates; ++t)
      if (numbers[t] != kInvalid) entries[starts[numbers[t]]++] = {numbers[t], t};
    return kept;
  }
  for (int64_t t = 0; t < updates; ++t)
    if (numbers[t] != kInvalid) entries[kept++] = {numbers[t], t};
  std::sort(entries, entries + kept);
  return kept;
}

// Folds one group, entries [0, n), into the destination row; accumulators for a part of the row live
// on the stack.
template <class F>
struct FoldGroup {
  const Nest& nest;
  int units;
  bool include_self;

  void operator()(char* dst, const char* updates, const Entry* group, int64_t n) const {
    each_row_point(nest.rows(), nest.row_rank(), Place{}, [&](const Place& p) {
      for (int64_t r = 0; r < nest.block; r += kPart * nest.item)
        part(dst + p.data + r, updates + p.other + r, group, n,
             std::min(kPart, (nest.block - r) / nest.item));
    });
  }

 private:
  static constexpr int64_t kPart = 256;
  using T = typename F::Stored;

  void part(char* dst, const char* updates, const Entry* group, int64_t n, int64_t elements) const {
    typename F::Sum sums[kPart];
    int64_t t = 0;
    const char* first = include_self ? dst : updates + update_offset(nest, units, group[t++].update);
    for (int64_t e = 0; e < elements; ++e) sums[e] = F::widen(load_value<T>(first + e * nest.item));
    for (; t < n; ++t) {
      const char* src = updates + update_offset(nest, units, group[t].update);
      for (int64_t e = 0; e < elements; ++e)
        sums[e] = F::fold(sums[e], F::widen(load_value<T>(src + e * nest.item)));
    }
    for (int64_t e = 0; e < elements; ++e) {
      const T v = F::finish(sums[e], n + (include_self ? 1 : 0));
      std::memcpy(dst + e * nest.item, &v, sizeof v);
    }
  }
};

template <class F>
bool scatter_by_group(const Nest& nest, const Nest& ids, int units, const Operands& at, const Range& range,
                      bool include_self, int64_t destinations) {
  int64_t updates = nest.line_loop().extent;
  for (int i = units; i < nest.line; ++i) updates *= nest.loops[i].extent;
  Scratch<int64_t> numbers(updates);
  Scratch<Entry> entries(updates);
  if (numbers.get() == nullptr || entries.get() == nullptr) return false;
  const FoldGroup<F> fold{nest, units, include_self};
  Odometer lead(nest.loops, units, range.begin);
  for (int64_t unit = range.begin; unit < range.end; ++unit, lead.next()) {
    number_unit(ids, units, at.index, unit, numbers.get());
    const int64_t kept = order_entries(numbers.get(), updates, destinations, entries.get());
    if (kept < 0) return false;
    for (int64_t i = 0, end = 0; i < kept; i = end) {
      while (end < kept && entries[end].destination == entries[i].destination) ++end;
      fold(at.data + lead.place().data + offset_of(nest, entries[i].destination),
           at.other + lead.place().other, &entries[i], end - i);
    }
  }
  return true;
}

}  // namespace gatherum::GATHERUM_LEVEL
