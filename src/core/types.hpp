// What a call can ask for: modes, value types and reductions. Python gets these from here, so a name is
// written once. A function of an enumeration is a switch without default: a new enumerator that one of them
// forgets does not compile.
#pragma once

#include <cstdint>

namespace gatherum {

// What an invalid index means. `drop` serves "fill" and "drop": a gather has a fill item, a scatter skips.
enum class Mode : uint8_t { raise, clip, wrap, drop };

enum class Value : uint8_t {
  none,  // moves, but has no arithmetic
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

enum class Reduction : uint8_t { none, add, mul, max, min, mean };

constexpr const char* name_of(Mode m) {
  switch (m) {
    case Mode::raise:
      return "raise";
    case Mode::clip:
      return "clip";
    case Mode::wrap:
      return "wrap";
    case Mode::drop:
      return "drop";
  }
  return nullptr;
}

constexpr const char* name_of(Value v) {
  switch (v) {
    case Value::none:
      return "none";
    case Value::boolean:
      return "bool";
    case Value::int8:
      return "int8";
    case Value::int16:
      return "int16";
    case Value::int32:
      return "int32";
    case Value::int64:
      return "int64";
    case Value::uint8:
      return "uint8";
    case Value::uint16:
      return "uint16";
    case Value::uint32:
      return "uint32";
    case Value::uint64:
      return "uint64";
    case Value::float16:
      return "float16";
    case Value::bfloat16:
      return "bfloat16";
    case Value::float32:
      return "float32";
    case Value::float64:
      return "float64";
    case Value::complex64:
      return "complex64";
    case Value::complex128:
      return "complex128";
  }
  return nullptr;
}

constexpr const char* name_of(Reduction r) {
  switch (r) {
    case Reduction::none:
      return "none";
    case Reduction::add:
      return "add";
    case Reduction::mul:
      return "mul";
    case Reduction::max:
      return "max";
    case Reduction::min:
      return "min";
    case Reduction::mean:
      return "mean";
  }
  return nullptr;
}

// How many enumerators there are: as many as have a name.
template <class E>
constexpr int count_of() {
  int n = 0;
  while (name_of(static_cast<E>(n)) != nullptr) ++n;
  return n;
}
template <class E>
inline constexpr int kCount = count_of<E>();

// Bytes of one stored value; 0 for `none`.
constexpr int64_t bytes_of(Value v) {
  switch (v) {
    case Value::none:
      return 0;
    case Value::boolean:
    case Value::int8:
    case Value::uint8:
      return 1;
    case Value::int16:
    case Value::uint16:
    case Value::float16:
    case Value::bfloat16:
      return 2;
    case Value::int32:
    case Value::uint32:
    case Value::float32:
      return 4;
    case Value::int64:
    case Value::uint64:
    case Value::float64:
    case Value::complex64:
      return 8;
    case Value::complex128:
      return 16;
  }
  return 0;
}

constexpr bool is_half(Value v) { return v == Value::float16 || v == Value::bfloat16; }
constexpr bool is_complex(Value v) { return v == Value::complex64 || v == Value::complex128; }

// Whether a reduction is defined for a value type: complex numbers have no order, booleans no mean.
constexpr bool has_meaning(Value v, Reduction r) {
  switch (r) {
    case Reduction::none:
      return true;
    case Reduction::add:
    case Reduction::mul:
      return v != Value::none;
    case Reduction::max:
    case Reduction::min:
      return v != Value::none && !is_complex(v);
    case Reduction::mean:
      return v != Value::none && v != Value::boolean;
  }
  return false;
}

constexpr bool is_signed_integer(Value v) { return v >= Value::int8 && v <= Value::int64; }
constexpr bool is_unsigned_integer(Value v) { return v >= Value::uint8 && v <= Value::uint64; }

// The type in which a reduction accumulates.
constexpr Value sum_type(Value v, Reduction r) {
  const bool adds = r == Reduction::add || r == Reduction::mul || r == Reduction::mean;
  if (is_half(v) && adds) return Value::float32;
  if (r == Reduction::mean && is_signed_integer(v)) return Value::int64;
  if (r == Reduction::mean && is_unsigned_integer(v)) return Value::uint64;
  return v;
}

// Whether every order of folding gives the same bits, where the first value is copied.
constexpr bool is_any_order(Value v, Reduction r) {
  const bool exact = is_signed_integer(v) || is_unsigned_integer(v) || v == Value::boolean;
  return r != Reduction::none && (exact || r == Reduction::max || r == Reduction::min);
}

// How a scatter combines: `none` moves bits; the others need the value type.
struct Combine {
  Reduction reduction = Reduction::none;
  Value value = Value::none;
  bool include_self = true;
};

// Whether the fold must know how many updates a destination has had.
constexpr bool needs_counter(const Combine& how) {
  return how.reduction == Reduction::mean || (how.reduction != Reduction::none && !how.include_self);
}

// Whether there are kernels for the gradients of a fold: those that depend on the values. Products of half
// types are left out: their factors have to be kept in float32.
constexpr bool has_gradients(const Combine& how) {
  const bool floats = how.value == Value::float32 || how.value == Value::float64;
  if (how.reduction == Reduction::mul) return floats || is_complex(how.value);
  return (how.reduction == Reduction::max || how.reduction == Reduction::min) &&
         (floats || is_half(how.value));
}

// Whether the fold cannot live in the output: it rounds once, counts, or starts afresh.
constexpr bool needs_accumulator(const Combine& how) {
  const bool rounds =
      is_half(how.value) && (how.reduction == Reduction::add || how.reduction == Reduction::mul);
  return needs_counter(how) || rounds;
}

}  // namespace gatherum
