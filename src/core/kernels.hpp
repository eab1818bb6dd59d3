// What the compiled kernels offer to the rest of the core: one table of functions for each
// instruction-set level, all from the same source.
#pragma once

#include <cstdint>

#include "nest.hpp"

namespace gatherum {

enum class Value : uint8_t {
  none,
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

// How a scatter combines: `none` moves bits; the others need the value type.
struct Combine {
  Reduction reduction = Reduction::none;
  Value value = Value::none;
  bool include_self = true;
};

struct Operands {
  char* data = nullptr;         // D: read by gathers, written by scatters
  const char* index = nullptr;  // X
  char* other = nullptr;        // U: written by gathers, read by scatters
  const char* fill = nullptr;   // one item, for gathers in drop mode
};

// A range of units: each unit is one point of the leading `units` loops times one chunk of the line.
// Units are independent of each other; inside one, points are visited in order.
struct Range {
  int64_t chunk, begin, end;
};

// The first invalid index: linear position in the index space, component, and the value seen.
// position -1: none was found.
struct Invalid {
  int64_t position = -1;
  int64_t value = 0;
  int component = 0;
};

struct Kernels {
  const char* level;
  // Returns false when a raise-mode index was invalid; the output is then unfinished.
  bool (*gather)(const Nest&, int units, const Operands&, const Range&);
  Invalid (*first_invalid)(const Nest&, const char* index, int64_t begin, int64_t end);
  void (*scatter)(const Nest&, int units, const Operands&, const Range&, const Combine&);
  // As scatter, through accumulators: for folds that cannot live in the output's own type.
  // `ids` is the nest with component strides that number the destinations of one unit, of which
  // there are `destinations`. Returns false when scratch memory could not be had.
  bool (*scatter_grouped)(const Nest&, const Nest& ids, int units, const Operands&, const Range&,
                          const Combine&, int64_t destinations);
  // Writes the number of the destination of every tuple of the nest, -1 where invalid.
  void (*number)(const Nest& ids, const char* index, int64_t* numbers);
};

const Kernels& kernels_portable();
#if GATHERUM_X86
const Kernels& kernels_v2();
const Kernels& kernels_v3();
const Kernels& kernels_v4();
#endif

}  // namespace gatherum
