// sort_values: writes positions in the order of their values.
//
//   order[0..count) = positions, sorted by (key(values[p]), p)
//
// key maps a value to an unsigned integer. Equal values have equal keys (OrderKeys). Few pairs of a key and a
// position are sorted by comparison, others by stable counting sorts of parts of the key. Values that are in
// order are not sorted. Cost: each value is read once, in the order of the positions; each pair is moved
// three times, and again if many keys share their highest bits.
#pragma once

#include <algorithm>
#include <bit>
#include <utility>

#include "fold/order_keys.hpp"
#include "kernels/slab_sums.hpp"
#include "kernels/value_order.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Fewer pairs than this are sorted by comparison: counting would take longer. (1000 random float64 take 12 ns
// each on an Intel Xeon. With a counting sort for each of the 8 bytes they take 34, and by comparison about
// 100.)
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

// Sorts pairs whose positions ascend. `spare` has room for as many. Returns the sorted pairs, which are in
// one of the two arrays.
//
// The keys are sorted by their 24 highest bits below the highest bit in which their range has a 1, with three
// counting sorts. Then each run of keys that share these bits is sorted. Its range has at least 24 bits less,
// so there are at most three levels.
template <class Pair>
Pair* sort_pairs(Pair* pairs, Pair* spare, int64_t n) {
  if (n < kFewPairs) return std::sort(pairs, pairs + n), pairs;
  constexpr int passes = 3;
  auto least = pairs[0].key(), greatest = least;
  for (int64_t i = 1; i < n; ++i) {
    least = std::min(least, pairs[i].key());
    greatest = std::max(greatest, pairs[i].key());
  }
  using Key = decltype(least);
  const int ignored =
      std::max(0, static_cast<int>(std::bit_width(static_cast<Key>(greatest - least))) - 8 * passes);
  const auto bits_of = [=](const Pair& pair) {
    return static_cast<uint32_t>((pair.key() - least) >> ignored);
  };
  const auto byte_of = [=](const Pair& pair, int pass) { return bits_of(pair) >> 8 * pass & 0xFF; };
  int64_t next[passes][256] = {};  // counts, then positions in the result
  for (int64_t i = 0; i < n; ++i)
    for (int pass = 0; pass < passes; ++pass) ++next[pass][byte_of(pairs[i], pass)];
  for (int pass = 0; pass < passes; ++pass) {
    if (next[pass][byte_of(pairs[0], pass)] == n) continue;
    int64_t before = 0;
    for (int64_t& count : next[pass]) before += std::exchange(count, before);
    for (int64_t i = 0; i < n; ++i) spare[next[pass][byte_of(pairs[i], pass)]++] = pairs[i];
    std::swap(pairs, spare);
  }
  for (int64_t begin = 0, end = 0; ignored > 0 && begin < n; begin = end) {
    do ++end;
    while (end < n && bits_of(pairs[end]) == bits_of(pairs[begin]));
    if (end - begin == 1) continue;
    const Pair* const run = sort_pairs(pairs + begin, spare + begin, end - begin);
    if (run != pairs + begin) std::copy_n(run, end - begin, pairs + begin);
  }
  return pairs;
}

template <class V, class Number>
void sort_values(const ValueOrder& call) {
  using Keys = OrderKeys<Fold<V, Reduction::max>>;
  using Stored = typename Keys::Stored;
  using Key = std::make_unsigned_t<typename Keys::Key>;
  using Pair = std::conditional_t<sizeof(Key) == 4 && sizeof(Number) == 4, ShortPair, LongPair>;
  static_assert(2 * sizeof(Pair) == order_scratch_bytes(sizeof(Stored), sizeof(Number) == 8));
  constexpr int64_t ahead = 16;  // values to prefetch: their positions are far apart
  auto* const pairs = reinterpret_cast<Pair*>(call.scratch);
  const auto position = [&](int64_t i) { return int64_t{get<Number>(call.positions, i)}; };
  constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);  // of OrderKeys, which are signed
  bool ascend = true;
  Key previous = 0;
  for (int64_t i = 0; i < call.count; ++i) {
    prefetch(call.values + position(std::min(i + ahead, call.count - 1)) * int64_t{sizeof(Stored)});
    const auto ordered = Keys::key_of_equals(Keys::key_of(get<Stored>(call.values, position(i))));
    const Key key = static_cast<Key>(ordered) ^ sign;
    ascend &= previous <= key;
    previous = key;
    new (pairs + i) Pair(key, static_cast<uint64_t>(position(i)));
  }
  const Pair* const sorted = ascend ? pairs : sort_pairs(pairs, pairs + call.count, call.count);
  for (int64_t i = 0; i < call.count; ++i) call.order[i] = sorted[i].position();
}

}  // namespace gatherum::GATHERUM_LEVEL
