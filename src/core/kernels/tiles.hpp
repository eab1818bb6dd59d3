// Visits the points of a nest, one unit (independent batch) after another, in tiles of at most kTile staged
// tuples.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/calls.hpp"
#include "kernels/indices.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Steps through the points of a few loops in row-major order, from any linear position.
class Odometer {
 public:
  Odometer(const Loop* loops, int rank, int64_t position) : loops_(loops), rank_(rank) {
    if (position == 0) {
      std::fill_n(point_, rank, 0);
      return;
    }
    for (int i = rank - 1; i >= 0; --i) {
      point_[i] = position % loops[i].extent;
      position /= loops[i].extent;
      offsets_ = advance(offsets_, loops[i], point_[i]);
    }
  }

  const ByteOffsets& offsets() const { return offsets_; }

  void next() {
    for (int i = rank_ - 1; i >= 0; --i) {
      offsets_ = advance(offsets_, loops_[i], 1);
      if (++point_[i] < loops_[i].extent) return;
      offsets_ = advance(offsets_, loops_[i], -point_[i]);
      point_[i] = 0;
    }
  }

 private:
  const Loop* loops_;
  int rank_;
  int64_t point_[kMaxLoops];
  ByteOffsets offsets_;
};

// Staged tuples of a line: the position of the first tuple, the number of tuples, and their checked offsets.
// `chosen` lists the numbers of the chosen tuples if not all are chosen.
struct Tile {
  ByteOffsets base;
  int n = 0;
  bool any_invalid = false;
  int chosen_count = 0;
  int chosen[kTile];
  alignas(64) int64_t offsets[kTile];

  // The number of the i-th chosen tuple.
  GATHERUM_INLINE int chosen_at(int i) const { return chosen_count == n ? i : chosen[i]; }
};

// A table: for every set of lanes, the numbers of these lanes, padded with zeros. The next stores overwrite
// the zeros.
inline constexpr auto kLanesOf = [] {
  std::array<std::array<int, kLanes>, 1 << kLanes> lanes{};
  for (unsigned set = 0; set < lanes.size(); ++set)
    for (int l = 0, k = 0; l < kLanes; ++l)
      if (set >> l & 1) lanes[set][k++] = l;
  return lanes;
}();

// Chooses the owned tuples, in order. Invalid tuples are never owned. Uses no branches, because branches on
// random tuples are mispredicted, and processes a vector at a time (half of the tuples: 0.5 ns each, one by
// one 1.0).
GATHERUM_NOINLINE inline void choose(Tile& tile, const DestinationRange& owned) {
  using Words = Lanes<uint64_t>;
  const auto first = static_cast<uint64_t>(owned.low), last = static_cast<uint64_t>(owned.high) - first - 1;
  const auto append = [&](unsigned set, int j) {
    const auto lanes = load_lanes<Lanes<int32_t>>(reinterpret_cast<const char*>(kLanesOf[set].data())) + j;
    std::memcpy(tile.chosen + tile.chosen_count, &lanes, sizeof lanes);
    tile.chosen_count += std::popcount(set);
  };
  constexpr unsigned every = (1u << kLanes) - 1;
  tile.chosen_count = 0;
  int j = 0;
  for (; j + kLanes <= tile.n; j += kLanes) {
    const Words distance = load_lanes<Words>(reinterpret_cast<const char*>(tile.offsets + j)) - first;
    append(every & ~signs(std::bit_cast<Lanes<int64_t>>(distance | (last - distance))), j);
  }
  for (; j < tile.n; ++j) {
    const uint64_t distance = static_cast<uint64_t>(tile.offsets[j]) - first;
    tile.chosen[tile.chosen_count] = j;
    tile.chosen_count += static_cast<int>(~(distance | (last - distance)) >> 63);
  }
}

// The tile positions in a range of units. The first `unit_loops` loops enumerate the units. Within a unit,
// the other loops run in row-major order, so that a scatter applies the updates of a destination in order.
class Tiles {
 public:
  GATHERUM_NOINLINE Tiles(const Nest& nest, int unit_loops, const Range& range)
      : nest_(nest),
        range_(range),
        chunks_(range.chunk >= nest.line_loop().extent ? 1 : (nest.line_loop().extent - 1) / range.chunk + 1),
        unit_(range.begin),
        lead_(nest.loops, unit_loops, range.begin / chunks_),
        inner_(nest.loops + unit_loops, nest.line - unit_loops, 0) {
    for (int i = unit_loops; i < nest.line; ++i) inner_count_ *= nest.loops[i].extent;
    enter_chunk();
  }

  GATHERUM_NOINLINE bool next(ByteOffsets& base, int& n) {
    if (position_ == chunk_end_ && !advance_inner()) return false;
    const ByteOffsets a = lead_.offsets(), b = inner_.offsets();
    base = advance({a.data + b.data, a.index + b.index, a.moved + b.moved}, nest_.line_loop(), position_);
    n = static_cast<int>(std::min<int64_t>(kTile, chunk_end_ - position_));
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
    if (++inner_position_ < inner_count_) return true;
    inner_position_ = 0;
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
  int64_t inner_position_ = 0, inner_count_ = 1;
  int64_t chunk_begin_ = 0, chunk_end_ = 0, position_ = 0;
};

// The number of rows by which prefetches run ahead if columns are short runs far apart.
inline constexpr int64_t kRowsAhead = 8;

// Calls `one(j)` for each chosen tuple of a tile, in order.
template <class One>
GATHERUM_INLINE void each_chosen(const Tile& tile, const One& one) {
  const int n = tile.n, count = tile.chosen_count;  // local copies that no store can change
  if (count < n) {
    const int* GATHERUM_RESTRICT chosen = tile.chosen;
    for (int i = 0; i < count; ++i) one(chosen[i]);
  } else {
    for (int j = 0; j < n; ++j) one(j);
  }
}

// Options for staging tiles.
struct Staging {
  int64_t step = 0;        // i * step is added to the i-th offset of a tile, if the line moves the data
  bool by_column = false;  // lines are cut into columns
  const DestinationRange* owned = nullptr;  // the tuples to choose; null: all
};

// The loop over tiles that all kernels use. It stages the next tile while the current tile is processed.
//
//   for (TileIterator tiles(...); !tiles.done(); tiles.turn()) {
//     ... tiles.current() ...
//     tiles.stage();  // tiles.following(), which is known but not staged
//     ... both ...
//   }
class TileIterator {
 public:
  GATHERUM_NOINLINE TileIterator(const Nest& nest, int unit_loops, const Range& range, const char* index,
                                 const Staging& staging = {})
      : nest_(nest),
        index_(index),
        staging_(staging),
        tiles_(nest, unit_loops, range),
        interleaves_(stages_lines(nest)) {
    // For columns, prefetches run a few rows ahead instead of a page ahead.
    if (staging.by_column)
      ahead_ = unit_loops < nest.line ? advance(ByteOffsets{}, nest.loops[nest.line - 1], kRowsAhead)
                                      : ByteOffsets{};
    find_following();
    next();
  }
  TileIterator(const TileIterator&) = delete;
  TileIterator& operator=(const TileIterator&) = delete;

  const Tile& current() const { return *current_; }
  const Tile& following() const { return *following_; }
  // The byte offsets from a tile to the rows that are prefetched.
  const ByteOffsets& ahead() const { return ahead_; }
  bool done() const { return current_->n == 0; }
  // True if stage_while interleaves staging with work.
  bool interleaves() const { return interleaves_; }
  // True if all indices so far were valid.
  bool valid() const { return valid_; }

  void stage() { stage_from(0); }

  // Makes the next tile the current tile, and finds the tile after it.
  GATHERUM_NOINLINE void turn() {
    std::swap(current_, following_);
    find_following();
  }

  // Advances to the next tile, in loops that do nothing during staging.
  void next() {
    stage();
    turn();
  }

  // Calls `work(i)` for each tuple of this tile, in order. Also stages the next tile: each time it has
  // written `count` offsets of the next tile, from the i-th on, it calls `staged(i, count)`. These offsets
  // may be invalid. If the indices allow, the two kinds of calls are interleaved, so that their memory
  // accesses overlap (5M updates of 256 bins: 6.5 ms -> 4.7, of 250k: 17 -> 11; gather_elements along axis 0:
  // 13.5 -> 11.5).
  template <class Work, class Staged>
  GATHERUM_INLINE void stage_while(const char* beside, int64_t width, const Work& work,
                                   const Staged& staged) {
    const int current_n = current_->n, following_n = following_->n;
    const int both = interleaves_ ? std::min(following_n, current_n) / kStagedTogether * kStagedTogether : 0;
    if (both > 0) {
      const char* address = index_ + following_->base.index;
      const Fetch fetch{ahead_.index, beside, width};
      interleaves_ = nest_.index.width == 8 ? stage_lines<int64_t>(nest_, address, both, staging_.step,
                                                                   following_->offsets, fetch, work, staged)
                                            : stage_lines<int32_t>(nest_, address, both, staging_.step,
                                                                   following_->offsets, fetch, work, staged);
    }
    const int begin = interleaves_ ? both : 0;
    stage_from(begin);
    if (begin < following_n) staged(begin, following_n - begin);
    GATHERUM_UNROLL(4)
    for (int i = both; i < current_n; ++i) work(i);
  }

 private:
  // Finds the next tile. After the last tile, the next tile has no tuples.
  void find_following() {
    if (!tiles_.next(following_->base, following_->n)) following_->n = 0;
  }

  GATHERUM_NOINLINE void stage_from(int begin) {
    Tile& tile = *following_;
    const int64_t stride = nest_.line_loop().index;
    const char* address = index_ + tile.base.index + begin * stride;
    tile.any_invalid = begin < tile.n && gatherum::GATHERUM_LEVEL::stage(
                                             nest_, address, stride, tile.n - begin, tile.offsets + begin);
    if (staging_.step != 0) add_steps(staging_.step, begin, tile.n, tile.offsets);
    valid_ &= !tile.any_invalid;
    tile.chosen_count = tile.n;
    if (staging_.owned != nullptr && (tile.any_invalid || !staging_.owned->all()))
      choose(tile, *staging_.owned);
  }

  const Nest& nest_;
  const char* const index_;
  const Staging staging_;
  ByteOffsets ahead_{0, kIndexBytesAhead, 0};
  Tiles tiles_;
  bool interleaves_;  // until an index is negative or invalid: more are then likely, and each is staged twice
  bool valid_ = true;
  Tile pair_[2];
  Tile* current_ = &pair_[0];
  Tile* following_ = &pair_[1];
};

// Prefetches the columns of later rows, whose addresses the processor does not predict. Prefetches nothing if
// items are more than a cache line apart, because the run that spans them may be the whole array.
GATHERUM_INLINE void prefetch_rows_ahead(const Nest& nest, const ByteOffsets& ahead, const Operands& operands,
                                         const Tile& tile) {
  const Loop& line = nest.line_loop();
  const auto fetch = [&](const char* base, int64_t offset, int64_t step) {
    if (std::abs(step) > kCacheLine) return;
    const int64_t bytes = tile.n * std::abs(step);
    prefetch_bytes(base, step < 0 ? offset - bytes - step : offset, bytes);
  };
  fetch(operands.index, tile.base.index + ahead.index, line.index);
  fetch(operands.moved, tile.base.moved + ahead.moved, line.moved);
}

// Calls `line(context, loop, base)` for every line of the row loops, in order.
using RowLine = void (*)(const void* context, const Loop& loop, ByteOffsets base);
GATHERUM_NOINLINE inline void each_row_line(const Loop* loops, int rank, ByteOffsets base,
                                            const void* context, RowLine line) {
  if (rank == 1) return line(context, loops[0], base);
  for (int64_t i = 0; i < loops[0].extent; ++i, base = advance(base, loops[0], 1))
    each_row_line(loops + 1, rank - 1, base, context, line);
}

// Calls `point(base)` for every point of the row loops, in order. `point` should capture its variables by
// value: a reference would be reloaded for each point, since a store may have changed the referenced value.
template <class Point>
GATHERUM_INLINE void each_row_point(const Loop* loops, int rank, const ByteOffsets& base,
                                    const Point& point) {
  if (rank == 0) return point(base);
  constexpr RowLine line = [](const void* context, const Loop& loop, ByteOffsets offsets) {
    const Point each = *static_cast<const Point*>(context);
    const Loop step = loop;
    for (int64_t i = 0; i < step.extent; ++i, offsets = advance(offsets, step, 1)) each(offsets);
  };
  each_row_line(loops, rank, base, &point, line);
}

}  // namespace gatherum::GATHERUM_LEVEL
