// scatter_rounds: scatters items on many threads, in rounds, with one set of accumulators.
//
//   distribute  appends the pair (destination, value) of every update of a piece to the piece's list for the
//               destination
//   fold        folds some of the lists of all pieces of a round, piece after piece, into the accumulators
//
// Between two rounds every thread waits for all threads. Then each thread folds its share of the lists of the
// last round, and distributes another piece. Neighbouring destinations that fill a cache line or more share a
// list, and the destinations after them share the next list. Updates in order of their destinations therefore
// fill all lists, too. A list is folded by one thread, and pieces are in order, so a destination folds its
// updates in row-major order of the indices. The output is written only after all indices have been checked.
//
// The plan guarantees: one unit, without columns, and items of at most 8 bytes. Cost: 8 or 16 bytes per
// update are written to and read from a core's private cache.
#pragma once

#include "kernels/scatter_slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <int W>
using BitsOf =
    std::conditional_t<W == 1, uint8_t,
                       std::conditional_t<W == 2, uint16_t, std::conditional_t<W == 4, uint32_t, uint64_t>>>;

// A pair is one word, or two for items of 8 bytes: the slot, and the bits of the item.
template <int W>
struct RoundPair {
  using Bits = BitsOf<W>;
  static constexpr int64_t kBytes = RoundScatter::pair_bytes(W);

  static GATHERUM_INLINE void store(char* address, uint32_t slot, Bits bits) {
    if constexpr (W <= 4) {
      const uint64_t word = uint64_t{slot} | uint64_t{bits} << 32;
      std::memcpy(address, &word, sizeof word);
    } else {
      const uint64_t words[] = {slot, bits};
      std::memcpy(address, words, sizeof words);
    }
  }
  static GATHERUM_INLINE uint32_t slot(const char* address) {
    return static_cast<uint32_t>(load_value<uint64_t>(address));
  }
  template <class Stored>
  static GATHERUM_INLINE Stored value(const char* address) {
    Bits bits;
    if constexpr (W <= 4)
      bits = static_cast<Bits>(load_value<uint64_t>(address) >> 32);
    else
      bits = load_value<uint64_t>(address + 8);
    Stored v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
};

// Writes the slots of n indices, a multiple of eight. Returns false if an index is negative or invalid.
#if GATHERUM_LANES == 4
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
template <class T>
bool load_all_slots(const char*, int64_t, int, uint32_t*) {
  return false;
}
#endif

// The lists of a piece while it is distributed. A run begins with the address of the next run, in place of a
// pair.
template <int W>
class PieceLists {
 public:
  static constexpr int64_t kPair = RoundPair<W>::kBytes, kRun = RoundScatter::kRunBytes;

  PieceLists(const RoundScatter& call, int64_t area)
      : lists_(call.lists), shift_(call.shift), mask_(static_cast<uint32_t>(call.lists - 1)) {
    char* const runs = call.runs + area * call.area_bytes;
    for (int64_t list = 0; list < lists_; ++list) ends_[list] = runs + list * kRun + kPair;
    std::fill_n(full_, lists_, 0);
    unused_ = runs + lists_ * kRun;
  }

  GATHERUM_INLINE void put(uint32_t slot, const char* update) {
    const uint32_t list = slot >> shift_ & mask_;
    char* pair = ends_[list];
    if (reinterpret_cast<uintptr_t>(pair) % kRun == 0) [[unlikely]] {
      std::memcpy(pair - kRun, &unused_, sizeof unused_);
      pair = unused_ + kPair;
      unused_ += kRun;
      ++full_[list];
    }
    RoundPair<W>::store(pair, slot, load_value<BitsOf<W>>(update));
    prefetch_write(pair + 2 * kCacheLine);
    ends_[list] = pair + kPair;
  }

  void finish(RoundScatter::List* ends) const {
    for (int64_t list = 0; list < lists_; ++list) {
      const auto in_run = static_cast<int64_t>((reinterpret_cast<uintptr_t>(ends_[list]) - 1) % kRun) + 1;
      ends[list] = {ends_[list], full_[list] * (kRun / kPair - 1) + in_run / kPair - 1};
    }
  }

 private:
  const int64_t lists_;
  const int shift_;
  const uint32_t mask_;
  char* unused_;
  char* ends_[RoundScatter::kMostLists];
  int64_t full_[RoundScatter::kMostLists];
};

template <int W>
bool rounds_distribute(const RoundScatter& call, const Operands& operands, int64_t piece, int64_t area) {
  const Nest& numbering = *call.numbering;
  const int64_t width = numbering.index.width, step = numbering.line_loop().moved;
  const int64_t size = numbering.component[0].size, begin = std::min(piece * call.piece_units, call.units);
  PieceLists<W> lists(call, area);
  Chosen chosen;
  // As in take_share.
  bool plain = chooses_slots(numbering, call.destinations), valid = true;
  ByteOffsets base;
  int n = 0;
  const Range range{call.chunk, begin, std::min(begin + call.piece_units, call.units)};
  for (Tiles tiles(numbering, numbering.line, range); tiles.next(base, n);) {
    const char* index = operands.index + base.index;
    const char* values = index + numbering.component[0].offset;
    const char* updates = operands.moved + base.moved;
    if (plain && n % 8 == 0)
      plain = width == 8 ? load_all_slots<int64_t>(values, size, n, chosen.slots)
                         : load_all_slots<int32_t>(values, size, n, chosen.slots);
    if (plain && n % 8 == 0) {
      // The indices and values of later tiles are prefetched, because the processor would begin to read them
      // only after all updates of this tile.
      for (int i = 0; i < n; i += 8) {
        prefetch(values + i * width + kIndexBytesAhead);
        prefetch(updates + i * step + kIndexBytesAhead);
        GATHERUM_UNROLL(8)
        for (int j = 0; j < 8; ++j) lists.put(chosen.slots[i + j], updates + (i + j) * step);
      }
    } else {
      valid &= choose_staged(numbering, index, {0, call.destinations}, n, chosen);
      for (int k = 0; k < chosen.n; ++k) lists.put(chosen.slots[k], updates + chosen.which[k] * step);
    }
  }
  lists.finish(call.ends + area * call.lists);
  return valid;
}

// Calls `take(slot, value)` for each pair of a list. Another thread wrote the list, so each run is prefetched
// while the run before it is folded. `then` is the list after this one.
template <class Stored, class Take>
GATHERUM_INLINE void fold_list(const char* run, const char* end, const char* then, const Take& take) {
  using Pair = RoundPair<sizeof(Stored)>;
  for (bool last = false; !last;) {
    const char* limit = run + RoundScatter::kRunBytes;
    last = end > run && end <= limit;
    const char* stop = last ? end : limit;
    const char* next = last ? then : load_value<const char*>(run);
    prefetch_bytes(next, 0, RoundScatter::kRunBytes);
    GATHERUM_UNROLL(4)
    for (const char* pair = run + Pair::kBytes; pair < stop; pair += Pair::kBytes)
      take(Pair::slot(pair), Pair::template value<Stored>(pair));
    run = next;
  }
}

template <class F, bool Counted>
Slab<F, Counted> slab_of(const RoundScatter& call, const Operands& operands) {
  const char* from = call.source != nullptr ? call.source : operands.data;
  return {call.slab,
          {from, operands.data, call.step, 0, call.destinations, 1},
          call.combine.include_self,
          call.direct};
}

template <class F, bool Counted>
inline constexpr bool kRoundsSettle = kSettlesLater<F> && !Counted;

template <class F, bool Counted>
bool rounds_read(const RoundScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  Slab<F, Counted> slab = slab_of<F, Counted>(call, operands);
  slab.read(begin, end);
  if constexpr (kRoundsSettle<F, Counted>) return !slab.has_nan(begin, end);
  return true;
}

template <class F, bool Counted>
void rounds_fold(const RoundScatter& call, const Operands& operands, int64_t set, int64_t begin,
                 int64_t end) {
  using Stored = typename F::Stored;
  const auto taker = slab_of<F, Counted>(call, operands).taker();
  const auto list_at = [&](int64_t area, int64_t list) {
    return call.runs + area * call.area_bytes + list * RoundScatter::kRunBytes;
  };
  const int64_t first = set * call.pieces, areas = first + call.pieces;
  const auto all = [&](const auto& take) {
    for (int64_t list = begin; list < end; ++list)
      for (int64_t area = first; area < areas; ++area)
        fold_list<Stored>(list_at(area, list), call.ends[area * call.lists + list].end,
                          area + 1 < areas ? list_at(area + 1, list) : list_at(first, list + 1), take);
  };
  if constexpr (kRoundsSettle<F, Counted>)
    if (call.settles) return all([taker](int64_t slot, Stored v) { taker.add(slot, v); });
  all([taker](int64_t slot, Stored v) { taker(slot, v); });
}

template <class F, bool Counted>
void rounds_write(const RoundScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  const Slab<F, Counted> slab = slab_of<F, Counted>(call, operands);
  if constexpr (kRoundsSettle<F, Counted>)
    if (call.settles) slab.settle(begin, end);
  slab.write(begin, end, call.streams);
}

}  // namespace gatherum::GATHERUM_LEVEL
