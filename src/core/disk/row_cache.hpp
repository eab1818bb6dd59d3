// A bounded cache of the rows of a table, by row number. The rows that are requested most often stay in the
// cache.
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

#include "platform/processor.hpp"

namespace gatherum {

// A row may be stored in one of the kSlotsOfSet slots of its set. Each slot counts the hits of its row, up
// to kMostHits. If all slots are full, each new row is offered to the next slot of the set in turn. If the
// count of this slot is above zero, it is decreased by one, and the new row is not cached. If the count is
// zero, the new row replaces the old row. Rows that are requested once therefore do not evict frequently
// requested rows. When requests for a row stop, it is evicted after some time.
class RowCache {
 public:
  static constexpr int64_t kSlotsOfSet = 8;
  static constexpr int64_t kInvalidRequest = -1;

  // `slots` slots for rows of `row_bytes` bytes, of a table with `table_rows` rows; all at least 1.
  RowCache(int64_t slots, int64_t table_rows, int64_t row_bytes)
      : slots_per_set_(std::min(slots, kSlotsOfSet)),
        set_count_(std::min(slots / slots_per_set_, kMostSets)),
        table_rows_(table_rows),
        row_bytes_(row_bytes),
        holds_table_(set_count_ * slots_per_set_ >= table_rows),
        row_numbers_(static_cast<size_t>(set_count_ * slots_per_set_), -1),
        hit_counts_(static_cast<size_t>(set_count_ * slots_per_set_), 0),
        next_slots_(static_cast<size_t>(set_count_), 0),
        rows_(new char[static_cast<size_t>(set_count_ * slots_per_set_) * static_cast<size_t>(row_bytes)]) {}

  int64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  int64_t misses() const { return misses_.load(std::memory_order_relaxed); }
  int64_t cached_rows() const { return cached_rows_.load(std::memory_order_relaxed); }
  int64_t row_bytes() const { return row_bytes_; }
  // The number of calls to `forget`. Get it before reading rows to insert.
  uint64_t version() const { return version_.load(); }

  // If row `numbers[i]` is cached, copies it to position `positions[i]` of `out` (to position i if
  // `positions` is null). Otherwise appends i to `missing`, which has space for all requests. Returns the
  // number of missing rows. Returns kInvalidRequest, before anything is copied, if a row number is invalid or
  // a position is not below `capacity`.
  int64_t lookup(const int64_t* numbers, const int64_t* positions, int64_t count, char* out, int64_t capacity,
                 int64_t* missing) {
    for (int64_t i = 0; i < count; ++i)
      if (!is_row_number(numbers[i]) || !is_position(positions == nullptr ? i : positions[i], capacity))
        return kInvalidRequest;
    int64_t missing_count = 0;
    for (int64_t i = 0; i < std::min(count, kPrefetchedAhead); ++i) prefetch_slots(numbers[i]);
    for (int64_t i = 0; i < count; ++i) {
      if (i + kPrefetchedAhead < count) prefetch_slots(numbers[i + kPrefetchedAhead]);
      const int64_t number = numbers[i], position = positions == nullptr ? i : positions[i];
      // checked again: the arrays may have changed meanwhile
      if (is_row_number(number) && is_position(position, capacity) &&
          copy_row(number, out + position * row_bytes_))
        continue;
      missing[missing_count++] = i;
    }
    hits_.fetch_add(count - missing_count, std::memory_order_relaxed);
    misses_.fetch_add(missing_count, std::memory_order_relaxed);
    return missing_count;
  }

  // Inserts rows from their positions in `from`, as the eviction rule allows. Inserts no row if rows have
  // been removed since this version of the cache, because the new rows may have been read before they
  // changed.
  void insert(const int64_t* numbers, const int64_t* positions, int64_t count, const char* from,
              int64_t capacity, uint64_t version) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t number = numbers[i], position = positions == nullptr ? i : positions[i];
      if (is_row_number(number) && is_position(position, capacity))
        insert_row(number, from + position * row_bytes_, version);
    }
  }

  // Removes rows that have changed in the file.
  void forget(const int64_t* numbers, int64_t count) {
    version_.fetch_add(1);
    for (int64_t i = 0; i < count; ++i)
      if (is_row_number(numbers[i])) remove_row(numbers[i]);
  }

 private:
  static constexpr int64_t kMostSets = int64_t{1} << 31;
  static constexpr int64_t kPrefetchedAhead = 16;
  static constexpr uint8_t kMostHits = 5;
  static constexpr size_t kLockCount = 64;

  bool is_row_number(int64_t number) const { return number >= 0 && number < table_rows_; }
  static bool is_position(int64_t position, int64_t capacity) { return position >= 0 && position < capacity; }

  int64_t set_of(int64_t number) const {
    if (holds_table_) return number % set_count_;  // then every row has a slot
    const uint64_t mixed = static_cast<uint64_t>(number) * 0x9E3779B97F4A7C15U >> 32U;
    return static_cast<int64_t>(mixed * static_cast<uint64_t>(set_count_) >> 32U);
  }

  struct SlotRange {
    int64_t begin, end;
  };
  // Returns the slots that may contain a row. In a cache for all rows, each row has its own slot.
  SlotRange slots_of(int64_t number, int64_t set) const {
    const int64_t first = set * slots_per_set_;
    if (!holds_table_) return {first, first + slots_per_set_};
    return {first + number / set_count_, first + number / set_count_ + 1};
  }

  void prefetch_slots(int64_t number) const {
    if (!is_row_number(number)) return;
    const int64_t slot = slots_of(number, set_of(number)).begin;
    prefetch(&row_numbers_[static_cast<size_t>(slot)]);
    if (!holds_table_) return;
    prefetch(&hit_counts_[static_cast<size_t>(slot)]);
    prefetch_bytes(rows_.get(), slot * row_bytes_, std::min(row_bytes_, 8 * kCacheLine));
  }

  bool copy_row(int64_t number, char* to) {
    const int64_t set = set_of(number);
    const auto [begin, end] = slots_of(number, set);
    const std::scoped_lock lock(locks_[static_cast<size_t>(set) % kLockCount]);
    for (int64_t slot = begin; slot < end; ++slot) {
      if (row_numbers_[static_cast<size_t>(slot)] != number) continue;
      std::memcpy(to, rows_.get() + slot * row_bytes_, static_cast<size_t>(row_bytes_));
      uint8_t& hits = hit_counts_[static_cast<size_t>(slot)];
      if (hits < kMostHits) ++hits;
      return true;
    }
    return false;
  }

  void remove_row(int64_t number) {
    const int64_t set = set_of(number);
    const auto [begin, end] = slots_of(number, set);
    const std::scoped_lock lock(locks_[static_cast<size_t>(set) % kLockCount]);
    for (auto slot = static_cast<size_t>(begin); slot < static_cast<size_t>(end); ++slot) {
      if (row_numbers_[slot] != number) continue;
      row_numbers_[slot] = -1;
      hit_counts_[slot] = 0;
      cached_rows_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  void insert_row(int64_t number, const char* row, uint64_t version) {
    const int64_t set = set_of(number);
    const auto [begin, end] = slots_of(number, set);
    const std::scoped_lock lock(locks_[static_cast<size_t>(set) % kLockCount]);
    if (version_.load() != version) return;
    uint8_t& next_slot = next_slots_[static_cast<size_t>(set)];
    int64_t target = holds_table_ ? begin : begin + next_slot;
    for (int64_t candidate = begin; candidate < end; ++candidate) {
      const int64_t cached = row_numbers_[static_cast<size_t>(candidate)];
      if (cached == number) return;  // another request has inserted it
      if (cached < 0) target = candidate;
    }
    const auto slot = static_cast<size_t>(target);
    if (row_numbers_[slot] < 0) {
      cached_rows_.fetch_add(1, std::memory_order_relaxed);
    } else {
      next_slot = static_cast<uint8_t>((next_slot + 1) % slots_per_set_);
      if (hit_counts_[slot] > 0) {
        --hit_counts_[slot];
        return;
      }
    }
    row_numbers_[slot] = number;
    std::memcpy(rows_.get() + target * row_bytes_, row, static_cast<size_t>(row_bytes_));
  }

  const int64_t slots_per_set_, set_count_, table_rows_, row_bytes_;
  const bool holds_table_;
  std::vector<int64_t> row_numbers_;
  std::vector<uint8_t> hit_counts_, next_slots_;
  std::unique_ptr<char[]> rows_;
  std::array<std::mutex, kLockCount> locks_;
  std::atomic<int64_t> hits_{0}, misses_{0}, cached_rows_{0};
  std::atomic<uint64_t> version_{0};
};

}  // namespace gatherum
