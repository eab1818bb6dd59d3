// gather, one small block an index:  U[j * su] = D[j * sd + offset[j]],  block of W bytes.
//
// The plan guarantees: no row loops, block == W, W in {1, 2, 4, 8, 16}; offsets are staged (checked).
// Cost: one load and one store an item; with the next block prefetched, the memory's random-access
// rate for tables beyond cache.
#pragma once

#include <cstring>

#include "blocks.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <int W>
struct Item {
  unsigned char bytes[W];
};

template <int W>
GATHERUM_INLINE Item<W> load_item(const char* p) {
  Item<W> v;
  std::memcpy(&v, p, W);
  return v;
}

template <int W>
GATHERUM_INLINE void store_item(char* p, const Item<W>& v) {
  std::memcpy(p, &v, W);
}

template <int W>
struct GatherLine {
  const Nest& nest;
  const Operands& at;

  void prefetch_block(const Block& b) const { fetch(b, 0); }

  // While a block moves, the lines of the next are fetched, one for one: fetched all at once they are
  // more than a core can have under way, and a Zen 3 waits for them.
  void move(const Block& b, const Block* then) const {
    const int both = nest.far && !b.any_invalid ? std::min(b.n, then->n) : 0;
    const auto next = reinterpret_cast<uintptr_t>(at.data + then->place.data);
    const char* src = at.data + b.place.data;
    char* dst = at.other + b.place.other;
    const int64_t sd = nest.line_loop().data, su = nest.line_loop().other;
    GATHERUM_UNROLL(8)
    for (int j = 0; j < both; ++j) {
      prefetch_line(next, j * sd, then->offsets[j]);
      store_item(dst + j * su, load_item<W>(src + j * sd + b.offsets[j]));
    }
    fetch(*then, both);
    move(advance(b.place, nest.line_loop(), both), b.offsets + both, b.n - both, b.any_invalid);
  }

  void move(const Place& place, const int64_t* offsets, int n, bool any_invalid) const {
    const char* src = at.data + place.data;
    char* dst = at.other + place.other;
    const int64_t sd = nest.line_loop().data, su = nest.line_loop().other;
    if (any_invalid) return move_filled(offsets, n, src, dst);
    if (su != W) {
      for (int j = 0; j < n; ++j) store_item(dst + j * su, load_item<W>(src + j * sd + offsets[j]));
      return;
    }
    GATHERUM_UNROLL(8)
    for (int j = 0; j < n; ++j, src += sd) store_item(dst + j * W, load_item<W>(src + offsets[j]));
  }

 private:
  void fetch(const Block& b, int from) const {
    if (!nest.far) return;
    const auto base = reinterpret_cast<uintptr_t>(at.data + b.place.data);
    const int64_t sd = nest.line_loop().data;
    for (int j = from; j < b.n; ++j) prefetch_line(base, j * sd, b.offsets[j]);
    keep();
  }

  // An invalid offset leads anywhere, which a prefetch may.
  static GATHERUM_INLINE void prefetch_line(uintptr_t base, int64_t place, int64_t offset) {
    prefetch(
        reinterpret_cast<const void*>(base + static_cast<uintptr_t>(place) + static_cast<uintptr_t>(offset)));
  }

  void move_filled(const int64_t* offsets, int n, const char* src, char* dst) const {
    const Item<W> fill = load_item<W>(at.fill);
    for (int j = 0; j < n; ++j, src += nest.line_loop().data, dst += nest.line_loop().other)
      store_item(dst, offsets[j] == kInvalid ? fill : load_item<W>(src + offsets[j]));
  }
};

}  // namespace gatherum::GATHERUM_LEVEL
