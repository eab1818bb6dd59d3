// scatter_keyed: scatters maxima or minima into few destinations. Each thread folds a piece of the updates
// into private accumulators, which contain keys (order_keys.hpp). The accumulators of all threads are then
// merged.
//
//   K_p[i] = max(none, key(U[t]), ...)   for the updates t of piece p that hit i     take, for each piece p
//   K = max(K_0[i], K_1[i], ...)
//   D[i] = D[i] if K is none; else value(K), folded into D[i] if the fold includes it             write
//
// Keys have no rare values, and their maximum does not depend on the order. No counter is needed: the key
// "none" marks a destination without updates. If the fold excludes D, a NaN that is the only update must keep
// its bits. A quiet NaN that is the first update of a destination therefore has a special key until another
// update follows. A piece aborts if any other NaN is the first update of a destination. scatter_slabs.hpp
// lists the guarantees of the plan. The caller guarantees that there is exactly one unit, without columns.
// Cost: every update is read once, by one thread, with a store when a key grows; then the accumulators of all
// threads are read once.
//
// For argmax/argmin, the accumulators also contain the numbers of the updates to which the keys belong. Among
// equal keys, the first update wins.
#pragma once

#include <array>

#include "fold/order_keys.hpp"
#include "kernels/scatter_private.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The accumulators of a piece: keys, followed by the numbers of the updates to which they belong.
template <class F>
auto* keys_of(const PrivateScatter& call, int64_t piece) {
  return reinterpret_cast<typename OrderKeys<F>::Key*>(call.slabs + piece * call.slab_bytes);
}
template <class F>
uint32_t* numbers_of(const PrivateScatter& call, int64_t piece) {
  return reinterpret_cast<uint32_t*>(keys_of<F>(call, piece) + call.destinations);
}
inline constexpr uint32_t kNoUpdate = 0xFFFFFFFF;
// With fewer updates per destination, many updates exceed all previous updates, so a branch would be
// mispredicted.
inline constexpr int64_t kFewestUpdatesToBranch = 64;

// Computes the keys of n <= kTile updates. Returns true if any update is NaN. If `Equals` is true, zeros of
// either sign have the same key.
template <class F, bool Equals, class Step>
bool stage_keys(const char* updates, Step step, int n, typename OrderKeys<F>::Key* GATHERUM_RESTRICT keys) {
  using Keys = OrderKeys<F>;
  typename Keys::Key most = Keys::kNone;
  for (int j = 0; j < n; ++j) {
    const auto key = Keys::key_of(load_value<typename F::Stored>(updates + j * step));
    keys[j] = Equals ? Keys::key_of_equals(key) : key;
    most = std::max(most, keys[j]);
  }
  return Keys::kHasNaN && most == std::numeric_limits<typename Keys::Key>::max();
}

// Returns the key of a slot when a greater key arrives and the slot is empty or contains the key of a lone
// NaN. If a NaN is the first update of a destination, its bits are kept until another update follows; the
// result is then the canonical NaN.
template <class F>
GATHERUM_NOINLINE typename OrderKeys<F>::Key replacing_key(const PrivateScatter& call,
                                                           typename OrderKeys<F>::Key slot,
                                                           typename OrderKeys<F>::Key key,
                                                           const char* update) {
  using Keys = OrderKeys<F>;
  constexpr auto nan = std::numeric_limits<typename Keys::Key>::max();
  if (slot != Keys::kNone) return nan;
  if (key != nan) return key;
  const auto lone = Keys::key_of_lone_nan(load_value<typename F::Stored>(update));
  (lone == Keys::kNone ? call.nans->any_lost : call.nans->any_lone).store(true, std::memory_order_relaxed);
  return lone;
}

// The accumulators of a piece, and the fold of an update into them. If `Locates` is true, the accumulators
// contain the numbers of the updates, and the first NaN is the result.
template <class F, bool Locates>
class KeyedPiece {
  using Keys = OrderKeys<F>;

 public:
  using Key = typename Keys::Key;

  KeyedPiece(const PrivateScatter& call, int64_t piece)
      : call_(call),
        slots_(keys_of<F>(call, piece)),
        numbers_(Locates ? numbers_of<F>(call, piece) : nullptr),
        keeps_nan_(!Locates && Keys::kHasNaN && !call.fold_rule.include_self) {
    std::fill_n(slots_, call.destinations, Keys::kNone);
    if constexpr (Locates) std::fill_n(numbers_, call.destinations, kNoUpdate);
  }

  // True if a NaN that is the only update of its destination keeps its bits.
  bool keeps_nan() const { return keeps_nan_; }
  Key* slots() const { return slots_; }

  // Stores the greater key. Always stores a key, because a branch would often be mispredicted.
  GATHERUM_INLINE void store_greater(int64_t i, Key key) const {
    const Key slot = slots_[i];
    slots_[i] = opaque_integer(key > slot ? key : slot);
  }

  // Stores the key and the number of an update if the key is greater.
  GATHERUM_INLINE void fold(int64_t i, Key key, uint32_t number, const char* update) const {
    bool is_greater = key > slots_[i];
    if constexpr (Locates && !Keys::kHasNone)
      if (key == Keys::kNone) [[unlikely]]
        is_greater = numbers_[i] == kNoUpdate;
    if (!is_greater) return;
    if constexpr (!Locates && Keys::kHasNaN) {
      if (keeps_nan_ && slots_[i] <= Keys::kNone + 2) {
        slots_[i] = replacing_key<F>(call_, slots_[i], key, update);
        return;
      }
    }
    slots_[i] = key;
    if constexpr (Locates) numbers_[i] = number;
  }

 private:
  const PrivateScatter& call_;
  Key* const slots_;
  uint32_t* const numbers_;
  const bool keeps_nan_;
};

// The updates of a tile, with their keys. `number` is the number of the first update.
template <class Key>
struct KeyedTile {
  const Key* keys;
  const char* updates;
  int64_t step;
  uint32_t number;
};

// Folds a tile, and stages the next tile. If `branchless`, all keys are stored.
template <class F, bool Locates, class Key>
GATHERUM_INLINE void fold_keyed_tile(const KeyedPiece<F, Locates>& to, const KeyedTile<Key>& updates,
                                     TileIterator& tiles, bool far, bool branchless) {
  constexpr std::integral_constant<int64_t, static_cast<int64_t>(sizeof(typename F::Stored))> packed;
  const int64_t* GATHERUM_RESTRICT const offsets = tiles.current().offsets;
  const Key* GATHERUM_RESTRICT const keys = updates.keys;
  const auto store = [=](int j) { to.store_greater(offsets[j], keys[j]); };
  const auto fold = [=](int j) {
    to.fold(offsets[j], keys[j], updates.number + static_cast<uint32_t>(j),
            updates.updates + j * updates.step);
  };
  if (tiles.current().any_invalid) {
    each_chosen(tiles.current(), fold);
    tiles.stage();
    return;
  }
  const int64_t* GATHERUM_RESTRICT const next = tiles.following().offsets;
  const auto fetch = [=, slots = to.slots()](int j, int count) {
    if (far)
      for (int l = 0; l < count; ++l) fetch_slot<Key>(slots, next[j + l]);
  };
  if (branchless)
    tiles.stage_while(nullptr, packed, store, fetch);
  else
    tiles.stage_while(nullptr, packed, fold, fetch);
}

// Returns the number of the first update of a unit.
inline uint32_t first_update(const PrivateScatter& call, int64_t unit) {
  const int64_t extent = call.numbering->line_loop().extent, chunks = (extent - 1) / call.chunk + 1;
  return static_cast<uint32_t>(unit / chunks * extent + unit % chunks * call.chunk);
}

// If `Locates` is true, also stores the numbers of the updates. No piece aborts then.
template <class F, bool Locates>
FoldedUpdates keyed_take(const PrivateScatter& call, const Operands& operands, int64_t piece) {
  using Key = typename OrderKeys<F>::Key;
  constexpr std::integral_constant<int64_t, static_cast<int64_t>(sizeof(typename F::Stored))> packed;
  const Nest& numbering = *call.numbering;
  const KeyedPiece<F, Locates> to(call, piece);
  const Range range = units_of(call, piece);
  const int64_t step = numbering.line_loop().moved;
  const bool grows_often =
      numbering.outer_count() * numbering.line_loop().extent < kFewestUpdatesToBranch * call.destinations;
  uint32_t number = first_update(call, range.begin);
  bool any_nan = false;
  const DestinationRange all;
  std::array<Key, kTile> keys;
  TileIterator tiles(numbering, numbering.line, range, operands.index, {.owned = &all});
  for (; !tiles.done(); tiles.turn()) {
    const int n = tiles.current().n;
    const char* updates = operands.moved + tiles.current().base.moved;
    const bool nan = step == packed ? stage_keys<F, Locates>(updates, packed, n, keys.data())
                                    : stage_keys<F, Locates>(updates, step, n, keys.data());
    if constexpr (!Locates) {
      any_nan = any_nan || nan;
      if (call.nans->any_lost.load(std::memory_order_relaxed)) return FoldedUpdates::none;
    }
    const bool branchless = !Locates && grows_often && !(any_nan && to.keeps_nan());
    fold_keyed_tile<F, Locates>(to, KeyedTile<Key>{keys.data(), updates, step, number}, tiles, numbering.far,
                                branchless);
    number += static_cast<uint32_t>(n);
  }
  return tiles.valid() ? FoldedUpdates::all : FoldedUpdates::valid;
}

// Merges the keys of a destination from two pieces.
template <class F>
typename OrderKeys<F>::Key merged_key(typename OrderKeys<F>::Key a, typename OrderKeys<F>::Key b) {
  using Keys = OrderKeys<F>;
  const auto most = std::max(a, b), least = std::min(a, b);
  return least != Keys::kNone && (Keys::is_lone_nan(least) || Keys::is_lone_nan(most))
             ? std::numeric_limits<typename Keys::Key>::max()
             : most;
}

// Writes destinations [begin, end).
template <class F, class Step>
void keyed_write(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end,
                 Step step) {
  using Keys = OrderKeys<F>;
  using Key = typename Keys::Key;
  using T = typename F::Stored;
  Key* GATHERUM_RESTRICT const best = keys_of<F>(call, 0);
  const bool any_lone = Keys::kHasNaN && call.nans->any_lone.load(std::memory_order_relaxed);
  for (int64_t piece = 1; piece < call.pieces; ++piece) {
    const Key* GATHERUM_RESTRICT const others = keys_of<F>(call, piece);
    if (any_lone)
      for (int64_t i = begin; i < end; ++i) best[i] = merged_key<F>(best[i], others[i]);
    else
      for (int64_t i = begin; i < end; ++i) best[i] = std::max(best[i], others[i]);
  }
  const char* const from = call.source != nullptr ? call.source : operands.data;
  const bool include_self = call.fold_rule.include_self;
  for (int64_t i = begin; i < end; ++i) {
    const T old = load_value<T>(from + i * step), folded = Keys::value_of(best[i]);
    T v = any_lone && Keys::is_lone_nan(best[i]) ? Keys::lone_nan_of(best[i]) : folded;
    if (include_self) v = F::template fold<Selected>(old, folded);
    v = best[i] == Keys::kNone ? old : v;
    std::memcpy(operands.data + i * step, &v, sizeof v);
  }
}

template <class F>
void keyed_write(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  constexpr std::integral_constant<int64_t, static_cast<int64_t>(sizeof(typename F::Stored))> packed;
  call.step == packed ? keyed_write<F>(call, operands, begin, end, packed)
                      : keyed_write<F>(call, operands, begin, end, call.step);
}

// Writes argmax or argmin of destinations [begin, end). Among equal values, the update of the earliest piece
// wins.
template <class F>
void located_write(const PrivateScatter& call, int64_t begin, int64_t end) {
  auto* GATHERUM_RESTRICT const best = keys_of<F>(call, 0);
  uint32_t* GATHERUM_RESTRICT const winners = numbers_of<F>(call, 0);
  for (int64_t piece = 1; piece < call.pieces; ++piece) {
    const auto* GATHERUM_RESTRICT const keys = keys_of<F>(call, piece);
    const uint32_t* GATHERUM_RESTRICT const numbers = numbers_of<F>(call, piece);
    for (int64_t i = begin; i < end; ++i) {
      const bool is_greater = keys[i] > best[i] || winners[i] == kNoUpdate;
      winners[i] = is_greater ? numbers[i] : winners[i];
      best[i] = is_greater ? keys[i] : best[i];
    }
  }
  const int64_t step = call.step / static_cast<int64_t>(sizeof(typename F::Stored));
  for (int64_t i = begin; i < end; ++i)
    call.positions[i * step] = winners[i] == kNoUpdate ? call.none : int64_t{winners[i]};
}

}  // namespace gatherum::GATHERUM_LEVEL
