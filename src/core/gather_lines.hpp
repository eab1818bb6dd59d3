// gather, one small item an index:  U[j * su] = D[j * sd + offset[j]],  item of W bytes.
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

  void prefetch_block(const Block& b) const {
    if (!nest.far) return;
    const auto base = reinterpret_cast<uintptr_t>(at.data + b.place.data);
    const int64_t sd = nest.line_loop().data;
    for (int j = 0; j < b.n; ++j)
      prefetch(reinterpret_cast<const void*>(base + static_cast<uintptr_t>(j * sd) +
                                             static_cast<uintptr_t>(b.offsets[j])));
  }

  void move(const Block& b, const Block*) const { move(b.place, b.offsets, b.n, b.any_invalid); }

  void move(const Place& place, const int64_t* offsets, int n, bool any_invalid) const {
    const char* src = at.data + place.data;
    char* dst = at.other + place.other;
    const int64_t sd = nest.line_loop().data, su = nest.line_loop().other;
    if (any_invalid) return move_filled(offsets, n, src, dst);
    if (su == W)
      for (int j = 0; j < n; ++j) store_item(dst + j * W, load_item<W>(src + j * sd + offsets[j]));
    else
      for (int j = 0; j < n; ++j) store_item(dst + j * su, load_item<W>(src + j * sd + offsets[j]));
  }

 private:
  void move_filled(const int64_t* offsets, int n, const char* src, char* dst) const {
    const Item<W> fill = load_item<W>(at.fill);
    for (int j = 0; j < n; ++j, src += nest.line_loop().data, dst += nest.line_loop().other)
      store_item(dst, offsets[j] == kInvalid ? fill : load_item<W>(src + offsets[j]));
  }
};

}  // namespace gatherum::GATHERUM_LEVEL
