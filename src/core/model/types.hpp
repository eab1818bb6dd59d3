// The modes, value types and reductions of a call. Python's enumerations are generated from these
// enumerations. Switches over an enumeration have no default, so that the compiler reports a missing
// enumerator. A table has a row for each value type and reduction, with all its properties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace gatherum {

// The mode: how kernels handle an invalid index. With `drop`, a gather writes the fill item, and a scatter
// skips the update.
enum class Mode : uint8_t { raise, clip, wrap, drop };

// The names of the modes for callers. Python reads them from here.
struct ModeRow {
  const char* name;
  Mode mode;
};
constexpr ModeRow kModes[] = {{"raise", Mode::raise},
                              {"clip", Mode::clip},
                              {"wrap", Mode::wrap},
                              {"fill", Mode::drop},
                              {"drop", Mode::drop}};
constexpr int kModeCount = sizeof(kModes) / sizeof(ModeRow);
// Whether a mode maps an invalid index to a valid one, unless the dimension has size 0.
constexpr bool moves_index(Mode m) { return m != Mode::raise && m != Mode::drop; }

enum class Value : uint8_t {
  none,  // can be copied, but has no arithmetic
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
};

// New reductions go at the end, because serialized programs contain the numbers of reductions.
enum class Reduction : uint8_t { none, add, mul, max, min, mean, fsum, fmean };

constexpr const char* name_of(Mode m) {
  const char* name = nullptr;
  for (const ModeRow& row : kModes)
    if (row.mode == m) name = row.name;  // the last: "drop"
  return name;
}

// Sets of value types.
using ValueKinds = unsigned;
inline constexpr ValueKinds kNoKinds = 0, kBooleans = 1, kIntegers = 2, kHalves = 4, kFloats = 8,
                            kComplexes = 16;
inline constexpr ValueKinds kReals = kBooleans | kIntegers | kHalves | kFloats;
inline constexpr ValueKinds kNumbers = kIntegers | kHalves | kFloats | kComplexes;

struct ValueRow {
  Value value;
  const char* name;
  int64_t bytes;  // of one stored value
  ValueKinds kind;
};
inline constexpr ValueRow kValues[] = {
    {Value::none, "none", 0, kNoKinds},
    {Value::boolean, "bool", 1, kBooleans},
    {Value::int8, "int8", 1, kIntegers},
    {Value::int16, "int16", 2, kIntegers},
    {Value::int32, "int32", 4, kIntegers},
    {Value::int64, "int64", 8, kIntegers},
    {Value::uint8, "uint8", 1, kIntegers},
    {Value::uint16, "uint16", 2, kIntegers},
    {Value::uint32, "uint32", 4, kIntegers},
    {Value::uint64, "uint64", 8, kIntegers},
    {Value::float16, "float16", 2, kHalves},
    {Value::bfloat16, "bfloat16", 2, kHalves},
    {Value::float32, "float32", 4, kFloats},
    {Value::float64, "float64", 8, kFloats},
    {Value::complex64, "complex64", 8, kComplexes},
    {Value::complex128, "complex128", 16, kComplexes},
};

// Returns true if a table has a row for every enumerator up to the last, in their order.
template <class Row, size_t N, class E>
constexpr bool is_in_order(const Row (&rows)[N], E Row::* number, E last) {
  for (size_t i = 0; i < N; ++i)
    if (static_cast<size_t>(rows[i].*number) != i) return false;
  return static_cast<size_t>(last) + 1 == N;
}
static_assert(is_in_order(kValues, &ValueRow::value, Value::complex128));

// Returns the name of an enumerator from a list of all names, or null for a number that is not an enumerator.
template <class E, size_t N>
constexpr const char* name_among(const char* const (&names)[N], E e) {
  return static_cast<size_t>(e) < N ? names[static_cast<size_t>(e)] : nullptr;
}

constexpr const char* name_of(Value v) {
  return static_cast<size_t>(v) < std::size(kValues) ? kValues[static_cast<size_t>(v)].name : nullptr;
}
constexpr int64_t bytes_of(Value v) { return kValues[static_cast<size_t>(v)].bytes; }
constexpr ValueKinds kind_of(Value v) { return kValues[static_cast<size_t>(v)].kind; }
constexpr bool is_signed_integer(Value v) { return v >= Value::int8 && v <= Value::int64; }
constexpr bool is_half(Value v) { return kind_of(v) == kHalves; }
constexpr bool is_complex(Value v) { return kind_of(v) == kComplexes; }
// Returns true for the types whose NaN values kernels can skip, and for which spreads have kernels.
constexpr bool is_real_float(Value v) { return (kind_of(v) & (kHalves | kFloats)) != 0; }

// The neutral element of a fold; its value depends on the type (fold/neutral.hpp). `none` means that the fold
// has no neutral element, that it divides (its sums have the neutral element `zero`), or that it folds only
// floats exactly.
enum class Neutral : uint8_t { none, zero, one, lowest, greatest };

// The way in which kernels compute the gradients of a fold (scatter_gradients.hpp). `none` if no kernel
// computes them.
enum class Gradient : uint8_t { none, product, extreme };

constexpr const char* name_of(Gradient g) { return name_among({"none", "product", "extreme"}, g); }

// The value types that these kernels are compiled for. They exclude half precision for products, whose
// factors must be kept in float32.
constexpr ValueKinds kinds_of(Gradient g) {
  switch (g) {
    case Gradient::none:
      return kNoKinds;
    case Gradient::product:
      return kFloats | kComplexes;
    case Gradient::extreme:
      return kFloats | kHalves;
  }
  return kNoKinds;
}

// A field without a default: a row that omits it does not compile.
template <class T>
struct Given {
  T value;
  constexpr Given(T v) : value(v) {}
  constexpr operator T() const { return value; }
};

struct ReductionRow {
  Given<const char*> name;
  Given<ValueKinds> values;     // the types that it is defined for
  Given<ValueKinds> any_order;  // types whose bits do not depend on the order, provided that the first value
                                // is copied
  Given<ValueKinds> widens;  // types that accumulate in a wider one: half precision in float32, integers in
                             // 64 bits
  Given<bool> divides;       // whether the result is the sum over the count
  Given<bool> exact;         // whether sums are rounded once, at the end (exact_sums.hpp)
  Given<Neutral> fold_neutral;  // if it has one, threads fold integers separately
  Given<Gradient> gradient;
  Given<bool> skips_nan;  // whether folds of floats have kernels that skip NaN (skip_nan.hpp)
};

constexpr ReductionRow row_of(Reduction r) {
  switch (r) {
    case Reduction::none:
      return {.name = "none",
              .values = kReals | kNumbers,
              .any_order = kNoKinds,
              .widens = kNoKinds,
              .divides = false,
              .exact = false,
              .fold_neutral = Neutral::none,
              .gradient = Gradient::none,
              .skips_nan = false};
    case Reduction::add:
      return {.name = "add",
              .values = kReals | kNumbers,
              .any_order = kBooleans | kIntegers,
              .widens = kHalves,
              .divides = false,
              .exact = false,
              .fold_neutral = Neutral::zero,
              .gradient = Gradient::none,
              .skips_nan = true};
    case Reduction::mul:
      return {.name = "mul",
              .values = kReals | kNumbers,
              .any_order = kBooleans | kIntegers,
              .widens = kHalves,
              .divides = false,
              .exact = false,
              .fold_neutral = Neutral::one,
              .gradient = Gradient::product,
              .skips_nan = true};
    case Reduction::max:
      return {.name = "max",
              .values = kReals,
              .any_order = kReals,
              .widens = kNoKinds,
              .divides = false,
              .exact = false,
              .fold_neutral = Neutral::lowest,
              .gradient = Gradient::extreme,
              .skips_nan = true};
    case Reduction::min:
      return {.name = "min",
              .values = kReals,
              .any_order = kReals,
              .widens = kNoKinds,
              .divides = false,
              .exact = false,
              .fold_neutral = Neutral::greatest,
              .gradient = Gradient::extreme,
              .skips_nan = true};
    case Reduction::mean:
      return {.name = "mean",
              .values = kNumbers,
              .any_order = kIntegers,
              .widens = kHalves | kIntegers,
              .divides = true,
              .exact = false,
              .fold_neutral = Neutral::none,
              .gradient = Gradient::none,
              .skips_nan = true};
    case Reduction::fsum:
      return {.name = "fsum",
              .values = kHalves | kFloats | kComplexes,
              .any_order = kHalves | kFloats | kComplexes,
              .widens = kNoKinds,
              .divides = false,
              .exact = true,
              .fold_neutral = Neutral::none,
              .gradient = Gradient::none,
              .skips_nan = false};
    case Reduction::fmean:
      return {.name = "fmean",
              .values = kHalves | kFloats | kComplexes,
              .any_order = kHalves | kFloats | kComplexes,
              .widens = kNoKinds,
              .divides = true,
              .exact = true,
              .fold_neutral = Neutral::none,
              .gradient = Gradient::none,
              .skips_nan = false};
  }
  return {nullptr, kNoKinds, kNoKinds, kNoKinds, false, false, Neutral::none, Gradient::none, false};
}

// The neutral element of the accumulators: that of the sums if the fold divides.
constexpr Neutral accumulator_neutral(Reduction r) {
  const ReductionRow row = row_of(r);
  return row.divides && !row.exact ? Neutral::zero : Neutral{row.fold_neutral};
}

constexpr const char* name_of(Reduction r) { return row_of(r).name; }

// The number of enumerators, which is the number of their names.
template <class E>
constexpr int count_of() {
  int n = 0;
  while (name_of(static_cast<E>(n)) != nullptr) ++n;
  return n;
}
template <class E>
inline constexpr int kEnumerators = count_of<E>();

// Returns true if a reduction is defined for a value type. `none` moves all types.
constexpr bool has_meaning(Value v, Reduction r) {
  return r == Reduction::none || (row_of(r).values & kind_of(v)) != 0;
}

// The type in which a reduction accumulates.
constexpr Value sum_type(Value v, Reduction r) {
  if ((row_of(r).widens & kind_of(v)) == 0) return v;
  if (is_half(v)) return Value::float32;
  return is_signed_integer(v) ? Value::int64 : Value::uint64;
}

// The number of limbs of an exact sum (exact_limbs.hpp). For complex numbers, this is the number for both
// parts together.
constexpr int64_t limbs_of(Value v) {
  if (is_complex(v)) return 2 * limbs_of(v == Value::complex64 ? Value::float32 : Value::float64);
  if (v == Value::float64) return 67;
  return v == Value::float16 ? 3 : 10;
}

// The size in bytes of the window of an exact sum, the part that most terms access.
constexpr int64_t window_bytes(Value v) {
  if (is_complex(v)) return 2 * window_bytes(v == Value::complex64 ? Value::float32 : Value::float64);
  return v == Value::float64 ? 24 : 16;
}

// The size in bytes of an exact sum's table (exact_table.hpp), or 0 if the sum has no table.
constexpr int64_t table_bytes(Value v) {
  if (is_complex(v)) return 0;
  const int64_t rows = v == Value::float64 ? 2 * 4096 : v == Value::float16 ? 64 : 512;
  return 8 * rows + 3 * 64;
}

// The size in bytes of an accumulator. Exact sums have one word before the limbs.
constexpr int64_t sum_bytes(Value v, Reduction r) {
  if (row_of(r).exact) return 8 * (limbs_of(v) + (is_complex(v) ? 2 : 1));
  return bytes_of(sum_type(v, r));
}

// Returns true if the bits do not depend on the order of folding, provided that the first value is copied.
constexpr bool is_any_order(Value v, Reduction r) { return (row_of(r).any_order & kind_of(v)) != 0; }

template <class Rule>
constexpr bool all_rows_fulfil(const Rule& rule) {
  for (int i = 0; i < kEnumerators<Reduction>; ++i)
    if (!rule(row_of(static_cast<Reduction>(i)))) return false;
  return true;
}
static_assert(all_rows_fulfil([](const ReductionRow& row) { return (row.any_order & ~row.values) == 0; }),
              "any_order contains only types of values");
static_assert(all_rows_fulfil([](const ReductionRow& row) { return (row.widens & ~row.values) == 0; }),
              "widens contains only types of values");
static_assert(all_rows_fulfil([](const ReductionRow& row) {
                return (row.widens & ~(kHalves | kIntegers)) == 0;
              }),
              "only half precision and integers accumulate in a wider type");
static_assert(all_rows_fulfil([](const ReductionRow& row) {
                return (kinds_of(row.gradient) & ~row.values) == 0;
              }),
              "the kernels of gradient are compiled only for types of values");
static_assert(all_rows_fulfil([](const ReductionRow& row) {
                return !row.exact || (row.values & (kBooleans | kIntegers)) == 0;
              }),
              "exact sums are sums of floats or complex numbers");
static_assert(all_rows_fulfil([](const ReductionRow& row) {
                return !row.exact || row.any_order == row.values;
              }),
              "exact sums do not depend on the order, for any type of values");
static_assert(all_rows_fulfil([](const ReductionRow& row) { return !row.skips_nan || !row.exact; }),
              "exact sums have no kernels that skip NaN");
static_assert(all_rows_fulfil([](const ReductionRow& row) {
                return !row.skips_nan || row.divides || row.fold_neutral != Neutral::none;
              }),
              "a fold that skips NaN starts from a neutral element, so it has one or divides");
static_assert(all_rows_fulfil([](const ReductionRow& row) {
                return row.fold_neutral == Neutral::none || !row.divides;
              }),
              "a fold that divides has no neutral element");
static_assert(all_rows_fulfil([](const ReductionRow& row) {
                return row.fold_neutral == Neutral::none || (row.any_order & kIntegers) != 0;
              }),
              "with a neutral element, threads fold integers separately, so any_order contains integers");

// The reduction of a scatter, and its value type. `none` moves bits and needs no value type.
struct FoldRule {
  Reduction reduction = Reduction::none;
  Value value = Value::none;
  bool include_self = true;
  bool skips_nan = false;  // updates that are NaN are skipped
};

// Returns true if a fold has kernels that skip NaN.
constexpr bool can_skip_nan(const FoldRule& fold_rule) {
  return row_of(fold_rule.reduction).skips_nan && !fold_rule.include_self && is_real_float(fold_rule.value);
}

// Returns true if slabs support a fold that skips NaN. Products and half precision are rare.
constexpr bool has_skipping_slabs(const FoldRule& fold_rule) {
  return can_skip_nan(fold_rule) && fold_rule.reduction != Reduction::mul &&
         (kind_of(fold_rule.value) & kFloats) != 0;
}

// Returns true if the fold needs the number of updates of a destination. (Exact sums track whether there were
// any.) Static, so that the linker cannot use the code of one instruction-set level for all levels if the
// function is not inlined.
static constexpr bool needs_counter(const FoldRule& fold_rule) {
  const ReductionRow row = row_of(fold_rule.reduction);
  return row.divides || (fold_rule.reduction != Reduction::none && !fold_rule.include_self && !row.exact);
}

// Returns true if a fold whose gradients depend on the values has kernels for them.
constexpr bool has_gradients(const FoldRule& fold_rule) {
  return (kinds_of(row_of(fold_rule.reduction).gradient) & kind_of(fold_rule.value)) != 0;
}

// Returns true if the fold cannot accumulate in the output, because it rounds once at the end, counts
// updates, or excludes the old value.
constexpr bool needs_accumulator(const FoldRule& fold_rule) {
  return needs_counter(fold_rule) || row_of(fold_rule.reduction).exact ||
         sum_type(fold_rule.value, fold_rule.reduction) != fold_rule.value;
}

}  // namespace gatherum
