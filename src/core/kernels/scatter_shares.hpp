// scatter_shares: the updates of a range of destinations, selected by a thread that reads every index.
//
//   slots[k] = X[i] - first,  which[k] = i    for the k-th i of a tile with first <= X[i] < first + count
//
// Compares eight indices at a time, and packs the indices in the range with a permutation of lanes. A tile
// with a negative or invalid index is staged as usual. The caller guarantees that chooses_slots() is true and
// that the stride of the component is 1. Cost: 0.5 ns per index for each of two threads that read the same
// indices (0.8 ns if indices are staged first and then chosen).
#pragma once

#include <limits>

#include "kernels/tiles.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The updates of a tile whose destinations are in a range: their slots in the range, and their positions in
// the tile. Packed lanes are written eight at a time, so the arrays are eight items longer than a tile.
struct Chosen {
  const char* updates = nullptr;
  int n = 0;
  alignas(64) uint32_t slots[kTile + 8];
  alignas(64) int32_t which[kTile + 8];
};

// Returns true if choose_slots() can read these indices. choose_slots() needs vectors of eight words. (If
// indices are compared one by one, two threads take up to 1.5 times as long as one thread that folds
// everything.)
inline bool chooses_slots(const Nest& nest, int64_t destinations) {
  const int64_t stride = nest.line_loop().index;
  return kLanes == 4 && nest.components == 1 && stride == nest.index.width &&
         reads_in_place(nest.index, stride) && destinations < int64_t{1} << 31;
}

#if GATHERUM_LANES == 4

// A table: for every set of eight lanes, the numbers of these lanes, padded with zeros.
inline constexpr auto kEightLanesOf = [] {
  std::array<uint8_t, 8 * 256> lanes{};
  for (unsigned set = 0; set < 256; ++set)
    for (unsigned l = 0, k = 0; l < 8; ++l)
      if (set >> l & 1) lanes[8 * set + k++] = static_cast<uint8_t>(l);
  return lanes;
}();

// Loads eight indices as 32-bit words. Sets a sign bit in `invalid` if an index is negative or greater than
// `last`.
template <class T>
GATHERUM_INLINE __m256i load_slots(const char* address, int64_t last, __m256i& invalid) {
  // Opaque, so that the values that were compared are the values that are used, even if another thread writes
  // to the array.
  const auto load = [address](int64_t i) {
    return opaque(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(address + i)));
  };
  if constexpr (sizeof(T) == 4) {
    const __m256i v = load(0), most = _mm256_set1_epi32(static_cast<int>(last));
    invalid = _mm256_or_si256(invalid, _mm256_or_si256(v, _mm256_sub_epi32(most, v)));
    return v;
  } else {
    const __m256i v = load(0), w = load(32), most = _mm256_set1_epi64x(last);
    invalid = _mm256_or_si256(invalid, _mm256_or_si256(v, _mm256_sub_epi64(most, v)));
    invalid = _mm256_or_si256(invalid, _mm256_or_si256(w, _mm256_sub_epi64(most, w)));
    return lower_halves(v, w);
  }
}

// Selects among n <= kTile indices; n is a multiple of eight. Returns false if an index is negative or
// invalid; the selection is then undefined.
template <class T>
bool choose_slots(const char* values, int64_t size, const DestinationRange& owned, int n, const char* beside,
                  int64_t width, Chosen& to) {
  const __m256i first = _mm256_set1_epi32(static_cast<int>(owned.low));
  const __m256i last = _mm256_set1_epi32(static_cast<int>(owned.high - owned.low - 1));
  const __m256i step = _mm256_set1_epi32(8);
  __m256i number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), invalid = _mm256_setzero_si256();
  int kept = 0;
  for (int i = 0; i < n; i += 8, number = _mm256_add_epi32(number, step)) {
    prefetch(values + i * static_cast<int64_t>(sizeof(T)) + kIndexBytesAhead);
    prefetch(beside + i * width + kIndexBytesAhead);
    const __m256i all = load_slots<T>(values + i * static_cast<int64_t>(sizeof(T)), size - 1, invalid);
    const __m256i slot = _mm256_sub_epi32(all, first);
    const __m256i other = _mm256_or_si256(slot, _mm256_sub_epi32(last, slot));
    const auto chosen = ~static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(other))) & 0xFF;
    const auto keep = [&](void* to, __m256i words) {
      _mm256_storeu_si256(static_cast<__m256i*>(to), pick_lanes(words, kEightLanesOf.data() + 8 * chosen));
    };
    keep(to.slots + kept, slot);
    keep(to.which + kept, number);
    kept += std::popcount(chosen);
  }
  to.n = kept;
  if constexpr (sizeof(T) == 4) return _mm256_movemask_ps(_mm256_castsi256_ps(invalid)) == 0;
  return _mm256_movemask_pd(_mm256_castsi256_pd(invalid)) == 0;
}

// Writes the slots of n indices, a multiple of eight. Returns false if an index is negative or invalid.
template <class T>
bool load_all_slots(const char* values, int64_t size, int n, uint32_t* slots) {
  __m256i invalid = _mm256_setzero_si256();
  for (int i = 0; i < n; i += 8) {
    const __m256i v = load_slots<T>(values + i * static_cast<int64_t>(sizeof(T)), size - 1, invalid);
    _mm256_store_si256(reinterpret_cast<__m256i*>(slots + i), v);
  }
  if constexpr (sizeof(T) == 4) return _mm256_movemask_ps(_mm256_castsi256_ps(invalid)) == 0;
  return _mm256_movemask_pd(_mm256_castsi256_pd(invalid)) == 0;
}

#else

// Never called, since chooses_slots() is false.
template <class T>
bool choose_slots(const char*, int64_t, const DestinationRange&, int, const char*, int64_t, Chosen&) {
  return false;
}
template <class T>
bool load_all_slots(const char*, int64_t, int, uint32_t*) {
  return false;
}

#endif

// Selects among the tuples of a tile after normal staging. Returns false if it skipped an invalid one.
GATHERUM_NOINLINE inline bool choose_staged(const Nest& numbering, const char* index,
                                            const DestinationRange& owned, int n, Chosen& to) {
  Tile b;
  b.n = n;
  b.any_invalid = stage(numbering, index, numbering.line_loop().index, n, b.offsets);
  choose(b, owned);
  to.n = b.chosen_count;
  for (int k = 0; k < b.chosen_count; ++k) {
    to.which[k] = b.chosen[k];
    to.slots[k] = static_cast<uint32_t>(b.offsets[b.chosen[k]] - owned.low);
  }
  return !b.any_invalid;
}

// Writes the lowest and the highest destination of a range of units. Returns false if it skipped an invalid
// index. Cost: 0.3 ns per index in cache, about 1 ns from memory.
inline bool find_lowest_and_highest(const Nest& numbering, const char* index, const Range& range,
                                    int64_t destinations, int32_t* lowest, int32_t* highest) {
  const int64_t size = numbering.component[0].size, width = numbering.index.width;
  bool plain = chooses_slots(numbering, destinations), valid = true;
  uint32_t low = std::numeric_limits<int32_t>::max(), high = 0;
  Chosen chosen;
  ByteOffsets base;
  int n = 0;
  for (Tiles tiles(numbering, numbering.line, range); tiles.next(base, n);) {
    const char* values = index + base.index + numbering.component[0].offset;
    if (plain && n % 8 == 0)
      plain = width == 8 ? load_all_slots<int64_t>(values, size, n, chosen.slots)
                         : load_all_slots<int32_t>(values, size, n, chosen.slots);
    if (plain && n % 8 == 0)
      chosen.n = n;
    else
      valid &= choose_staged(numbering, index + base.index, {0, destinations}, n, chosen);
    for (int64_t i = 0; i < n * width; i += kCacheLine) prefetch(values + i + kIndexBytesAhead);
    for (int k = 0; k < chosen.n; ++k) {
      low = std::min(low, chosen.slots[k]);
      high = std::max(high, chosen.slots[k]);
    }
  }
  *lowest = static_cast<int32_t>(low);
  *highest = low <= high ? static_cast<int32_t>(high) : -1;
  return valid;
}

// Calls `take(slot, update)` in order, for every update in a range of units whose destination the thread
// owns. Returns false if it skipped an invalid index.
template <class Stored, class Take>
bool take_share(const Nest& numbering, int unit_loops, const Range& range, const Operands& operands,
                const DestinationRange& owned, const Take& take) {
  const int64_t step = numbering.line_loop().moved, size = numbering.component[0].size;
  // Slots outside the cache are prefetched a tile ahead, between folds (10M updates of 1M float64, each of
  // two threads: 31 ms without, 22 with prefetch).
  const auto fold = [=, far = numbering.far](const Chosen& from, const Chosen& next) {
    const char* GATHERUM_RESTRICT updates = from.updates;
    const auto one = [&](int k) { take(from.slots[k], load_value<Stored>(updates + from.which[k] * step)); };
    const int n = from.n, both = far ? std::min(n, next.n) / kStagedTogether * kStagedTogether : 0;
    for (int k = 0; k < both; k += kStagedTogether) {
      for (int l = 0; l < kStagedTogether; ++l) take.fetch(next.slots[k + l]);
      for (int l = 0; l < kStagedTogether; ++l) one(k + l);
    }
    for (int k = both; k < n; ++k) one(k);
  };
  Chosen pair[2];
  Chosen *now = &pair[0], *then = &pair[1];
  ByteOffsets base;
  int n = 0;
  bool valid = true;
  // True until an index is negative or invalid. More such indices are then likely, and each would be read
  // twice.
  bool all_in_bounds = true;
  for (Tiles tiles(numbering, unit_loops, range); tiles.next(base, n); std::swap(now, then)) {
    const char* index = operands.index + base.index;
    const char* values = index + numbering.component[0].offset;
    then->updates = operands.moved + base.moved;
    const auto choose_as = [&](auto type) {
      return choose_slots<decltype(type)>(values, size, owned, n, then->updates, step, *then);
    };
    all_in_bounds =
        all_in_bounds &&
        (n % 8 != 0 || (numbering.index.width == 4 ? choose_as(int32_t{}) : choose_as(int64_t{})));
    if (!all_in_bounds || n % 8 != 0) valid &= choose_staged(numbering, index, owned, n, *then);
    fold(*now, *then);
  }
  then->n = 0;
  fold(*now, *then);
  return valid;
}

}  // namespace gatherum::GATHERUM_LEVEL
