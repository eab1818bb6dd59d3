// The groups of a unit: its updates, sorted by destination with a stable sort. The kernels of groups process
// one destination after another, with its updates in order.
//
// Groups are independent of each other; if there is only one unit, threads share its groups. The plan
// guarantees that inside a unit only the row loops move the data. Scratch: at most 40 bytes per update.
#pragma once

#include <algorithm>

#include "kernels/scatter_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

struct NumberedUpdate {
  int64_t destination, update;
  bool operator<(const NumberedUpdate& o) const {
    return destination != o.destination ? destination < o.destination : update < o.update;
  }
};

// The range of one unit.
inline Range unit_range(const GroupedScatter& call, int64_t unit) {
  return {.chunk = call.numbering->line_loop().extent, .begin = unit, .end = unit + 1};
}

// Returns the byte offset in the data of the destination with this number.
GATHERUM_NOINLINE inline int64_t offset_of(const Nest& nest, int64_t number) {
  int64_t offset = 0;
  for (int c = nest.components - 1; c >= 0; --c) {
    offset += number % nest.component[c].size * nest.component[c].stride;
    number /= nest.component[c].size;
  }
  return offset;
}

GATHERUM_NOINLINE inline int64_t offset_in_loops(const Nest& nest, int unit_loops, int64_t t) {
  int64_t offset = 0;
  for (int i = nest.line; i >= unit_loops; --i) {
    offset += t % nest.loops[i].extent * nest.loops[i].moved;
    t /= nest.loops[i].extent;
  }
  return offset;
}

// Returns the byte offset of the t-th update of a unit. Most units are one line; they need no division.
GATHERUM_INLINE int64_t update_offset(const Nest& nest, int unit_loops, int64_t t) {
  return unit_loops == nest.line ? t * nest.line_loop().moved : offset_in_loops(nest, unit_loops, t);
}

// The numbers of one destination's updates, in order. Each is stored in 32 bits or in a NumberedUpdate.
struct Group {
  const char* first;
  int64_t step;
  int64_t n;
  int64_t before, next;  // how many updates the groups before and after this one have

  int64_t operator[](int64_t i) const {
    const char* address = first + i * step;
    return step == int64_t{sizeof(NumberedUpdate)} ? load_value<int64_t>(address)
                                                   : load_value<uint32_t>(address);
  }
};

// Processes the rows of groups in parts, so that the accumulators of a part fit on the stack.
class GroupRows {
 public:
  // The start of a part: `data` in arrays with the output's layout, `moved` in arrays with the updates'
  // layout.
  struct RowPart {
    int64_t data, moved, elements;
  };

 protected:
  GroupRows(const GroupedScatter& call, int64_t unit)
      : nest_(*call.nest),
        unit_loops_(call.unit_loops),
        include_self_(call.fold_rule.include_self),
        prefetches_(call.prefetches),
        lead_(Odometer(nest_.loops, unit_loops_, unit).offsets()) {}

  // Calls `part(RowPart)` for the parts of a destination's row.
  template <class Part>
  void each_part(int64_t destination, const Part& part) const {
    const int64_t item = nest_.item, step = kStackItems * item,
                  data = lead_.data + offset_of(nest_, destination);
    each_row_point(nest_.rows(), nest_.row_rank(), ByteOffsets{}, [&](const ByteOffsets& p) {
      for (int64_t r = 0; r < nest_.block; r += step)
        part({data + p.data + r, lead_.moved + p.moved + r, std::min(kStackItems, (nest_.block - r) / item)});
    });
  }

  // Returns the t-th update of a group. The accesses are at random positions, so `bytes` bytes of the next
  // few updates are prefetched.
  GATHERUM_INLINE const char* update(const Group& group, int64_t t, const char* updates,
                                     int64_t bytes) const {
    if (prefetches_)
      each_of_burst(group.before + t, group.before + group.n + group.next, [&](int64_t k) {
        prefetch_bytes<FetchTo::second>(updates, update_offset(nest_, unit_loops_, group[k - group.before]),
                                        bytes);
      });
    return updates + update_offset(nest_, unit_loops_, group[t]);
  }

  const Nest& nest_;
  const int unit_loops_;
  const bool include_self_, prefetches_;
  const ByteOffsets lead_;
};

inline int64_t grouped_bytes(const GroupedScatter& call) {
  if (call.counted) return (call.pieces * call.destinations + 2 * call.updates) * 4;
  return limited_product(call.updates, sizeof(NumberedUpdate));
}

// A share of the sorted updates: the groups that begin in [begin, end).
struct Positions {
  int64_t begin, end;
};

// Updates ordered by a counting sort (order_edges()). Scratch: 4 bytes per destination and piece, for the
// position of the next update (at the end, the position after the last update), and 8 bytes per update, for
// its destination and its number in the new order.
class CountedGroups {
 public:
  CountedGroups(const GroupedScatter& call, char* scratch)
      : call_(call),
        ends_(reinterpret_cast<uint32_t*>(scratch) + (call.pieces - 1) * call.destinations),
        order_(ends_ + call.destinations + call.updates) {}

  template <class Visit>
  void each(const Positions& share, int64_t kept, const Visit& visit) const {
    int64_t d = 0, begin = 0;
    if (share.begin > 0) {
      d = std::lower_bound(ends_, ends_ + call_.destinations, share.begin) - ends_ + 1;
      begin = ends_[d - 1];
    }
    for (; begin < share.end; begin = ends_[d++])
      if (ends_[d] != begin) visit(d, group_of(begin, ends_[d], kept));
  }

 private:
  Group group_of(int64_t begin, int64_t end, int64_t kept) const {
    return {.first = reinterpret_cast<const char*>(order_ + begin),
            .step = sizeof *order_,
            .n = end - begin,
            .before = begin,
            .next = kept - end};
  }

  const GroupedScatter& call_;
  uint32_t* const ends_;  // the ends of destinations in `order_`, from the last piece
  uint32_t* const order_;
};

// Updates sorted by comparison, for very many destinations. Scratch: 16 bytes per update.
class SortedGroups {
 public:
  SortedGroups(const GroupedScatter& call, char* scratch)
      : call_(call), sorted_(reinterpret_cast<NumberedUpdate*>(scratch)) {}

  int64_t sort(const char* index, int64_t unit) const {
    int64_t t = 0, kept = 0;
    for (TileIterator tiles(*call_.numbering, call_.unit_loops, unit_range(call_, unit), index);
         !tiles.done(); tiles.next()) {
      const Tile& b = tiles.current();
      for (int j = 0; j < b.n; ++j, ++t)
        if (b.offsets[j] != kInvalid) sorted_[kept++] = {b.offsets[j], t};
    }
    std::sort(sorted_, sorted_ + kept);
    return kept;
  }

  template <class Visit>
  void each(const Positions& share, int64_t kept, const Visit& visit) const {
    const auto goes_on = [this](int64_t i) { return sorted_[i].destination == sorted_[i - 1].destination; };
    int64_t begin = share.begin;
    while (begin > 0 && begin < share.end && goes_on(begin)) ++begin;
    for (int64_t end = begin; begin < share.end; begin = end) {
      do ++end;
      while (end < kept && goes_on(end));
      visit(sorted_[begin].destination, group_of(begin, end, kept));
    }
  }

 private:
  Group group_of(int64_t begin, int64_t end, int64_t kept) const {
    return {.first = reinterpret_cast<const char*>(&sorted_[begin].update),
            .step = sizeof *sorted_,
            .n = end - begin,
            .before = begin,
            .next = kept - end};
  }

  const GroupedScatter& call_;
  NumberedUpdate* const sorted_;
};

// Calls `visit(destination, group)` for every group of a share.
template <class Visit>
void each_group(const GroupedScatter& call, const GroupShare& s, const Visit& visit) {
  const Positions positions{s.kept_updates * s.share / s.shares, s.kept_updates * (s.share + 1) / s.shares};
  if (call.counted)
    CountedGroups(call, s.scratch).each(positions, s.kept_updates, visit);
  else
    SortedGroups(call, s.scratch).each(positions, s.kept_updates, visit);
}

}  // namespace gatherum::GATHERUM_LEVEL
