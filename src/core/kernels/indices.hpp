// Staging reads, resolves and checks indices. (scatter_shares.hpp and fold_pointed.hpp also read some indices
// directly.)
//
// For up to 256 index tuples at a time, every component is read from the index array into registers or local
// memory, resolved (negative indices, mode), and checked against its size. Each tuple becomes one byte
// offset, and kernels use only these offsets. If another thread changes the index array during a call, the
// only effect is a different valid offset. If a tile is staged again because an index is negative or
// invalid, all results of the first pass are discarded. Cost: 0.1-0.5 ns per contiguous component.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "kernels/lanes.hpp"
#include "model/nest.hpp"

namespace gatherum::GATHERUM_LEVEL {

inline constexpr int64_t kInvalid = std::numeric_limits<int64_t>::min();

template <class T>
GATHERUM_INLINE T byte_swap(T v) {
  if constexpr (sizeof(T) == 1) return v;
  if constexpr (sizeof(T) == 2) return static_cast<T>((v << 8) | (v >> 8));
  if constexpr (sizeof(T) == 4) return (v << 24) | ((v & 0xFF00u) << 8) | ((v >> 8) & 0xFF00u) | (v >> 24);
  if constexpr (sizeof(T) == 8)
    return (T{byte_swap(static_cast<uint32_t>(v))} << 32) | byte_swap(static_cast<uint32_t>(v >> 32));
}

// Copies n integers of unsigned type T into values, sign- or zero-extended according to `Signed`.
template <class T, class Signed, bool Swapped>
GATHERUM_INLINE void load_as(const char* address, int64_t stride, int n, int64_t* values) {
  auto load = [&](const char* p) {
    T v;
    std::memcpy(&v, p, sizeof(T));
    if constexpr (Swapped) v = byte_swap(v);
    return static_cast<int64_t>(static_cast<Signed>(v));
  };
  if (stride == static_cast<int64_t>(sizeof(T)))
    for (int i = 0; i < n; ++i) values[i] = load(address + i * static_cast<int64_t>(sizeof(T)));
  else
    for (int i = 0; i < n; ++i) values[i] = load(address + i * stride);
}

template <class U, class S>
GATHERUM_INLINE void load_width(IndexType t, const char* address, int64_t stride, int n, int64_t* values) {
  if (t.swapped && t.is_signed) return load_as<U, S, true>(address, stride, n, values);
  if (t.swapped) return load_as<U, U, true>(address, stride, n, values);
  if (t.is_signed) return load_as<U, S, false>(address, stride, n, values);
  load_as<U, U, false>(address, stride, n, values);
}

GATHERUM_NOINLINE inline void load(IndexType t, const char* address, int64_t stride, int n, int64_t* values) {
  if (t.width == 8) return load_width<uint64_t, int64_t>(t, address, stride, n, values);
  if (t.width == 4) return load_width<uint32_t, int32_t>(t, address, stride, n, values);
  if (t.width == 2) return load_width<uint16_t, int16_t>(t, address, stride, n, values);
  load_width<uint8_t, int8_t>(t, address, stride, n, values);
}

// In the modes that map invalid indices to valid ones, makes values valid in place. A uint64 of 2^63 or more
// appears as a negative bit pattern, with `is_signed` false. size >= 1 (the plan rejects 0).
inline void force_valid(const Nest& nest, int64_t size, int n, int64_t* values) {
  const bool is_signed = nest.index.is_signed || nest.index.width < 8;
  const auto replace_each = [&](const auto& valid) {
    for (int i = 0; i < n; ++i) values[i] = valid(values[i]);
  };
  switch (nest.mode) {
    case Mode::wrap:
      return replace_each([&](int64_t v) {
        if (!is_signed) return static_cast<int64_t>(static_cast<uint64_t>(v) % static_cast<uint64_t>(size));
        v %= size;
        return v < 0 ? v + size : v;
      });
    case Mode::clip:
      return replace_each([&](int64_t v) {
        if (!is_signed && v < 0) v = size - 1;
        if (nest.negative && v < 0 && v >= -size) v += size;
        return v < 0 ? 0 : (v >= size ? size - 1 : v);
      });
    case Mode::raise:
    case Mode::drop:
      break;  // invalid indices stay invalid
  }
}

// A value to which the rule for negative indices has been applied. `invalid` is 0 if the value is in [0,
// size), and -1 otherwise.
struct Resolved {
  int64_t value, invalid;
};

GATHERUM_INLINE Resolved resolve(int64_t v, int64_t size, int64_t from_end) {
  v += (v >> 63) & from_end;
  return {v, static_cast<uint64_t>(v) >= static_cast<uint64_t>(size) ? int64_t{-1} : int64_t{0}};
}

GATHERUM_INLINE int64_t from_end(const Nest& nest, int c) {
  return nest.negative && nest.index.is_signed ? nest.component[c].size : 0;
}

// Calls `f(times)`, where `times(v)` is v * stride modulo 2^64 for a word or a vector. Uses a shift if
// possible, because levels below x86-64-v4 have no 64-bit vector product (256 bins: -0.25 ns per index).
template <class F>
GATHERUM_INLINE auto with_product(int64_t stride, const F& f) {
  const auto factor = static_cast<uint64_t>(stride);
  if (!std::has_single_bit(factor)) return f([factor](auto v) { return times_scalar(v, factor); });
  const auto shift = static_cast<uint64_t>(std::countr_zero(factor));
  return f([shift](auto v) { return v << shift; });
}

// Adds component c to the offsets of n tuples, and sets `invalid` for invalid tuples.
inline int64_t add_component(const Nest& nest, int c, int n, const int64_t* GATHERUM_RESTRICT values,
                             int64_t* GATHERUM_RESTRICT offsets, int64_t* GATHERUM_RESTRICT invalid) {
  const int64_t size = nest.component[c].size, end = from_end(nest, c);
  return with_product(nest.component[c].stride, [&](auto times) {
    int64_t any_invalid = 0;
    for (int i = 0; i < n; ++i) {
      const Resolved r = resolve(values[i], size, end);
      any_invalid |= r.invalid;
      offsets[i] += static_cast<int64_t>(times(static_cast<uint64_t>(r.value & ~r.invalid)));
      invalid[i] |= r.invalid;
    }
    return any_invalid;
  });
}

// The distance at which indices are prefetched: a page, because the hardware stops prefetching at the end of
// a page. Indices are prefetched into all caches. (With _MM_HINT_NTA, 20M bytes out of 50 MB take 59 ms
// instead of 65 on an EPYC, but reading indices takes twice as long on a Xeon.)
inline constexpr int64_t kIndexBytesAhead = 4096;

// A page holds only two tiles of 8-byte indices. A shorter tile is the end of a line; nothing is prefetched
// after it.
GATHERUM_INLINE void prefetch_on(const Nest& nest, const char* address, int64_t width, int n) {
  if (n != kTile || !nest.fetches_indices) return;
  for (int64_t r = 0; r < n * width; r += kCacheLine) prefetch(address + kIndexBytesAhead + r);
}

inline void load_resolved(const Nest& nest, int c, const char* address, int64_t stride, int n,
                          int64_t* values) {
  if (stride == nest.index.width) prefetch_on(nest, address, stride, n);
  load(nest.index, address + nest.component[c].offset, stride, n, values);
  compiler_barrier(values);
  if (moves_index(nest.mode)) force_valid(nest, nest.component[c].size, n, values);
}

inline constexpr int kLanes = GATHERUM_LANES;
template <class T>
using Lanes = typename Vector<T, kLanes>::Type;

template <class V>
GATHERUM_INLINE V load_lanes(const char* address) {
  V v;
  std::memcpy(&v, address, sizeof v);
  return v;
}

// Loads values that are `stride` bytes apart. If the stride is a compile-time constant, the values are
// contiguous.
template <class T, class Stride>
GATHERUM_INLINE Lanes<T> load_lanes(const char* address, Stride stride) {
  if constexpr (!std::is_same_v<Stride, int64_t>) return load_lanes<Lanes<T>>(address);
  return [=]<int... L>(std::integer_sequence<int, L...>) {
    return Lanes<T>{load_lanes<T>(address + L * stride)...};
  }(std::make_integer_sequence<int, kLanes>{});
}

using Words = Lanes<uint64_t>;

// Resolves a vector of values, with or without the rule for negative indices. Makes a word of `invalid`
// negative if its value is invalid: v | (size - 1 - v) is negative for invalid v. This is faster than
// resolve().
template <class T, bool Negative>
GATHERUM_INLINE Words resolve_lanes(Lanes<T> raw, Words size, Words last, Words& invalid) {
  auto v = std::bit_cast<Words>(opaque(convert_lanes<Lanes<int64_t>>(raw)));
  if constexpr (Negative) v += std::bit_cast<Words>(std::bit_cast<Lanes<int64_t>>(v) >> 63) & size;
  invalid |= v | (last - v);
  return v;
}

GATHERUM_INLINE bool none_negative(Words words) {
  const auto each = std::bit_cast<std::array<int64_t, kLanes>>(words);
  return std::accumulate(each.begin(), each.end(), int64_t{0}, std::bit_or<>{}) >= 0;
}

// For n values of a component, writes `times(value)` to the offsets or adds it to them. Returns true if all
// are valid. Reads each value only once, so the index array need not be copied first (0.2 ns less per value).
template <class T, bool Negative, bool First, class Times, class Stride>
GATHERUM_INLINE bool add_times(const Component& component, const Times& times, const char* values,
                               Stride stride, int n, int64_t* offsets) {
  const auto size_of_one = static_cast<uint64_t>(component.size);
  const Words size = Words{} + size_of_one, last = size - uint64_t{1};
  Words invalid_lanes{};
  const auto take = [=, &invalid_lanes](Lanes<T> raw, int64_t* to) {
    Words sum = times(resolve_lanes<T, Negative>(raw, size, last, invalid_lanes));
    if constexpr (!First) sum += load_lanes<Words>(reinterpret_cast<const char*>(to));
    std::memcpy(to, &sum, sizeof sum);
  };
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) take(load_lanes<T>(values + i * stride, stride), offsets + i);
  uint64_t invalid_tail = 0;  // one by one: a vector load would stall until the stores complete
  for (; i < n; ++i) {
    auto v = static_cast<uint64_t>(int64_t{opaque(load_lanes<T>(values + i * stride))});
    if constexpr (Negative) v += static_cast<uint64_t>(static_cast<int64_t>(v) >> 63) & size_of_one;
    invalid_tail |= v | (size_of_one - 1 - v);
    const uint64_t before = First ? 0 : static_cast<uint64_t>(offsets[i]);
    offsets[i] = static_cast<int64_t>(before + times(v));
  }
  return none_negative(invalid_lanes) && static_cast<int64_t>(invalid_tail) >= 0;
}

template <class T, bool Negative, bool First, class Stride>
GATHERUM_INLINE bool add_valid(const Component& component, const char* values, Stride stride, int n,
                               int64_t* offsets) {
  return with_product(component.stride, [=](auto times) {
    return add_times<T, Negative, First>(component, times, values, stride, n, offsets);
  });
}

// Returns true if indices can be read in place, in native byte order. A valid index has the same meaning in
// every mode and type; a tile with any other index is staged again.
inline bool reads_in_place(const IndexType& type, int64_t stride) {
  return kLanes > 1 && !type.swapped && (type.width == 8 || (type.width == 4 && stride == 4));
}

template <bool Negative, bool First>
bool stage_component(const Nest& nest, int c, const char* address, int64_t stride, int n, int64_t* offsets) {
  constexpr std::integral_constant<int64_t, 8> eight;
  constexpr std::integral_constant<int64_t, 4> four;
  const Component& component = nest.component[c];
  const char* values = address + component.offset;
  if (reads_in_place(nest.index, stride)) {
    if (stride == nest.index.width) prefetch_on(nest, values, stride, n);
    if (nest.index.width == four)
      return add_valid<int32_t, Negative, First>(component, values, four, n, offsets);
    if (stride == eight) return add_valid<int64_t, Negative, First>(component, values, eight, n, offsets);
    return add_valid<int64_t, Negative, First>(component, values, stride, n, offsets);
  }
  alignas(64) int64_t copied[kTile];
  load_resolved(nest, c, address, stride, n, copied);
  return add_valid<int64_t, Negative, First>(component, reinterpret_cast<const char*>(copied), eight, n,
                                             offsets);
}

template <bool Negative>
bool stage_components(const Nest& nest, const char* address, int64_t stride, int n, int64_t* offsets) {
  bool valid = stage_component<Negative, true>(nest, 0, address, stride, n, offsets);
  for (int c = 1; c < nest.components; ++c)
    valid &= stage_component<Negative, false>(nest, c, address, stride, n, offsets);
  compiler_barrier(offsets);
  return valid;
}

// Writes the offsets of n tuples if all indices are valid, the common case. Otherwise returns false, and the
// offsets are undefined.
inline bool stage_valid(const Nest& nest, const char* address, int64_t stride, int n, int64_t* offsets) {
  if (nest.components == 0) return false;
  if (stage_components<false>(nest, address, stride, n, offsets)) return true;
  return from_end(nest, 0) != 0 && stage_components<true>(nest, address, stride, n, offsets);
}

// Stages n <= kTile tuples from `at` on, `stride` bytes apart. Sets offsets[i] to a byte offset inside the
// data, or to kInvalid. Returns true if any tuple is invalid.
GATHERUM_NOINLINE inline bool stage(const Nest& nest, const char* address, int64_t stride, int n,
                                    int64_t* offsets) {
  if (stage_valid(nest, address, stride, n, offsets)) return false;
  alignas(64) int64_t values[kTile], invalid[kTile];
  std::memset(offsets, 0, sizeof(int64_t) * static_cast<size_t>(n));
  std::memset(invalid, 0, sizeof(int64_t) * static_cast<size_t>(n));
  int64_t any_invalid = 0;
  for (int c = 0; c < nest.components; ++c) {
    load_resolved(nest, c, address, stride, n, values);
    any_invalid |= add_component(nest, c, n, values, offsets, invalid);
  }
  if (any_invalid != 0)
    for (int i = 0; i < n; ++i) offsets[i] = invalid[i] != 0 ? kInvalid : offsets[i];
  compiler_barrier(offsets);
  return any_invalid != 0;
}

// Adds i * step to the i-th offset, starting from `begin`, except to invalid offsets.
GATHERUM_NOINLINE inline void add_steps(int64_t step, int begin, int n, int64_t* offsets) {
  for (int i = begin; i < n; ++i)
    if (offsets[i] != kInvalid) offsets[i] += i * step;
}

// Returns true if staging can be interleaved with work: one contiguous component that is read in place and
// only shifted.
inline bool stages_lines(const Nest& nest) {
  const int64_t stride = nest.line_loop().index;
  return nest.components == 1 && stride == nest.index.width && reads_in_place(nest.index, stride) &&
         std::has_single_bit(static_cast<uint64_t>(nest.component[0].stride));
}

// The number of tuples staged at a time: a cache line of 8-byte indices, or half a cache line of 4-byte
// indices.
inline constexpr int kStagedTogether = 8;

// The memory to prefetch while tuples are staged: the indices that are `ahead` bytes further on, and, if
// `beside` is not null, `width` bytes for each tuple, starting at `beside`.
struct Fetch {
  int64_t ahead;
  const char* beside;
  int64_t width;
};

// Stages n tuples, a multiple of kStagedTogether, like `stage`, and adds i * step to the i-th offset. After
// each kStagedTogether tuples, calls `staged(i, kStagedTogether)` for their offsets, and `work(i)` for each
// tuple. Returns false if an index is negative or invalid; the offsets are then undefined.
template <class T, class Work, class Staged>
GATHERUM_INLINE bool stage_lines(const Nest& nest, const char* address, int n, int64_t step, int64_t* offsets,
                                 const Fetch fetch, const Work& work, const Staged& staged) {
  constexpr auto width = static_cast<int64_t>(sizeof(T));
  const Component& only = nest.component[0];
  const char* values = address + only.offset;
  const auto shift = static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(only.stride)));
  const Words size = Words{} + static_cast<uint64_t>(only.size), last = size - uint64_t{1};
  const Words along = Words{} + static_cast<uint64_t>(step * kLanes);
  std::array<int64_t, kLanes> first;
  for (int l = 0; l < kLanes; ++l) first[static_cast<size_t>(l)] = step * l;
  auto steps = std::bit_cast<Words>(first);
  Words invalid{};
  for (int i = 0; i < n; i += kStagedTogether) {
    prefetch(values + i * width + fetch.ahead);
    if (fetch.beside != nullptr)
      for (int64_t r = 0; r < kStagedTogether * fetch.width; r += kCacheLine)
        prefetch(fetch.beside + i * fetch.width + r);
    GATHERUM_UNROLL(8)
    for (int l = 0; l < kStagedTogether; l += kLanes, steps += along) {
      const auto raw = load_lanes<Lanes<T>>(values + (i + l) * width);
      const Words sum = (resolve_lanes<T, false>(raw, size, last, invalid) << shift) + steps;
      std::memcpy(offsets + i + l, &sum, sizeof sum);
    }
    staged(i, kStagedTogether);
    GATHERUM_UNROLL(8)
    for (int l = 0; l < kStagedTogether; ++l) work(i + l);
  }
  compiler_barrier(offsets);
  return none_negative(invalid);
}

}  // namespace gatherum::GATHERUM_LEVEL
