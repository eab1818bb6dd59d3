// scatter_rounds: scatters items on many threads, in rounds, with one set of accumulators.
//
//   distribute  appends the pair (number of the destination in its list, value) of every update of a piece to
//               the piece's list for the destination
//   fold        folds some of the lists of all pieces of a round, piece after piece, into the accumulators
//
// Between two rounds every thread waits for all threads. Then each thread folds its share of the lists of the
// last round, and distributes pieces until none is left. Neighbouring destinations have different lists, so
// updates in order of their destinations also fill all lists. The accumulators of a list are contiguous: they
// share no cache line with other lists, and do not compete for the same part of a cache (20M updates of
// 10,000 float64 on 16 threads: a fold takes 1.7 ns; with accumulators in the order of the destinations, in
// which a thread's accumulators are 4 KiB apart, it takes 4.3 ns).
//
// A list is folded by one thread, and pieces are in order, so a destination folds its updates in row-major
// order of the indices. The output is written only after all indices have been checked.
//
// A destination with many updates would delay the thread that folds its list. It has a separate list, whose
// accumulator is kept in a register.
//
// The plan guarantees: one unit, without columns, and items of at most 8 bytes. Cost: 4, 8 or 12 bytes per
// update are written to and read from a core's private cache, and each destination is converted twice.
#pragma once

#include "kernels/scatter_slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

// A pair: the number of the destination in its list, and the bits of the item. A pair with an item of 8 bytes
// is 12 bytes, without padding.
template <int W>
struct RoundPair {
  static constexpr int64_t kBytes = RoundScatter::pair_bytes(W);
  // A run begins with an address, in place of one or two pairs, and ends with the last byte of a pair.
  static constexpr int64_t kFirst = W == 8 ? 16 : std::max<int64_t>(kBytes, sizeof(char*));
  static constexpr int64_t kInRun = (RoundScatter::kRunBytes - kFirst) / kBytes;
  static_assert(kFirst + kInRun * kBytes == RoundScatter::kRunBytes && kFirst >= int64_t{sizeof(char*)});
  static constexpr int64_t kItem = W == 8 ? kBytes - W : kBytes / 2;  // the offset of the item
  using Word = std::conditional_t<W <= 2, uint32_t, uint64_t>;

  static GATHERUM_INLINE void store(char* address, uint32_t number, const char* item) {
    constexpr auto half = static_cast<int64_t>(sizeof(Word)) / 2;
    if constexpr (W == 8) {
      std::memcpy(address, &number, sizeof number);
      std::memcpy(address + kItem, item, W);
    } else {
      using Bits = std::conditional_t<W == 1, uint8_t, std::conditional_t<W == 2, uint16_t, uint32_t>>;
      const Word word = Word{number} | Word{load_value<Bits>(item)} << 8 * half;
      std::memcpy(address, &word, sizeof word);
    }
  }
  static GATHERUM_INLINE int64_t number(const char* address) {
    if constexpr (W <= 2)
      return load_value<uint32_t>(address) & 0xFFFF;
    else
      return load_value<uint32_t>(address);
  }
  template <class Stored>
  static GATHERUM_INLINE Stored value(const char* address) {
    return load_value<Stored>(address + kItem);
  }
};

// Replaces n slots by their numbers in their lists, and writes the numbers of the lists.
inline void number_in_lists(const RoundScatter& call, int n, uint32_t* GATHERUM_RESTRICT slots,
                            uint32_t* GATHERUM_RESTRICT lists) {
  const int shift = call.shift;
  const auto shared = static_cast<uint32_t>(call.shared());
  for (int i = 0; i < n; ++i) lists[i] = slots[i] & (shared - 1);
  for (uint32_t h = 0; h < static_cast<uint32_t>(call.heavies); ++h)
    for (int i = 0; i < n; ++i) lists[i] = slots[i] == call.heavy[h] ? shared + h : lists[i];
  for (int i = 0; i < n; ++i) slots[i] >>= shift;
}

// The lists of a piece while it is distributed.
template <int W>
class PieceLists {
 public:
  using Pair = RoundPair<W>;
  static constexpr int64_t kRun = RoundScatter::kRunBytes;

  PieceLists(const RoundScatter& call, int64_t area) : lists_(call.lists()) {
    char* const runs = call.runs + area * call.area_bytes;
    for (int64_t list = 0; list < lists_; ++list) ends_[list] = runs + list * kRun + Pair::kFirst;
    std::fill_n(full_, lists_, 0);
    unused_ = runs + lists_ * kRun;
  }

  GATHERUM_INLINE void put(uint32_t list, uint32_t number, const char* update) {
    char* pair = ends_[list];
    if (reinterpret_cast<uintptr_t>(pair) % kRun == 0) [[unlikely]]
      pair = append_run(list, pair);
    Pair::store(pair, number, update);
    prefetch_write(pair + 2 * kCacheLine);
    ends_[list] = pair + Pair::kBytes;
  }

  void finish(RoundScatter::List* ends) const {
    for (int64_t list = 0; list < lists_; ++list) {
      const auto in_run = static_cast<int64_t>((reinterpret_cast<uintptr_t>(ends_[list]) - 1) % kRun) + 1;
      ends[list] = {ends_[list], full_[list] * Pair::kInRun + (in_run - Pair::kFirst) / Pair::kBytes};
    }
  }

 private:
  // Returns the first pair of a new run. Prefetches the run after it, which a list begins soon: the stores of
  // a thread wait for a line that another thread has read (1.6 ns an update instead of 1.85).
  GATHERUM_INLINE char* append_run(uint32_t list, char* end) {
    std::memcpy(end - kRun, &unused_, sizeof unused_);
    char* const first = unused_ + Pair::kFirst;
    unused_ += kRun;
    ++full_[list];
    for (int line = 0; line < 3; ++line) prefetch_write(unused_ + line * kCacheLine);
    return first;
  }

  const int64_t lists_;
  char* unused_;
  char* ends_[RoundScatter::kMostLists];
  int64_t full_[RoundScatter::kMostLists];
};

// Samples the first tuples of units at equal distances.
inline int rounds_sample(const RoundScatter& call, const Operands& operands, uint32_t* destinations) {
  constexpr int64_t places = 64;
  const Nest& numbering = *call.numbering;
  Chosen chosen;
  int samples = 0, n = 0;
  for (int64_t i = 0; i < places; ++i) {
    const int64_t unit = limited_product(call.units, i) / places;
    ByteOffsets base;
    Tiles(numbering, numbering.line, {call.chunk, unit, unit + 1}).next(base, n);
    n = std::min(n, static_cast<int>(RoundScatter::kSamples / places));
    choose_staged(numbering, operands.index + base.index, {0, call.destinations}, n, chosen);
    std::copy_n(chosen.slots, chosen.n, destinations + samples);
    samples += chosen.n;
  }
  return samples;
}

template <int W>
bool rounds_distribute(const RoundScatter& call, const Operands& operands, int64_t piece, int64_t area) {
  const Nest& numbering = *call.numbering;
  const int64_t width = numbering.index.width, step = numbering.line_loop().moved;
  const int64_t size = numbering.component[0].size, begin = std::min(piece * call.piece_units, call.units);
  PieceLists<W> lists(call, area);
  Chosen chosen;
  alignas(64) uint32_t list[kTile + 8];
  // As in take_share.
  bool plain = chooses_slots(numbering, call.destinations), valid = true;
  ByteOffsets base;
  int n = 0;
  const Range range{
      .chunk = call.chunk, .begin = begin, .end = std::min(begin + call.piece_units, call.units)};
  for (Tiles tiles(numbering, numbering.line, range); tiles.next(base, n);) {
    const char* index = operands.index + base.index;
    const char* values = index + numbering.component[0].offset;
    const char* updates = operands.moved + base.moved;
    if (plain && n % 8 == 0)
      plain = width == 8 ? load_all_slots<int64_t>(values, size, n, chosen.slots)
                         : load_all_slots<int32_t>(values, size, n, chosen.slots);
    if (plain && n % 8 == 0) {
      number_in_lists(call, n, chosen.slots, list);
      // The indices and values of later tiles are prefetched, because the processor would begin to read them
      // only after all updates of this tile.
      for (int i = 0; i < n; i += 8) {
        prefetch(values + i * width + kIndexBytesAhead);
        prefetch(updates + i * step + kIndexBytesAhead);
        GATHERUM_UNROLL(8)
        for (int j = 0; j < 8; ++j) lists.put(list[i + j], chosen.slots[i + j], updates + (i + j) * step);
      }
    } else {
      valid &= choose_staged(numbering, index, {0, call.destinations}, n, chosen);
      number_in_lists(call, chosen.n, chosen.slots, list);
      for (int k = 0; k < chosen.n; ++k)
        lists.put(list[k], chosen.slots[k], updates + chosen.which[k] * step);
    }
  }
  lists.finish(call.ends + area * RoundScatter::kMostLists);
  return valid;
}

// Calls take(number, value) for each pair of a list. Another thread wrote the list, so each run is prefetched
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
    for (const char* pair = run + Pair::kFirst; pair < stop; pair += Pair::kBytes)
      take(Pair::number(pair), Pair::template value<Stored>(pair));
    run = next;
  }
}

// Returns the slab of all lists, with the layout of the destinations of one list.
template <class F, bool Counted>
Slab<F, Counted> slab_of(const RoundScatter& call, const Operands& operands, int64_t list = 0) {
  const int64_t step = call.step << call.shift, first = list * call.step - list * call.slots * step;
  const char* from = call.source != nullptr ? call.source : operands.data;
  return {call.slab,
          {.from = from + first,
           .to = operands.data + first,
           .step = step,
           .column_step = 0,
           .count = call.slots << call.shift,
           .columns = 1},
          call.fold_rule.include_self,
          false};
}

// Calls visit(slab, begin, end) for the slots of the blocks [begin, end) of each list. The blocks of all
// lists with the same number have neighbouring destinations.
template <class F, bool Counted, class Visit>
void each_block(const RoundScatter& call, const Operands& operands, int64_t begin, int64_t end,
                const Visit& visit) {
  for (int64_t block = begin * RoundScatter::kBlock; block < end * RoundScatter::kBlock;
       block += RoundScatter::kBlock)
    for (int64_t list = 0; list < call.shared(); ++list) {
      const int64_t count = (call.destinations - 1 - list + call.shared()) >> call.shift;
      const int64_t last = std::min(block + RoundScatter::kBlock, count), slots = list * call.slots;
      if (block < last) visit(slab_of<F, Counted>(call, operands, list), slots + block, slots + last);
    }
}

template <class F, bool Counted>
inline constexpr bool kRoundsSettle = kSettlesLater<F> && !Counted;

template <class F, bool Counted>
bool rounds_read(const RoundScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  bool clean = true;
  each_block<F, Counted>(call, operands, begin, end, [&](auto slab, int64_t first, int64_t last) {
    slab.read(first, last);
    if constexpr (kRoundsSettle<F, Counted>) clean = clean && !slab.has_nan(first, last);
  });
  return clean;
}

// Folds the lists [begin, end). If Settles, NaN accumulators are made canonical later.
template <class F, bool Counted, bool Settles>
void fold_lists(const RoundScatter& call, const Operands& operands, int64_t set, int64_t begin, int64_t end) {
  using Stored = typename F::Stored;
  const auto slab = slab_of<F, Counted>(call, operands);
  const int64_t first = set * call.pieces, areas = first + call.pieces;
  const auto list_at = [&](int64_t area, int64_t list) {
    return call.runs + area * call.area_bytes + list * RoundScatter::kRunBytes;
  };
  const auto fold = [&](int64_t list, const auto& take) {
    for (int64_t area = first; area < areas; ++area)
      fold_list<Stored>(list_at(area, list), call.ends[area * RoundScatter::kMostLists + list].end,
                        area + 1 < areas ? list_at(area + 1, list) : list_at(first, list + 1), take);
  };
  const auto step = [](const auto& taker, int64_t slot, Stored v) {
    if constexpr (Settles)
      taker.add(slot, v);
    else
      taker(slot, v);
  };
  for (int64_t list = begin; list < end; ++list) {
    if (list < call.shared()) {
      const auto taker = slab.taker(list * call.slots);
      fold(list, [=](int64_t number, Stored v) { step(taker, number, v); });
    } else {
      slab.fold_slot(call.slot(call.heavy[list - call.shared()]),
                     [&](const auto taker) { fold(list, [=](int64_t, Stored v) { step(taker, 0, v); }); });
    }
  }
}

template <class F, bool Counted>
void rounds_fold(const RoundScatter& call, const Operands& operands, int64_t set, int64_t begin,
                 int64_t end) {
  if constexpr (kRoundsSettle<F, Counted>)
    if (call.settles) return fold_lists<F, Counted, true>(call, operands, set, begin, end);
  fold_lists<F, Counted, false>(call, operands, set, begin, end);
}

template <class F, bool Counted>
void rounds_write(const RoundScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  each_block<F, Counted>(call, operands, begin, end, [&](const auto& slab, int64_t first, int64_t last) {
    if constexpr (kRoundsSettle<F, Counted>)
      if (call.settles) slab.settle(first, last);
    slab.write(first, last, false);
  });
}

}  // namespace gatherum::GATHERUM_LEVEL
