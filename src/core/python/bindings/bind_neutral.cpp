// Binds the neutral elements of folds, for code that folds outside the core.
//
// The header is one of the kernels' headers, which are compiled once for each instruction-set level. It has
// only constants, so this file may compile it for itself.
#define GATHERUM_LEVEL level_of_bindings
#include "fold/neutral.hpp"
#include "python/bindings/bindings.hpp"

namespace gatherum {
namespace {

using namespace GATHERUM_LEVEL;

// Returns the bytes of the neutral element of accumulators, which have the type Sum. V is their value type.
template <class V, class Sum = V>
nb::object neutral_bytes(Neutral neutral) {
  const auto bytes = [](const Sum& sum) -> nb::object { return nb::bytes(&sum, sizeof sum); };
  switch (neutral) {
    case Neutral::none:
      return nb::none();
    case Neutral::zero:
      return bytes(neutral_element<V, Sum, Neutral::zero>());
    case Neutral::one:
      return bytes(neutral_element<V, Sum, Neutral::one>());
    case Neutral::lowest:
      return bytes(neutral_element<V, Sum, Neutral::lowest>());
    case Neutral::greatest:
      return bytes(neutral_element<V, Sum, Neutral::greatest>());
  }
  return nb::none();
}

// As neutral_bytes. Products of complex numbers have no neutral element, because 1 * x can change the sign of
// a zero.
template <class T>
nb::object neutral_complex(Neutral neutral) {
  if (neutral != Neutral::zero) return nb::none();
  const Complex<T> zero = neutral_element<Complex<T>, Complex<T>, Neutral::zero>();
  return nb::bytes(&zero, sizeof zero);
}

// Returns the bytes of the neutral element of the accumulators of a fold, or None if it has none.
nb::object neutral_item(Value value, Reduction reduction) {
  if (!has_meaning(value, reduction)) return nb::none();
  const Neutral neutral = accumulator_neutral(reduction);
  switch (sum_type(value, reduction)) {
    case Value::none:
      return nb::none();
    case Value::boolean:
      return neutral_bytes<bool>(neutral);
    case Value::int8:
      return neutral_bytes<int8_t>(neutral);
    case Value::int16:
      return neutral_bytes<int16_t>(neutral);
    case Value::int32:
      return neutral_bytes<int32_t>(neutral);
    case Value::int64:
      return neutral_bytes<int64_t>(neutral);
    case Value::uint8:
      return neutral_bytes<uint8_t>(neutral);
    case Value::uint16:
      return neutral_bytes<uint16_t>(neutral);
    case Value::uint32:
      return neutral_bytes<uint32_t>(neutral);
    case Value::uint64:
      return neutral_bytes<uint64_t>(neutral);
    case Value::float16:
      return neutral_bytes<Half, uint16_t>(neutral);
    case Value::bfloat16:
      return neutral_bytes<Bfloat16, uint16_t>(neutral);
    case Value::float32:
      return neutral_bytes<float>(neutral);
    case Value::float64:
      return neutral_bytes<double>(neutral);
    case Value::complex64:
      return neutral_complex<float>(neutral);
    case Value::complex128:
      return neutral_complex<double>(neutral);
  }
  return nb::none();
}

}  // namespace

void bind_neutral(nb::module_& m) {
  nb::enum_<Neutral>(m, "Neutral", "The neutral element of a fold, whose value depends on the type.")
      .value("none", Neutral::none)
      .value("zero", Neutral::zero)
      .value("one", Neutral::one)
      .value("lowest", Neutral::lowest)
      .value("greatest", Neutral::greatest);
  m.def("accumulator_neutral", &accumulator_neutral, nb::arg("reduction"));
  m.def("neutral_item", &neutral_item, nb::arg("value"), nb::arg("reduction"));
}

}  // namespace gatherum
