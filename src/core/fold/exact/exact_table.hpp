// Exact sums of floats, grouped by the exponent of the terms, for many terms of fsum into few destinations.
//
//   row[sign and exponent of v] += 2^c + fraction of v  add_term: the count of a row's terms, above their sum
//   state += (sum of row + count * hidden bit) << exponent  settle, before a count or a sum could overflow
//
// The upper bits of a term are the number of its row, so adding a term needs no shift, comparison or
// selection. NaN, infinities and zeros have separate rows, which become flags when the table is settled. If a
// fraction and a count do not fit in one word, a row has two words, of which the first holds the lower 32
// bits.
//
// Guaranteed: the sums equal the sums in limbs (exact_limbs.hpp). Padding between tables prevents conflicts
// in the L1 cache (100 tables of float64: 4.8 ns per term with conflicts, 1.6 with padding). Cost: one
// addition in memory per term, or two; clearing and settling a table visits its 64 to 8192 words.
#pragma once

#include "fold/exact/exact_sums.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class V>
class ExactTable : public ExactSum<V> {
  using Sum = ExactSum<V>;
  using Sum::add;
  using Sum::bits_of;
  using Sum::kExponentBits;
  using Sum::kSignificandBits;
  using Sum::load;
  using Sum::store;

  static constexpr bool kSplitsTerms = kSignificandBits > 32;
  static constexpr int64_t kRowBytes = kSplitsTerms ? 16 : 8;
  static constexpr uint64_t kRows = uint64_t{2} << kExponentBits;
  // The number of fraction bits in the word that holds the count of a row. Of the other bits, half are
  // headroom for the sum, and half are for the count.
  static constexpr int kFractionBits = kSplitsTerms ? kSignificandBits - 1 - 32 : kSignificandBits - 1;
  static constexpr int kCountShift = 64 - (64 - kFractionBits) / 2;
  static constexpr uint64_t kFractionMask = (uint64_t{1} << (kSignificandBits - 1)) - 1;

 public:
  using typename Sum::Stored;
  // Three cache lines of padding follow the rows, to avoid cache conflicts between tables.
  static constexpr int64_t kTableBytes = kRowBytes * static_cast<int64_t>(kRows) + 3 * kCacheLine;
  // The largest number of terms that a table can add before it must be settled.
  static constexpr int64_t kMostTerms = (int64_t{1} << (64 - kCountShift)) - 1;
  static_assert(kTableBytes == table_bytes(kValueOf<V>), "callers count with table_bytes");

  static GATHERUM_INLINE void add_term(char* table, Stored v) {
    const uint64_t bits = bits_of(v), fraction = bits & kFractionMask, one = uint64_t{1} << kCountShift;
    char* const row = table + (bits >> (kSignificandBits - 1)) * kRowBytes;
    if constexpr (kSplitsTerms) {
      add(row, fraction & kDigitMask);
      add(row + 8, fraction >> 32 | one);
    } else {
      add(row, fraction | one);
    }
  }

  // Adds all terms to a state and clears the table.
  static GATHERUM_NOINLINE void settle(char* table, char* state) {
    for (uint64_t i = 0; i < kRows; ++i) {
      char* const row = table + i * kRowBytes;
      if (i % kRowsPerStretch == 0 && is_clear(row)) {
        i += kRowsPerStretch - 1;
        continue;
      }
      const uint64_t word = load(row + kRowBytes - 8), count = word >> kCountShift;
      if (count == 0) continue;
      const uint64_t above = word & ((uint64_t{1} << kCountShift) - 1);
      settle_row(state, i, count, kSplitsTerms ? load(row) : above, kSplitsTerms ? above : 0);
      std::memset(row, 0, kRowBytes);
    }
  }

 private:
  // The number of rows that are skipped together, because most exponents have no terms.
  static constexpr uint64_t kRowsPerStretch = 16;
  static bool is_clear(const char* rows) {
    uint64_t any = 0;
    for (uint64_t i = 0; i < kRowsPerStretch * kRowBytes; i += 8) any |= load(rows + i);
    return any == 0;
  }

  // The sum of the fractions is low + high * 2^32.
  static void settle_row(char* state, uint64_t i, uint64_t count, uint64_t low, uint64_t high) {
    const uint64_t exponent = i & (kRows / 2 - 1);
    const bool negative = i != exponent, zero = low == 0 && high == 0;
    if (exponent == kRows / 2 - 1)
      return Sum::set(state, !zero ? Sum::kNaN : negative ? Sum::kMinusInfinity : Sum::kPlusInfinity);
    if (exponent == 0 && zero) return Sum::set(state, negative ? Sum::kMinusZero : Sum::kOtherFinite);
    if (exponent != 0) (kSplitsTerms ? high : low) += count << kFractionBits;
    const auto p = static_cast<unsigned>(exponent == 0 ? 0 : exponent - 1);
    const uint64_t sign = negative ? ~uint64_t{0} : 0;
    high += low >> 32;
    Sum::add_digit(state, low & kDigitMask, p, sign);
    Sum::add_digit(state, high & kDigitMask, p + 32, sign);
    if constexpr (kSplitsTerms) Sum::add_digit(state, high >> 32, p + 64, sign);
    Sum::count_term(state);
  }
};

// False for complex numbers: their terms are added to states directly.
template <class F>
inline constexpr bool kHasTable = kIsExact<F> && table_bytes(kValueOf<typename F::Value>) != 0;

// A thread-private slab (slabs.hpp) in which each destination has a table and a state. Old values are added
// when the results are written.
template <class F>
class ExactTables {
  using Table = ExactTable<typename F::Value>;

 public:
  using Stored = typename F::Stored;

  static constexpr int64_t kMostTerms = Table::kMostTerms;
  static int64_t bytes(int64_t slots) { return slots * (Table::kTableBytes + F::kBytes); }

  ExactTables(char* scratch, int64_t slots)
      : tables_(scratch), states_(scratch + slots * Table::kTableBytes) {}

  class Taker {
   public:
    GATHERUM_INLINE void operator()(int64_t slot, Stored update) const {
      Table::add_term(tables_ + slot * Table::kTableBytes, update);
    }
    GATHERUM_INLINE void fetch(int64_t) const {}

   private:
    friend class ExactTables;
    explicit Taker(char* tables) : tables_(tables) {}
    char* const GATHERUM_RESTRICT tables_;
  };
  Taker taker(int64_t first = 0) const { return Taker(tables_ + first * Table::kTableBytes); }

  void clear(int64_t slots) { std::memset(tables_, 0, static_cast<size_t>(bytes(slots))); }
  void settle(int64_t slots) {
    for (int64_t i = 0; i < slots; ++i) Table::settle(tables_ + i * Table::kTableBytes, state(i));
  }
  char* state(int64_t slot) const { return states_ + slot * F::kBytes; }

 private:
  char* const tables_;
  char* const states_;
};

}  // namespace gatherum::GATHERUM_LEVEL
