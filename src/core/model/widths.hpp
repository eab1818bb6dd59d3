// The widths of items, in bytes, for which kernels are compiled.
//
// Functions are static: if one is not inlined, a linker must not use the code of one instruction-set level
// for all levels.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace gatherum {

template <int... kBytes>
using WidthList = std::integer_sequence<int, kBytes...>;

// Appends widths to a list.
template <int... kBytes, int... kMore>
constexpr WidthList<kBytes..., kMore...> joined(WidthList<kBytes...>, WidthList<kMore...>);

using Widths = WidthList<1, 2, 4, 8, 16>;
template <int... kMore>
using WidthsAnd = decltype(joined(Widths{}, WidthList<kMore...>{}));

template <int... kBytes>
static constexpr bool is_among(WidthList<kBytes...>, int64_t bytes) {
  return ((bytes == kBytes) || ...);
}

// Returns true if blocks of this many bytes are loaded and stored as one value.
static constexpr bool is_width(int64_t bytes) { return is_among(Widths{}, bytes); }

// Calls f with the number of bytes as a constant, or with the last width if the list lacks that number.
template <class F, int kFirst, int... kOthers>
static auto with_width(WidthList<kFirst, kOthers...>, int64_t bytes, F&& f) {
  if constexpr (sizeof...(kOthers) > 0)
    if (bytes != kFirst) return with_width(WidthList<kOthers...>{}, bytes, f);
  return f(std::integral_constant<int, kFirst>{});
}

}  // namespace gatherum
