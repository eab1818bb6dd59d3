// The arguments of cumulative functions (cumulate.hpp), which are compiled only once: values are folded one
// by one, so no instruction-set level would be faster.
#pragma once

#include "model/types.hpp"

namespace gatherum {

// A result for each value of a group, from the values up to this one: the left fold, a linear recurrence, or
// the previous value. The last two have kernels for float32 and float64.
enum class Cumulative : uint8_t { fold, recurrence, previous };
struct Cumulation {
  Cumulative kind;
  FoldRule fold_rule;
  const char* values;
  const char* factors;  // of a recurrence
  const char* groups;   // numbers of 8 bytes if `wide`, or else of 4 bytes
  bool wide;
  int64_t group_count;
  char* sums;      // [group_count] accumulators
  uint8_t* begun;  // [group_count] 1 for a group of which a value was read
  char* out;
  int64_t begin, end;  // the values to read
};

// Reads a part of the values. The parts are read in order.
void cumulate(const Cumulation&);

}  // namespace gatherum
