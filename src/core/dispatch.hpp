// The two questions that the kernels ask: how wide is an item, and what is its value type.
#pragma once

#include <type_traits>

#include "combine.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Calls f with the block's width as a constant, or 0 for a run of bytes.
template <class F>
auto by_width(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(std::integral_constant<int, 1>{});
    case 2:
      return f(std::integral_constant<int, 2>{});
    case 4:
      return f(std::integral_constant<int, 4>{});
    case 8:
      return f(std::integral_constant<int, 8>{});
    case 16:
      return f(std::integral_constant<int, 16>{});
    default:
      return f(std::integral_constant<int, 0>{});
  }
}

template <class V, class F>
auto by_reduction(Reduction r, F&& f) {
  constexpr bool ordered = !std::is_same_v<V, Complex<float>> && !std::is_same_v<V, Complex<double>>;
  switch (r) {
    case Reduction::mul:
      return f(Fold<V, Reduction::mul>{});
    case Reduction::max:
      if constexpr (ordered) return f(Fold<V, Reduction::max>{});
      break;
    case Reduction::min:
      if constexpr (ordered) return f(Fold<V, Reduction::min>{});
      break;
    case Reduction::mean:
      if constexpr (!std::is_same_v<V, Boolean>) return f(Fold<V, Reduction::mean>{});
      break;
    default:
      break;
  }
  return f(Fold<V, Reduction::add>{});
}

// Calls f with the Fold of a value type and reduction. The plan refuses the pairs without meaning.
template <class F>
auto by_value(Value value, Reduction r, F&& f) {
  switch (value) {
    case Value::boolean:
      return by_reduction<Boolean>(r, f);
    case Value::int8:
      return by_reduction<int8_t>(r, f);
    case Value::int16:
      return by_reduction<int16_t>(r, f);
    case Value::int32:
      return by_reduction<int32_t>(r, f);
    case Value::int64:
      return by_reduction<int64_t>(r, f);
    case Value::uint8:
      return by_reduction<uint8_t>(r, f);
    case Value::uint16:
      return by_reduction<uint16_t>(r, f);
    case Value::uint32:
      return by_reduction<uint32_t>(r, f);
    case Value::uint64:
      return by_reduction<uint64_t>(r, f);
    case Value::float16:
      return by_reduction<Half>(r, f);
    case Value::bfloat16:
      return by_reduction<Brain>(r, f);
    case Value::float32:
      return by_reduction<float>(r, f);
    case Value::complex64:
      return by_reduction<Complex<float>>(r, f);
    case Value::complex128:
      return by_reduction<Complex<double>>(r, f);
    default:
      return by_reduction<double>(r, f);
  }
}

}  // namespace gatherum::GATHERUM_LEVEL
