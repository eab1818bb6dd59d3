// The arguments of sorts of values (sort_values.hpp), which are compiled only once: integer code has the same
// speed at every instruction-set level.
#pragma once

#include "model/types.hpp"

namespace gatherum {

// The bytes of scratch for each position: two pairs of a key and a position.
constexpr int64_t order_scratch_bytes(int64_t value_bytes, bool wide) {
  return value_bytes < 8 && !wide ? 16 : 32;
}

// A part of the positions of some values: `count` positions, which ascend.
struct ValueOrder {
  Value value;
  const char* values;     // contiguous
  const char* positions;  // numbers of 8 bytes if `wide`, or else of 4 bytes
  bool wide;
  int64_t count;
  char* scratch;   // [order_scratch_bytes() * count], aligned to 8 bytes
  int64_t* order;  // [count] the result
};

// Writes the positions in the order of their values. Positions of equal values ascend. NaN are last and
// equal, and -0 equals 0.
void order_values(const ValueOrder& call);

}  // namespace gatherum
