// gather_rows: one row per index:  U[j * su + r] = D[j * sd + offset[j] + r]  for every byte r of the row.
//
// A row is `block` contiguous bytes, repeated over the nest's row loops (strided operands). The plan
// guarantees that row loops do not move the index. Cost: the bytes of the rows are read and written once.
#pragma once

#include "kernels/gather_lines.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Copies a run of bytes. Rows are short, so a call to memcpy would be a large part of the cost.
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

// Writes bytes with streaming stores, for output larger than the cache. A normal store would first read the
// cache line. The address and the size are multiples of kStreamed. If a row fills only part of a cache line,
// the next row completes it.
GATHERUM_INLINE void stream_run(char* GATHERUM_RESTRICT dst, const char* GATHERUM_RESTRICT src,
                                int64_t bytes) {
  int64_t r = 0;
  for (; r < bytes && reinterpret_cast<uintptr_t>(dst + r) % kCacheLine != 0; r += kStreamed)
    stream_item<kStreamed>(dst + r, src + r);
  GATHERUM_UNROLL(4)
  for (; r + kCacheLine <= bytes; r += kCacheLine) stream_line(dst + r, src + r);
  for (; r < bytes; r += kStreamed) stream_item<kStreamed>(dst + r, src + r);
}

// Writes whole cache lines with streaming stores, and copies the rest.
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

// The number of rows by which prefetches run ahead. It is large enough to hide a miss, and small enough that
// the rows stay in L1. Only the beginning of a long row is prefetched; the hardware prefetches the rest.
inline constexpr int64_t kPrefetchBytes = 1024;
GATHERUM_INLINE int rows_ahead(int64_t bytes) { return bytes > kPrefetchBytes ? 8 : 24; }

// Rows at random positions are prefetched in bursts of kBurst rows, kBurstAhead rows ahead, into the L2
// cache. More lines can be in flight than with prefetches into L1, and no line in use is evicted from L1.
inline constexpr int64_t kBurst = 16, kBurstAhead = 64;

// If a burst is due at row i, calls `fetch(k)` for each row k of this burst, out of `rows` rows.
template <class FetchRow>
GATHERUM_INLINE void each_of_burst(int64_t i, int64_t rows, const FetchRow& fetch) {
  if (i % kBurst != 0) return;
  const int64_t end = std::min(i + kBurstAhead + kBurst, rows);
  for (int64_t k = i + kBurstAhead; k < end; ++k) fetch(k);
}

// W is the size of the block, or 0 for a run of nest.block bytes. If `streams`, rows use streaming stores.
// (With a runtime check for each row, rows of 256 bytes took a few percent longer.)
template <int W, bool streams>
struct GatherRow {
  const Nest& nest;
  const Operands& operands;

  // Not inlined: inside the loop over tiles, it made gathers of rows 3-5 % slower.
  GATHERUM_NOINLINE void move(const Tile& tile, const Tile& following) const {
    if (nest.row_rank() == 0)
      move_runs(tile, following);
    else
      move_points(tile, following);
    if (streams) stream_fence();
  }

 private:
  // These are local copies, because members would be read again after every store.
  void move_runs(const Tile& tile, const Tile& following) const {
    const int64_t bytes = nest.block;
    const Loop line = nest.line_loop();
    const int n = tile.n;
    const bool far = nest.far;
    const Fetching fetching(*this, tile, following);
    const int64_t* GATHERUM_RESTRICT offsets = tile.offsets;
    const char* from = operands.data + tile.base.data;
    char* to = operands.moved + tile.base.moved;
    for (int j = 0; j < n; ++j, from += line.data, to += line.moved) {
      if (far) fetching(j);
      if (offsets[j] == kInvalid)
        fill_run(to, bytes);
      else
        copy_block(to, from + offsets[j], bytes);
    }
  }

  void move_points(const Tile& tile, const Tile& following) const {
    const Loop& line = nest.line_loop();
    const Fetching fetching(*this, tile, following);
    ByteOffsets base = tile.base;
    for (int j = 0; j < tile.n; ++j, base = advance(base, line, 1)) {
      if (nest.far) fetching(j);
      const bool valid = tile.offsets[j] != kInvalid;
      const char* from = valid ? operands.data + tile.offsets[j] : nullptr;
      each_row_point(
          nest.rows(), nest.row_rank(), base,
          [valid, from, to = operands.moved, bytes = nest.block, row = *this](const ByteOffsets& p) {
            if (valid)
              row.copy_block(to + p.moved, from + p.data, bytes);
            else
              row.fill_run(to + p.moved, bytes);
          });
    }
  }

  // Prefetches rows that follow the j-th row, in this tile or the next tile.
  struct Fetching {
    GATHERUM_INLINE Fetching(const GatherRow& row, const Tile& tile, const Tile& following)
        : is_long(row.nest.block > kPrefetchBytes),
          bytes(std::min(row.nest.block, kPrefetchBytes)),
          step(row.nest.line_loop().data),
          n(tile.n),
          following_n(following.n),
          offsets(tile.offsets),
          following_offsets(following.offsets),
          data(row.operands.data + tile.base.data),
          following_data(row.operands.data + following.base.data) {}

    // (For rows of 1536 bytes, bursts make no difference. For 2M of 2M rows of 64 bytes, bursts reduce the
    // time to 1/2.5.)
    GATHERUM_INLINE void operator()(int j) const {
      const int64_t rows = int64_t{n} + following_n;
      if (!is_long)
        each_of_burst(j, rows, [this](int64_t k) { fetch<FetchTo::second>(k); });
      else if (const int64_t k = j + rows_ahead(kPrefetchBytes + 1); k < rows)
        fetch<FetchTo::first>(k);
    }

    // Prefetches the k-th row, counted from the start of this tile.
    template <FetchTo to>
    GATHERUM_INLINE void fetch(int64_t k) const {
      const bool in_next = k >= n;
      if (in_next) k -= n;
      const int64_t offset = (in_next ? following_offsets : offsets)[k];
      if (offset != kInvalid) prefetch_bytes<to>(in_next ? following_data : data, k * step + offset, bytes);
    }

    const bool is_long;
    const int64_t bytes, step;
    const int n, following_n;
    const int64_t *const offsets, *const following_offsets;
    const char *const data, *const following_data;
  };

  GATHERUM_INLINE void copy_block(char* dst, const char* src, int64_t bytes) const {
    if constexpr (streams)
      stream_run(dst, src, bytes);
    else if constexpr (W == 0)
      copy_run(dst, src, bytes);
    else
      store_item(dst, load_item<W>(src));
  }

  GATHERUM_NOINLINE void fill_run(char* dst, int64_t bytes) const {
    for (int64_t r = 0; r < bytes; r += nest.item)
      std::memcpy(dst + r, operands.fill, static_cast<size_t>(nest.item));
  }
};

// Gathers a range of units. Returns false if an index is invalid and the mode is raise. The next tile is
// staged before the rows of the current tile are moved.
template <int W, bool streams>
bool gather_rows(const Nest& nest, int unit_loops, const Operands& operands, const Range& range) {
  const GatherRow<W, streams> kernel{nest, operands};
  TileIterator tiles(nest, unit_loops, range, operands.index);
  for (; !tiles.done(); tiles.turn()) {
    const Tile &tile = tiles.current(), &following = tiles.following();
    if (tile.any_invalid && nest.mode == Mode::raise) return false;
    tiles.stage();
    kernel.move(tile, following);
  }
  return true;
}

}  // namespace gatherum::GATHERUM_LEVEL
