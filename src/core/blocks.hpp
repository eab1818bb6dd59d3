// The walk of the nest: unit by unit, in order, in staged blocks of at most kBlock tuples.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "indices.hpp"
#include "kernels.hpp"

namespace gatherum::GATHERUM_LEVEL {

// One staged stretch of the line: where it begins, how many tuples, and their checked offsets. Scatters that
// call `choose` write the chosen ones.
struct Block {
  Place place;
  int n = 0;
  bool any_invalid = false;
  int chosen = 0;  // so many tuples are to be written: all n, or the first of `which`
  int which[kBlock];
  alignas(64) int64_t offsets[kBlock];

  GATHERUM_INLINE int at(int i) const { return chosen == n ? i : which[i]; }
};

// For every set of lanes, their numbers one after the other; behind them zeros, which the next ones
// overwrite.
inline constexpr auto kLanesOf = [] {
  std::array<std::array<int, kLanes>, 1 << kLanes> lanes{};
  for (unsigned set = 0; set < lanes.size(); ++set)
    for (int l = 0, k = 0; l < kLanes; ++l)
      if (set >> l & 1) lanes[set][k++] = l;
  return lanes;
}();

// Chooses the tuples whose offsets (or destination numbers) are in [low, high), in order. Without a branch,
// which would be mispredicted where they come by chance, and a vector at a time (half of the tuples: 0.5 ns
// each, one by one 1.0).
GATHERUM_NOINLINE inline void choose(Block& b, int64_t low, int64_t high) {
  using Words = Lanes<uint64_t>;
  const auto first = static_cast<uint64_t>(low), last = static_cast<uint64_t>(high) - first - 1;
  const auto take = [&](unsigned set, int j) {
    const auto lanes = load_lanes<Lanes<int32_t>>(reinterpret_cast<const char*>(kLanesOf[set].data())) + j;
    std::memcpy(b.which + b.chosen, &lanes, sizeof lanes);
    b.chosen += std::popcount(set);
  };
  constexpr unsigned every = (1u << kLanes) - 1;
  b.chosen = 0;
  int j = 0;
  for (; j + kLanes <= b.n; j += kLanes) {
    const Words v = load_lanes<Words>(reinterpret_cast<const char*>(b.offsets + j)) - first;
    take(every & ~signs(std::bit_cast<Lanes<int64_t>>(v | (last - v))), j);
  }
  for (; j < b.n; ++j) {
    const uint64_t v = static_cast<uint64_t>(b.offsets[j]) - first;
    b.which[b.chosen] = j;
    b.chosen += static_cast<int>(~(v | (last - v)) >> 63);
  }
}

GATHERUM_INLINE void choose_valid(Block& b) {
  b.chosen = b.n;
  constexpr int64_t any = int64_t{1} << 62;  // no offset is that far
  if (b.any_invalid) choose(b, -any, any);
}

// The stretches of a range of units. Inside a unit the loops behind the leading `units` ones are
// walked in row-major order, so that a scatter meets the updates of a destination in order.
class Blocks {
 public:
  GATHERUM_NOINLINE Blocks(const Nest& nest, int units, const Range& range)
      : nest_(nest),
        range_(range),
        chunks_(range.chunk >= nest.line_loop().extent ? 1 : (nest.line_loop().extent - 1) / range.chunk + 1),
        unit_(range.begin),
        lead_(nest.loops, units, range.begin / chunks_),
        inner_(nest.loops + units, nest.line - units, 0) {
    for (int i = units; i < nest.line; ++i) inner_count_ *= nest.loops[i].extent;
    enter_chunk();
  }

  GATHERUM_NOINLINE bool next(Place& place, int& n) {
    if (position_ == chunk_end_ && !advance_inner()) return false;
    const Place a = lead_.place(), b = inner_.place();
    place = advance({a.data + b.data, a.index + b.index, a.other + b.other}, nest_.line_loop(), position_);
    n = static_cast<int>(std::min<int64_t>(kBlock, chunk_end_ - position_));
    position_ += n;
    return true;
  }

 private:
  void enter_chunk() {
    chunk_begin_ = unit_ % chunks_ * range_.chunk;
    chunk_end_ = std::min(chunk_begin_ + range_.chunk, nest_.line_loop().extent);
    position_ = unit_ < range_.end ? chunk_begin_ : chunk_end_;
  }

  bool advance_inner() {
    if (unit_ >= range_.end) return false;
    position_ = chunk_begin_;
    inner_.next();
    if (++inner_at_ < inner_count_) return true;
    inner_at_ = 0;
    if (++unit_ >= range_.end) return false;
    if (unit_ % chunks_ == 0) lead_.next();
    enter_chunk();
    return true;
  }

  const Nest& nest_;
  const Range range_;
  const int64_t chunks_;
  int64_t unit_;
  Odometer lead_, inner_;
  int64_t inner_at_ = 0, inner_count_ = 1;
  int64_t chunk_begin_ = 0, chunk_end_ = 0, position_ = 0;
};

GATHERUM_NOINLINE inline bool stage_next(const Nest& nest, const char* index, Blocks& blocks, Block& block) {
  if (!blocks.next(block.place, block.n)) return false;
  block.any_invalid = stage(nest, index + block.place.index, nest.line_loop().index, block.n, block.offsets);
  return true;
}

// Calls point(place) for every point of the row loops, in order.
template <class Point>
void each_row_point(const Loop* loops, int rank, Place place, const Point& point) {
  if (rank == 0) return point(place);
  for (int64_t i = 0; i < loops[0].extent; ++i, place = advance(place, loops[0], 1)) {
    if (rank == 1)
      point(place);
    else
      each_row_point(loops + 1, rank - 1, place, point);
  }
}

}  // namespace gatherum::GATHERUM_LEVEL
