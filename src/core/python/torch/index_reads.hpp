// Reads indices in the dtypes of torch's own operators: int32 and int64.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "python/views.hpp"

namespace gatherum {

inline bool is_index(const View& view) {
  return view.dtype == static_cast<int>(DType::int64) || view.dtype == static_cast<int>(DType::int32);
}

// Reads the index at an address inside a view of indices.
inline int64_t read_index(const View& view, const char* address) {
  const auto read = [address](auto value) {
    std::memcpy(&value, address, sizeof value);
    return int64_t{value};
  };
  return view.dtype == static_cast<int>(DType::int64) ? read(int64_t{}) : read(int32_t{});
}

// Calls `take(i, value)` for the indices of a vector. Stops and returns false if a call returns false. Also
// returns false if the dtype is neither int32 nor int64.
template <class Take>
bool each_index(const View& vector, const Take& take) {
  const auto read = [&](auto example) {
    for (npy_intp i = 0; i < vector.shape[0]; ++i) {
      std::memcpy(&example, vector.address + i * vector.strides[0], sizeof example);
      if (!take(i, int64_t{example})) return false;
    }
    return true;
  };
  if (vector.dtype == static_cast<int>(DType::int64)) return read(int64_t{});
  return vector.dtype == static_cast<int>(DType::int32) && read(int32_t{});
}

// Returns the smallest size that is above all indices, or nothing if an index is negative or the dtype is
// neither int32 nor int64.
inline std::optional<npy_intp> least_size(const View& indices) {
  int64_t last = -1;
  const bool read = each_index(indices, [&last](npy_intp, int64_t value) {
    last = std::max(last, value);
    return value >= 0 && value < std::numeric_limits<int64_t>::max();
  });
  return read ? std::optional<npy_intp>(last + 1) : std::nullopt;
}

}  // namespace gatherum
