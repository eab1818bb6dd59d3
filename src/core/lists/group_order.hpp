// The order of values by group, then by value, then by position.
#pragma once

#include "engine/outcome.hpp"
#include "engine/pool.hpp"
#include "model/types.hpp"

namespace gatherum {

// Contiguous values, and the number of the group of each.
struct GroupedValues {
  const char* values;  // null: the order is by group, then by position
  Value value;         // not complex
  const int64_t* groups;
  int64_t count, group_count;
};

// Writes the positions of the values to `order`. In each group, NaN are last and equal, and -0 equals 0. The
// result does not depend on the number of threads. Throws std::bad_alloc.
//
// A counting sort orders the positions by group. Then each thread sorts the values of one group after
// another. Scratch: 8 or 16 bytes per value, one counter per group and thread, and for each thread 16 or 32
// bytes per value of the largest group. Few threads work on large groups, so that the last amount is at most
// 64 bytes per value.
Outcome order_by_group(const GroupedValues& call, int64_t* order, const Poll& poll);

}  // namespace gatherum
