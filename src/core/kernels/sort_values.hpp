// sort_values: writes positions in the order of their values.
//
//   order[0..count) = positions, sorted by (key(values[p]), p)
//
// key maps a value to an unsigned integer. Equal values have equal keys (OrderKeys). Few pairs of a key and a
// position are sorted by comparison, others byte by byte of the key, with stable counting sorts. A byte that
// all keys share is skipped, and values that are in order are not sorted. Cost: each value is read once, in
// the order of the positions; each pair is written once for each byte.
#pragma once

#include <algorithm>

#include "fold/order_keys.hpp"
#include "kernels/slab_sums.hpp"
#include "kernels/value_order.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Fewer pairs than this are sorted by comparison: counting the bytes would take longer. (1000 random float64
// take 34 ns each by bytes, and 105 by comparison, on a busy Intel Xeon.)
inline constexpr int64_t kFewPairs = 128;

// A key of 4 bytes and a position of 4 bytes.
struct ShortPair {
  uint64_t both;
  ShortPair(uint32_t key, uint64_t position) : both(uint64_t{key} << 32 | position) {}
  uint32_t key() const { return static_cast<uint32_t>(both >> 32); }
  int64_t position() const { return static_cast<uint32_t>(both); }
  bool operator<(const ShortPair& o) const { return both < o.both; }
};
struct LongPair {
  uint64_t number, place;
  LongPair(uint64_t key, uint64_t position) : number(key), place(position) {}
  uint64_t key() const { return number; }
  int64_t position() const { return static_cast<int64_t>(place); }
  bool operator<(const LongPair& o) const { return number != o.number ? number < o.number : place < o.place; }
};

template <class Pair>
unsigned byte_of(const Pair& pair, int byte) {
  return static_cast<unsigned>(pair.key() >> 8 * byte) & 0xFF;
}

// Sorts pairs whose positions ascend and whose keys have `Bytes` bytes. `spare` has room for as many. Returns
// the sorted pairs, which are in one of the two arrays.
template <int Bytes, class Pair>
Pair* sort_pairs(Pair* pairs, Pair* spare, int64_t n) {
  if (n < kFewPairs) return std::sort(pairs, pairs + n), pairs;
  int64_t next[Bytes][256] = {};  // counts, then positions in the result
  for (int64_t i = 0; i < n; ++i)
    for (int byte = 0; byte < Bytes; ++byte) ++next[byte][byte_of(pairs[i], byte)];
  for (int byte = 0; byte < Bytes; ++byte) {
    if (next[byte][byte_of(pairs[0], byte)] == n) continue;
    int64_t before = 0;
    for (int64_t& count : next[byte]) before += std::exchange(count, before);
    for (int64_t i = 0; i < n; ++i) spare[next[byte][byte_of(pairs[i], byte)]++] = pairs[i];
    std::swap(pairs, spare);
  }
  return pairs;
}

// Returns an unsigned key with as many bytes as the value.
template <class V>
GATHERUM_INLINE auto sort_key(typename OrderKeys<Fold<V, Reduction::max>>::Stored value) {
  using Keys = OrderKeys<Fold<V, Reduction::max>>;
  using Key = typename Keys::Key;
  constexpr int bits = 8 * sizeof(value);
  const Key key = Keys::key_of_equals(Keys::key_of(value));
  if constexpr (sizeof(value) == sizeof(Key))
    return static_cast<std::make_unsigned_t<Key>>(key) ^ std::make_unsigned_t<Key>{1} << (bits - 1);
  else if constexpr (std::is_same_v<V, Boolean> || std::is_unsigned_v<V>)
    return static_cast<uint32_t>(key);
  else  // the key of NaN has more bytes, and the greatest key of `bits` bits is unused in half precision
    return static_cast<uint32_t>(std::min(key, (Key{1} << (bits - 1)) - 1) + (Key{1} << (bits - 1)));
}

template <class V, class Number>
void sort_values(const ValueOrder& call) {
  using Stored = typename OrderKeys<Fold<V, Reduction::max>>::Stored;
  using Key = decltype(sort_key<V>(Stored{}));
  using Pair = std::conditional_t<sizeof(Key) == 4 && sizeof(Number) == 4, ShortPair, LongPair>;
  static_assert(2 * sizeof(Pair) == order_scratch_bytes(sizeof(Stored), sizeof(Number) == 8));
  constexpr int64_t ahead = 16;  // values to prefetch: their positions are far apart
  auto* const pairs = reinterpret_cast<Pair*>(call.scratch);
  const auto position = [&](int64_t i) { return int64_t{get<Number>(call.positions, i)}; };
  bool ascend = true;
  Key previous = 0;
  for (int64_t i = 0; i < call.count; ++i) {
    prefetch(call.values + position(std::min(i + ahead, call.count - 1)) * int64_t{sizeof(Stored)});
    const Key key = sort_key<V>(get<Stored>(call.values, position(i)));
    ascend &= previous <= key;
    previous = key;
    new (pairs + i) Pair(key, static_cast<uint64_t>(position(i)));
  }
  const Pair* const sorted =
      ascend ? pairs : sort_pairs<sizeof(Stored)>(pairs, pairs + call.count, call.count);
  for (int64_t i = 0; i < call.count; ++i) call.order[i] = sorted[i].position();
}

}  // namespace gatherum::GATHERUM_LEVEL
