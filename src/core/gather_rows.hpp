// gather, a row an index:  U[j * su + r] = D[j * sd + offset[j] + r]  for every byte r of the row.
//
// A row is `block` contiguous bytes, repeated over the nest's row loops (strided operands). The plan
// guarantees that row loops move with no index. Cost: the bytes of the rows, read and written once.
#pragma once

#include "gather_lines.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Copies L bytes; rows are short, so a call of memcpy would be a large part of the cost.
GATHERUM_INLINE void copy_run(char* GATHERUM_RESTRICT dst, const char* GATHERUM_RESTRICT src, int64_t bytes) {
  if (bytes >= 2048) {
    std::memcpy(dst, src, static_cast<size_t>(bytes));
    return;
  }
  int64_t r = 0;
  for (; r + 64 <= bytes; r += 64) std::memcpy(dst + r, src + r, 64);
  if (r + 32 <= bytes) std::memcpy(dst + r, src + r, 32), r += 32;
  if (r + 16 <= bytes) store_item(dst + r, load_item<16>(src + r)), r += 16;
  if (r + 8 <= bytes) store_item(dst + r, load_item<8>(src + r)), r += 8;
  for (; r < bytes; ++r) dst[r] = src[r];
}

// Copies bytes around the cache, for output that is larger than it anyway: a plain store would first read
// what it overwrites. Both the address and the size are multiples of kStreamed; a line that a row only begins
// is completed by the next one.
GATHERUM_INLINE void stream_run(char* GATHERUM_RESTRICT dst, const char* GATHERUM_RESTRICT src,
                                int64_t bytes) {
  int64_t r = 0;
  for (; r < bytes && reinterpret_cast<uintptr_t>(dst + r) % kCacheLine != 0; r += kStreamed)
    stream_piece(dst + r, src + r);
  GATHERUM_UNROLL(4)
  for (; r + kCacheLine <= bytes; r += kCacheLine) stream_line(dst + r, src + r);
  for (; r < bytes; r += kStreamed) stream_piece(dst + r, src + r);
}

// Streams what whole lines there are, and copies the rest.
inline void stream_bytes(char* to, const char* from, int64_t bytes) {
  const int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kCacheLine);
  if (bytes < head + kCacheLine) return copy_run(to, from, bytes);
  const int64_t whole = (bytes - head) / kCacheLine * kCacheLine;
  copy_run(to, from, head);
  stream_run(to + head, from + head, whole);
  copy_run(to + head + whole, from + head + whole, bytes - head - whole);
}

inline void copy_bytes(char* to, const char* from, int64_t bytes) {
  stream_bytes(to, from, bytes);
  stream_fence();
}

// Rows are fetched this many ahead: far enough to hide a miss, few enough to stay in L1. Of long ones only
// the beginning, behind which the processor goes on.
inline constexpr int64_t kPrefetchBytes = 1024;
GATHERUM_INLINE int rows_ahead(int64_t bytes) { return bytes > kPrefetchBytes ? 8 : 24; }

// W: the block's bytes; 0 for a run of nest.block bytes. Streams: rows are written past the cache. (Asked for
// each row instead, rows of 256 bytes took a few percent longer.)
template <int W, bool streams>
struct GatherRow {
  const Nest& nest;
  const Operands& at;

  // Not inlined: beside the state of the walk, rows took 3-5 % longer.
  GATHERUM_NOINLINE void move(const Block& b, const Block& then) const {
    const bool contiguous = nest.row_rank() == 0;
    const int ahead = rows_ahead(nest.block);
    const Loop& line = nest.line_loop();
    Place place = b.place;
    for (int j = 0; j < b.n; ++j, place = advance(place, line, 1)) {
      if (nest.far) prefetch_row(j + ahead < b.n ? b : then, j + ahead < b.n ? j + ahead : j + ahead - b.n);
      if (b.offsets[j] == kInvalid) {
        fill_row(place);
      } else if (contiguous) {
        copy_block(at.other + place.other, at.data + place.data + b.offsets[j]);
      } else {
        const char* from = at.data + b.offsets[j];
        each_row_point(nest.rows(), nest.row_rank(), place,
                       [from, to = at.other, row = *this](const Place& p) {
                         row.copy_block(to + p.other, from + p.data);
                       });
      }
    }
    if (streams) stream_fence();
  }

 private:
  void copy_block(char* dst, const char* src) const {
    if constexpr (streams)
      stream_run(dst, src, nest.block);
    else if constexpr (W == 0)
      copy_run(dst, src, nest.block);
    else
      store_item(dst, load_item<W>(src));
  }

  void prefetch_row(const Block& b, int j) const {
    if (j >= b.n || b.offsets[j] == kInvalid) return;
    const int64_t row = b.place.data + j * nest.line_loop().data + b.offsets[j];
    prefetch_run(at.data, row, std::min(nest.block, kPrefetchBytes));
  }

  void fill_row(Place place) const {
    const int64_t item = nest.item;
    each_row_point(nest.rows(), nest.row_rank(), place, [&](const Place& p) {
      char* dst = at.other + p.other;
      for (int64_t r = 0; r < nest.block; r += item) std::memcpy(dst + r, at.fill, static_cast<size_t>(item));
    });
  }
};

// Gathers a range of units; false when it has met an invalid index that nothing stands for. The block after
// the current one is staged before that one moves.
template <int W, bool streams>
bool gather_rows(const Nest& nest, int units, const Operands& at, const Range& range) {
  const GatherRow<W, streams> kernel{nest, at};
  Walk walk(nest, units, range, at.index);
  for (; !walk.done(); walk.turn()) {
    const Block &now = walk.now(), &then = walk.then();
    if (now.any_invalid && nest.mode == Mode::raise) return false;
    walk.stage();
    kernel.move(now, then);
  }
  return true;
}

}  // namespace gatherum::GATHERUM_LEVEL
