// Whether operands share memory: one rule for calls from C, Python and XLA. Bounds are compared first, then
// the strides are searched with bounded work. When in doubt, the operands share memory.
#pragma once

#include <vector>

#include "lowering.hpp"

namespace gatherum {

// The bytes of an operand: blocks of so many bytes, the first at `start`, the others where the loops lead.
struct Footprint {
  struct Loop {
    int64_t extent, stride;
  };

  Footprint(const void* start, int64_t block) : start(reinterpret_cast<intptr_t>(start)), block(block) {}
  void add(int64_t extent, int64_t stride) { loops.push_back({extent, stride}); }

  int64_t start, block;
  std::vector<Loop> loops;
};
// The blocks that a nest addresses in the data, and in the other operand.
Footprint data_footprint(const Nest& nest, const void* start);
Footprint other_footprint(const Nest& nest, const void* start);

bool shares_memory(const Footprint& one, const Footprint& other);
// Whether memory is shared with the indices of a program.
bool shares_indices(const Footprint& one, const Program& program, const void* indices);

// An operand that a call must not write to, by its name in messages.
struct NamedFootprint {
  const char* name;
  Footprint bytes;
};
// The name of the first operand that shares memory with what is written, or null.
const char* find_shared(const Footprint& written, const std::vector<NamedFootprint>& operands);

// Whether a scatter works in place: `out` is the data, laid out alike.
bool is_in_place(const Program& program, const gatherum_operands& at);
// The name of the first operand that has bytes and no address, or null.
const char* find_null(const Program& program, const gatherum_operands& at);
// The name of the first operand that must not share memory with `out` and does, or null.
const char* find_overlap(const Program& program, const gatherum_operands& at);

}  // namespace gatherum
