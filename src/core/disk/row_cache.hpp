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
#include <shared_mutex>
#include <vector>

#include "platform/processor.hpp"

namespace gatherum {

// A row may be stored in one of the kSlotsOfSet slots of its set. Each slot counts the hits of its row, up
// to kMostHits. If all slots are full, each new row is offered to the next slot of the set in turn. If the
// count of this slot is above zero, it is decreased by one, and the new row is not cached. If the count is
// zero, the new row replaces the old row. Rows that are requested once therefore do not evict frequently
// requested rows. When requests for a row stop, it is evicted after some time.
// A cache for the whole table has a slot for each row, in their order, and evicts none.
class RowCache {
 public:
  static constexpr int64_t kSlotsOfSet = 8;
  static constexpr int64_t kInvalidRequest = -1;
  static constexpr int64_t kRowsPerLock = 64;  // rows that are copied while a thread holds the table's lock

  // `slots` slots for rows of `row_bytes` bytes, of a table with `table_rows` rows; all at least 1.
  RowCache(int64_t slots, int64_t table_rows, int64_t row_bytes)
      : slots_per_set_(std::min(slots, kSlotsOfSet)),
        set_count_(std::min(slots / slots_per_set_, kMostSets)),
        table_rows_(table_rows),
        row_bytes_(row_bytes),
        holds_table_(slots >= table_rows),
        row_numbers_(slot_count(), -1),
        hit_counts_(holds_table_ ? 0 : slot_count(), 0),
        next_slots_(holds_table_ ? 0 : static_cast<size_t>(set_count_), 0),
        rows_(new char[slot_count() * static_cast<size_t>(row_bytes)]) {}

  int64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  int64_t misses() const { return misses_.load(std::memory_order_relaxed); }
  int64_t cached_rows() const { return cached_rows_.load(std::memory_order_relaxed); }
  int64_t row_bytes() const { return row_bytes_; }
  int64_t table_rows() const { return table_rows_; }
  // Returns true for a cache for the whole table.
  bool holds_table() const { return holds_table_; }
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
    std::shared_lock shared(table_lock_, std::defer_lock);
    for (int64_t i = 0; i < count; ++i) {
      if (holds_table_ && i % kRowsPerLock == 0) {
        if (shared.owns_lock()) shared.unlock();  // other threads may wait to insert rows
        shared.lock();
      }
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

  // Copies rows to `out` in the order of their numbers, which are valid. Returns false if a row is not
  // cached. Some rows may already have been copied in this case. The cache holds the table, and `count` is at
  // most kRowsPerLock.
  bool copy_cached(const int64_t* numbers, int64_t count, char* out) {
    const std::shared_lock shared(table_lock_);
    for (int64_t i = 0; i < std::min(count, kPrefetchedAhead); ++i) prefetch_slots(numbers[i]);
    for (int64_t i = 0; i < count; ++i) {
      if (i + kPrefetchedAhead < count) prefetch_slots(numbers[i + kPrefetchedAhead]);
      if (!copy_row(numbers[i], out + i * row_bytes_)) return false;
    }
    return true;
  }
  void add_hits(int64_t count) { hits_.fetch_add(count, std::memory_order_relaxed); }

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

  size_t slot_count() const {
    return static_cast<size_t>(holds_table_ ? table_rows_ : set_count_ * slots_per_set_);
  }
  bool is_row_number(int64_t number) const { return number >= 0 && number < table_rows_; }
  static bool is_position(int64_t position, int64_t capacity) { return position >= 0 && position < capacity; }

  int64_t set_of(int64_t number) const {
    const uint64_t mixed = static_cast<uint64_t>(number) * 0x9E3779B97F4A7C15U >> 32U;
    return static_cast<int64_t>(mixed * static_cast<uint64_t>(set_count_) >> 32U);
  }

  struct SlotRange {
    int64_t begin, end;
  };
  // Returns the slots that may contain a row.
  SlotRange slots_of(int64_t number) const {
    if (holds_table_) return {number, number + 1};
    const int64_t first = set_of(number) * slots_per_set_;
    return {first, first + slots_per_set_};
  }

  void prefetch_slots(int64_t number) const {
    if (!is_row_number(number)) return;
    const int64_t slot = slots_of(number).begin;
    prefetch(&row_numbers_[static_cast<size_t>(slot)]);
    if (holds_table_) prefetch_bytes(rows_.get(), slot * row_bytes_, std::min(row_bytes_, 8 * kCacheLine));
  }

  std::mutex& lock_of(int64_t set) { return locks_[static_cast<size_t>(set) % kLockCount]; }

  // In a cache for the whole table, the caller holds `table_lock_`.
  bool copy_row(int64_t number, char* to) {
    if (holds_table_) {
      if (row_numbers_[static_cast<size_t>(number)] != number) return false;
      std::memcpy(to, rows_.get() + number * row_bytes_, static_cast<size_t>(row_bytes_));
      return true;
    }
    const auto [begin, end] = slots_of(number);
    const std::scoped_lock lock(lock_of(set_of(number)));
    for (int64_t slot = begin; slot < end; ++slot) {
      if (row_numbers_[static_cast<size_t>(slot)] != number) continue;
      std::memcpy(to, rows_.get() + slot * row_bytes_, static_cast<size_t>(row_bytes_));
      uint8_t& hits = hit_counts_[static_cast<size_t>(slot)];
      if (hits < kMostHits) ++hits;
      return true;
    }
    return false;
  }

  // Calls `change` while no other thread accesses the slots of a row.
  template <class Change>
  void with_slots_locked(int64_t number, const Change& change) {
    if (holds_table_) {
      const std::unique_lock lock(table_lock_);
      return change();
    }
    const std::scoped_lock lock(lock_of(set_of(number)));
    change();
  }

  void remove_row(int64_t number) {
    with_slots_locked(number, [&] {
      const auto [begin, end] = slots_of(number);
      for (auto slot = static_cast<size_t>(begin); slot < static_cast<size_t>(end); ++slot) {
        if (row_numbers_[slot] != number) continue;
        row_numbers_[slot] = -1;
        if (!holds_table_) hit_counts_[slot] = 0;
        cached_rows_.fetch_sub(1, std::memory_order_relaxed);
      }
    });
  }

  void insert_row(int64_t number, const char* row, uint64_t version) {
    with_slots_locked(number, [&] {
      if (version_.load() != version) return;
      const int64_t slot = free_slot_for(number);
      if (slot < 0) return;
      if (row_numbers_[static_cast<size_t>(slot)] < 0) cached_rows_.fetch_add(1, std::memory_order_relaxed);
      row_numbers_[static_cast<size_t>(slot)] = number;
      std::memcpy(rows_.get() + slot * row_bytes_, row, static_cast<size_t>(row_bytes_));
    });
  }

  // Returns the slot for a new row, as the eviction rule allows, or -1 if the row is not to be inserted.
  int64_t free_slot_for(int64_t number) {
    const auto [begin, end] = slots_of(number);
    int64_t free_slot = -1;
    for (int64_t slot = begin; slot < end; ++slot) {
      const int64_t cached = row_numbers_[static_cast<size_t>(slot)];
      if (cached == number) return -1;  // another request has inserted it
      if (cached < 0) free_slot = slot;
    }
    if (free_slot >= 0) return free_slot;
    uint8_t& next_slot = next_slots_[static_cast<size_t>(set_of(number))];
    const int64_t slot = begin + next_slot;
    next_slot = static_cast<uint8_t>((next_slot + 1) % slots_per_set_);
    uint8_t& hits = hit_counts_[static_cast<size_t>(slot)];
    if (hits == 0) return slot;
    --hits;
    return -1;
  }

  const int64_t slots_per_set_, set_count_, table_rows_, row_bytes_;
  const bool holds_table_;
  std::vector<int64_t> row_numbers_;
  std::vector<uint8_t> hit_counts_, next_slots_;
  std::unique_ptr<char[]> rows_;
  std::array<std::mutex, kLockCount> locks_;  // each protects some sets
  std::shared_mutex table_lock_;              // protects all rows of a cache for the whole table
  std::atomic<int64_t> hits_{0}, misses_{0}, cached_rows_{0};
  std::atomic<uint64_t> version_{0};
};

}  // namespace gatherum
