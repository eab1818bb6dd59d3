// A bounded cache of the rows of a table, by row number. The most requested rows stay.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "engine/processor.hpp"

namespace gatherum {

// A row may be stored in one of the kSlotsOfSet slots of its set. Each slot counts the hits of its row. If
// all slots are full, each new row is offered to the next slot in turn. If the count of this slot is above
// zero, it is decreased by one, and the new row is not cached. If the count is zero, the new row replaces the
// old row. Rows that are requested once therefore do not evict frequently requested rows. When requests for a
// row stop, it is evicted after some time.
class RowCache {
 public:
  static constexpr int64_t kSlotsOfSet = 8;
  static constexpr int64_t kOutside = -1;

  // `slots` slots for rows of `item` bytes, of a table with `extent` rows; all at least 1.
  RowCache(int64_t slots, int64_t extent, int64_t item)
      : each_(std::min(slots, kSlotsOfSet)),
        sets_(std::min(slots / each_, kMostSets)),
        extent_(extent),
        item_(item),
        whole_(sets_ * each_ >= extent),
        numbers_(static_cast<size_t>(sets_ * each_), -1),
        uses_(static_cast<size_t>(sets_ * each_), 0),
        hands_(static_cast<size_t>(sets_), 0),
        rows_(new char[static_cast<size_t>(sets_ * each_) * static_cast<size_t>(item)]) {}

  int64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  int64_t misses() const { return misses_.load(std::memory_order_relaxed); }
  int64_t held() const { return held_.load(std::memory_order_relaxed); }
  int64_t item() const { return item_; }
  // The number of calls of `forget`. Request it before reading rows to insert.
  uint64_t version() const { return version_.load(); }

  // Copies row numbers[i] to position positions[i] of `out` (to position i if `positions` is null) if the row
  // is cached; otherwise appends i to `missing`, which has space for all. Returns the number of missing rows.
  // Returns kOutside, before anything is copied, if a row number is invalid or a position is not below
  // `capacity`.
  int64_t lookup(const int64_t* numbers, const int64_t* positions, int64_t count, char* out, int64_t capacity,
                 int64_t* missing) {
    for (int64_t i = 0; i < count; ++i)
      if (!is_row(numbers[i]) || !fits(positions == nullptr ? i : positions[i], capacity)) return kOutside;
    int64_t missed = 0;
    for (int64_t i = 0; i < std::min(count, kAhead); ++i) prefetch_slots(numbers[i]);
    for (int64_t i = 0; i < count; ++i) {
      if (i + kAhead < count) prefetch_slots(numbers[i + kAhead]);
      const int64_t number = numbers[i], position = positions == nullptr ? i : positions[i];
      // checked again: the arrays may have changed meanwhile
      if (is_row(number) && fits(position, capacity) && copy(number, out + position * item_)) continue;
      missing[missed++] = i;
    }
    hits_.fetch_add(count - missed, std::memory_order_relaxed);
    misses_.fetch_add(missed, std::memory_order_relaxed);
    return missed;
  }

  // Inserts rows from their positions in `from`, as the eviction rule allows. Inserts no row if rows were
  // removed since the cache had this version, because the rows may have been read before they changed.
  void insert(const int64_t* numbers, const int64_t* positions, int64_t count, const char* from,
              int64_t capacity, uint64_t version) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t number = numbers[i], position = positions == nullptr ? i : positions[i];
      if (is_row(number) && fits(position, capacity)) put(number, from + position * item_, version);
    }
  }

  // Removes rows that have changed in the file.
  void forget(const int64_t* numbers, int64_t count) {
    version_.fetch_add(1);
    for (int64_t i = 0; i < count; ++i)
      if (is_row(numbers[i])) remove(numbers[i]);
  }

 private:
  static constexpr int64_t kMostSets = int64_t{1} << 31;
  static constexpr int64_t kAhead = 16;
  static constexpr uint8_t kMostUses = 5;
  static constexpr size_t kLocks = 64;

  bool is_row(int64_t number) const { return number >= 0 && number < extent_; }
  static bool fits(int64_t position, int64_t capacity) { return position >= 0 && position < capacity; }

  int64_t set_of(int64_t number) const {
    if (whole_) return number % sets_;  // then every row has a slot
    const uint64_t mixed = static_cast<uint64_t>(number) * 0x9E3779B97F4A7C15U >> 32U;
    return static_cast<int64_t>(mixed * static_cast<uint64_t>(sets_) >> 32U);
  }

  struct Slots {
    int64_t begin, end;
  };
  // The slots that may contain a row. In a cache for all rows, each row has one.
  Slots slots_of(int64_t number, int64_t set) const {
    const int64_t first = set * each_;
    if (!whole_) return {first, first + each_};
    return {first + number / sets_, first + number / sets_ + 1};
  }

  void prefetch_slots(int64_t number) const {
    if (!is_row(number)) return;
    const int64_t slot = slots_of(number, set_of(number)).begin;
    prefetch(&numbers_[static_cast<size_t>(slot)]);
    if (!whole_) return;
    prefetch(&uses_[static_cast<size_t>(slot)]);
    prefetch_run(rows_.get(), slot * item_, std::min(item_, 8 * kCacheLine));
  }

  bool copy(int64_t number, char* to) {
    const int64_t set = set_of(number);
    const auto [begin, end] = slots_of(number, set);
    const std::scoped_lock lock(locks_[static_cast<size_t>(set) % kLocks]);
    for (int64_t slot = begin; slot < end; ++slot) {
      if (numbers_[static_cast<size_t>(slot)] != number) continue;
      std::memcpy(to, rows_.get() + slot * item_, static_cast<size_t>(item_));
      uint8_t& uses = uses_[static_cast<size_t>(slot)];
      if (uses < kMostUses) ++uses;
      return true;
    }
    return false;
  }

  void remove(int64_t number) {
    const int64_t set = set_of(number);
    const auto [begin, end] = slots_of(number, set);
    const std::scoped_lock lock(locks_[static_cast<size_t>(set) % kLocks]);
    for (auto slot = static_cast<size_t>(begin); slot < static_cast<size_t>(end); ++slot) {
      if (numbers_[slot] != number) continue;
      numbers_[slot] = -1;
      uses_[slot] = 0;
      held_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  void put(int64_t number, const char* row, uint64_t version) {
    const int64_t set = set_of(number);
    const auto [begin, end] = slots_of(number, set);
    const std::scoped_lock lock(locks_[static_cast<size_t>(set) % kLocks]);
    if (version_.load() != version) return;
    uint8_t& hand = hands_[static_cast<size_t>(set)];
    int64_t to = whole_ ? begin : begin + hand;
    for (int64_t candidate = begin; candidate < end; ++candidate) {
      const int64_t there = numbers_[static_cast<size_t>(candidate)];
      if (there == number) return;  // another request has inserted it
      if (there < 0) to = candidate;
    }
    const auto slot = static_cast<size_t>(to);
    if (numbers_[slot] < 0) {
      held_.fetch_add(1, std::memory_order_relaxed);
    } else {
      hand = static_cast<uint8_t>((hand + 1) % each_);
      if (uses_[slot] > 0) {
        --uses_[slot];
        return;
      }
    }
    numbers_[slot] = number;
    std::memcpy(rows_.get() + to * item_, row, static_cast<size_t>(item_));
  }

  const int64_t each_, sets_, extent_, item_;
  const bool whole_;
  std::vector<int64_t> numbers_;
  std::vector<uint8_t> uses_, hands_;
  std::unique_ptr<char[]> rows_;
  std::array<std::mutex, kLocks> locks_;
  std::atomic<int64_t> hits_{0}, misses_{0}, held_{0};
  std::atomic<uint64_t> version_{0};
};

}  // namespace gatherum
