// The dtypes of plans, for arrays of NumPy and of other frameworks. Other frameworks identify a dtype by a
// DLPack kind and a number of bits, or by XLA's number. A plan needs only the item size and the arithmetic of
// a dtype, so bfloat16 works without a package that adds it to NumPy.
#pragma once

#include <cstddef>
#include <cstdint>

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

// The kinds of DLPack (DLDataTypeCode in dlpack.h, version 1.1).
enum class Kind : uint8_t {
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

struct DTypeRow {
  DType dtype;
  const char* name;  // NumPy's name, or the name that NumPy would use
  Kind kind;
  int bits;
  int xla;      // the number in XLA's typed foreign function interface, 0 if it has none
  Value value;  // the value type that reductions use
};

inline constexpr DTypeRow kDTypes[] = {
    {DType::boolean, "bool", Kind::boolean, 8, 1, Value::boolean},
    {DType::int8, "int8", Kind::integer, 8, 2, Value::int8},
    {DType::int16, "int16", Kind::integer, 16, 3, Value::int16},
    {DType::int32, "int32", Kind::integer, 32, 4, Value::int32},
    {DType::int64, "int64", Kind::integer, 64, 5, Value::int64},
    {DType::uint8, "uint8", Kind::unsigned_integer, 8, 6, Value::uint8},
    {DType::uint16, "uint16", Kind::unsigned_integer, 16, 7, Value::uint16},
    {DType::uint32, "uint32", Kind::unsigned_integer, 32, 8, Value::uint32},
    {DType::uint64, "uint64", Kind::unsigned_integer, 64, 9, Value::uint64},
    {DType::float16, "float16", Kind::floating, 16, 10, Value::float16},
    {DType::bfloat16, "bfloat16", Kind::bfloat, 16, 16, Value::bfloat16},
    {DType::float32, "float32", Kind::floating, 32, 11, Value::float32},
    {DType::float64, "float64", Kind::floating, 64, 12, Value::float64},
    {DType::complex32, "complex32", Kind::complex, 32, 0, Value::none},
    {DType::complex64, "complex64", Kind::complex, 64, 15, Value::complex64},
    {DType::complex128, "complex128", Kind::complex, 128, 18, Value::complex128},
    {DType::float8_e3m4, "float8_e3m4", Kind::float8_e3m4, 8, 29, Value::none},
    {DType::float8_e4m3, "float8_e4m3", Kind::float8_e4m3, 8, 28, Value::none},
    {DType::float8_e4m3b11fnuz, "float8_e4m3b11fnuz", Kind::float8_e4m3b11fnuz, 8, 23, Value::none},
    {DType::float8_e4m3fn, "float8_e4m3fn", Kind::float8_e4m3fn, 8, 20, Value::none},
    {DType::float8_e4m3fnuz, "float8_e4m3fnuz", Kind::float8_e4m3fnuz, 8, 25, Value::none},
    {DType::float8_e5m2, "float8_e5m2", Kind::float8_e5m2, 8, 19, Value::none},
    {DType::float8_e5m2fnuz, "float8_e5m2fnuz", Kind::float8_e5m2fnuz, 8, 24, Value::none},
    {DType::float8_e8m0fnu, "float8_e8m0fnu", Kind::float8_e8m0fnu, 8, 33, Value::none},
    // The size depends on the platform. DLPack does not name these dtypes, so only NumPy has such arrays.
    {DType::longdouble, "longdouble", Kind::floating, 0, 0, Value::none},
    {DType::clongdouble, "clongdouble", Kind::complex, 0, 0, Value::none},
};
inline constexpr int kDTypeCount = static_cast<int>(sizeof kDTypes / sizeof kDTypes[0]);

static_assert(is_in_order(kDTypes, &DTypeRow::dtype, DType::clongdouble));

constexpr const char* name_of(DType d) {
  return static_cast<int>(d) < kDTypeCount ? kDTypes[static_cast<int>(d)].name : nullptr;
}

// The size of one item in bytes.
constexpr int64_t bytes_of(DType d) {
  if (d == DType::longdouble) return sizeof(long double);
  if (d == DType::clongdouble) return 2 * sizeof(long double);
  return kDTypes[static_cast<int>(d)].bits / 8;
}

constexpr Value value_of(DType d) { return kDTypes[static_cast<int>(d)].value; }

// Returns true if NumPy itself defines the dtype. Packages that extend NumPy may define other dtypes.
constexpr bool is_of_numpy(DType d) {
  return (value_of(d) != Value::none && d != DType::bfloat16) || d == DType::longdouble ||
         d == DType::clongdouble;
}

// Finds the dtype with this DLPack kind and number of bits. Returns false if there is none.
constexpr bool find_dtype(int kind, int bits, DType& result) {
  for (const DTypeRow& row : kDTypes)
    if (row.bits > 0 && static_cast<int>(row.kind) == kind && row.bits == bits)
      return result = row.dtype, true;
  return false;
}

}  // namespace gatherum
