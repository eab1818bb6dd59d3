// The dtypes of plans, for NumPy arrays and the arrays of other frameworks. Other frameworks identify a dtype
// by a DLPack code and a number of bits, or by XLA's number. A plan needs only the item size and the
// arithmetic of a dtype, so bfloat16 works without a package that adds it to NumPy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/types.hpp"

namespace gatherum {

enum class DType : uint8_t {
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
  complex32,
  complex64,
  complex128,
  float8_e3m4,
  float8_e4m3,
  float8_e4m3b11fnuz,
  float8_e4m3fn,
  float8_e4m3fnuz,
  float8_e5m2,
  float8_e5m2fnuz,
  float8_e8m0fnu,
  longdouble,
  clongdouble,
};

enum class Kind : uint8_t { boolean, integer, unsigned_integer, floating, complex };

// NumPy's letter for a kind.
constexpr char letter_of(Kind kind) { return "biufc"[static_cast<int>(kind)]; }

// The codes of DLPack (DLDataTypeCode in dlpack.h, version 1.1).
enum class DLPack : int8_t {
  none = -1,
  integer = 0,
  unsigned_integer = 1,
  floating = 2,
  bfloat = 4,
  complex = 5,
  boolean = 6,
  float8_e3m4 = 7,
  float8_e4m3 = 8,
  float8_e4m3b11fnuz = 9,
  float8_e4m3fn = 10,
  float8_e4m3fnuz = 11,
  float8_e5m2 = 12,
  float8_e5m2fnuz = 13,
  float8_e8m0fnu = 14,
};

// The encoding of a type as sign, exponent and fraction, as in IEEE 754.
struct FloatFormat {
  int fraction;  // the number of fraction bits
  int least;     // the exponent of the smallest normal number
  int largest;   // the code of the largest finite number
  int infinity;  // the code of infinity
  int nan;       // the code of the quiet NaN
  int first;     // the value of code 0: 0, or the smallest power of 2 in a type without zero and signs
};
inline constexpr int kNoInfinity = -1;
inline constexpr FloatFormat kNoFormat{};

// The properties of a dtype. Other tables of dtypes in the core and in Python are derived from these rows, or
// list how an interface or a file format spells a dtype. New rows are appended: pickles and the keys of plans
// contain the numbers. `_core.pyi` is generated from the rows (tests/dtype_stub.py).
struct DTypeRow {
  DType dtype;
  const char* name;  // NumPy's name, or the name that NumPy would use
  int bytes;         // of an item in NumPy's arrays
  int bits;          // of an item: fewer than 8 * bytes if other frameworks pack several items into a byte
  Kind kind;
  DLPack dlpack;
  int xla;                    // the number in XLA's typed foreign function interface, 0 if it has none
  Value value;                // the value type that reductions use
  Given<FloatFormat> format;  // for conversions to and from types that NumPy lacks, or kNoFormat
};

inline constexpr DTypeRow kDTypes[] = {
    {DType::boolean, "bool", 1, 8, Kind::boolean, DLPack::boolean, 1, Value::boolean, kNoFormat},
    {DType::int8, "int8", 1, 8, Kind::integer, DLPack::integer, 2, Value::int8, kNoFormat},
    {DType::int16, "int16", 2, 16, Kind::integer, DLPack::integer, 3, Value::int16, kNoFormat},
    {DType::int32, "int32", 4, 32, Kind::integer, DLPack::integer, 4, Value::int32, kNoFormat},
    {DType::int64, "int64", 8, 64, Kind::integer, DLPack::integer, 5, Value::int64, kNoFormat},
    {DType::uint8, "uint8", 1, 8, Kind::unsigned_integer, DLPack::unsigned_integer, 6, Value::uint8,
     kNoFormat},
    {DType::uint16, "uint16", 2, 16, Kind::unsigned_integer, DLPack::unsigned_integer, 7, Value::uint16,
     kNoFormat},
    {DType::uint32, "uint32", 4, 32, Kind::unsigned_integer, DLPack::unsigned_integer, 8, Value::uint32,
     kNoFormat},
    {DType::uint64, "uint64", 8, 64, Kind::unsigned_integer, DLPack::unsigned_integer, 9, Value::uint64,
     kNoFormat},
    {DType::float16, "float16", 2, 16, Kind::floating, DLPack::floating, 10, Value::float16, kNoFormat},
    {DType::bfloat16, "bfloat16", 2, 16, Kind::floating, DLPack::bfloat, 16, Value::bfloat16,
     FloatFormat{7, -126, 0x7F7F, 0x7F80, 0x7FC0, 0}},
    {DType::float32, "float32", 4, 32, Kind::floating, DLPack::floating, 11, Value::float32, kNoFormat},
    {DType::float64, "float64", 8, 64, Kind::floating, DLPack::floating, 12, Value::float64, kNoFormat},
    {DType::complex32, "complex32", 4, 32, Kind::complex, DLPack::complex, 0, Value::none, kNoFormat},
    {DType::complex64, "complex64", 8, 64, Kind::complex, DLPack::complex, 15, Value::complex64, kNoFormat},
    {DType::complex128, "complex128", 16, 128, Kind::complex, DLPack::complex, 18, Value::complex128,
     kNoFormat},
    {DType::float8_e3m4, "float8_e3m4", 1, 8, Kind::floating, DLPack::float8_e3m4, 29, Value::none,
     kNoFormat},
    {DType::float8_e4m3, "float8_e4m3", 1, 8, Kind::floating, DLPack::float8_e4m3, 28, Value::none,
     kNoFormat},
    {DType::float8_e4m3b11fnuz, "float8_e4m3b11fnuz", 1, 8, Kind::floating, DLPack::float8_e4m3b11fnuz, 23,
     Value::none, kNoFormat},
    {DType::float8_e4m3fn, "float8_e4m3fn", 1, 8, Kind::floating, DLPack::float8_e4m3fn, 20, Value::none,
     FloatFormat{3, -6, 0x7E, kNoInfinity, 0x7F, 0}},
    {DType::float8_e4m3fnuz, "float8_e4m3fnuz", 1, 8, Kind::floating, DLPack::float8_e4m3fnuz, 25,
     Value::none, FloatFormat{3, -7, 0x7F, kNoInfinity, 0x80, 0}},
    {DType::float8_e5m2, "float8_e5m2", 1, 8, Kind::floating, DLPack::float8_e5m2, 19, Value::none,
     FloatFormat{2, -14, 0x7B, 0x7C, 0x7E, 0}},
    {DType::float8_e5m2fnuz, "float8_e5m2fnuz", 1, 8, Kind::floating, DLPack::float8_e5m2fnuz, 24,
     Value::none, FloatFormat{2, -15, 0x7F, kNoInfinity, 0x80, 0}},
    {DType::float8_e8m0fnu, "float8_e8m0fnu", 1, 8, Kind::floating, DLPack::float8_e8m0fnu, 33, Value::none,
     FloatFormat{0, -127, 0xFE, kNoInfinity, 0xFF, 1}},
    // The size depends on the platform. DLPack does not name these dtypes, so only NumPy has such arrays.
    {DType::longdouble, "longdouble", sizeof(long double), 8 * sizeof(long double), Kind::floating,
     DLPack::none, 0, Value::none, kNoFormat},
    {DType::clongdouble, "clongdouble", 2 * sizeof(long double), 16 * sizeof(long double), Kind::complex,
     DLPack::none, 0, Value::none, kNoFormat},
};
inline constexpr int kDTypeCount = static_cast<int>(sizeof kDTypes / sizeof kDTypes[0]);

static_assert(is_in_order(kDTypes, &DTypeRow::dtype, DType::clongdouble));

constexpr const char* name_of(DType d) {
  return static_cast<int>(d) < kDTypeCount ? kDTypes[static_cast<int>(d)].name : nullptr;
}

// Returns the name of the enumerator `e`, or null if `e` is not in the enumeration. `dtypes` lists the dtype
// of each enumerator.
template <class E, size_t N>
constexpr const char* name_among(const DType (&dtypes)[N], E e) {
  return static_cast<size_t>(e) < N ? name_of(dtypes[static_cast<size_t>(e)]) : nullptr;
}

// The size of one item in bytes.
constexpr int64_t bytes_of(DType d) { return kDTypes[static_cast<int>(d)].bytes; }

constexpr Value value_of(DType d) { return kDTypes[static_cast<int>(d)].value; }

// The number of a dtype that has no row.
inline constexpr int kNoDType = -1;

// Returns true if an item of the dtype takes whole bytes in every framework.
constexpr bool has_whole_bytes(const DTypeRow& row) { return row.bits == 8 * row.bytes; }

// Returns true if NumPy itself defines the dtype. Packages that extend NumPy may define other dtypes.
constexpr bool is_of_numpy(DType d) {
  return (value_of(d) != Value::none && d != DType::bfloat16) ||
         kDTypes[static_cast<int>(d)].dlpack == DLPack::none;
}

// Finds the dtype with this DLPack code and number of bits. Returns false if there is none.
constexpr bool find_dtype(int code, int bits, DType& result) {
  for (const DTypeRow& row : kDTypes)
    if (row.dlpack != DLPack::none && static_cast<int>(row.dlpack) == code && row.bits == bits &&
        has_whole_bytes(row))
      return result = row.dtype, true;
  return false;
}

// Returns true if each row agrees with the row of its value type.
constexpr bool are_dtypes_right() {
  for (const DTypeRow& row : kDTypes) {
    const bool moves = row.value == Value::none;
    if (row.bytes < 1 || row.bits > 8 * row.bytes) return false;
    if (!moves && std::string_view(name_of(row.value)) != row.name) return false;
    if (!moves && (bytes_of(row.value) != row.bytes || !has_whole_bytes(row))) return false;
  }
  return true;
}
static_assert(are_dtypes_right(), "a row of kDTypes differs from the row of its value type");

}  // namespace gatherum
