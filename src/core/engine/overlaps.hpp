// Checks whether operands share memory, with the same rule for calls from C, Python and XLA. First, the
// bounds of the operands are compared. If the bounds intersect, a search of bounded length over the strides
// follows. If the search does not end, the operands are treated as sharing memory.
#pragma once

#include <vector>

#include "model/lowering.hpp"

namespace gatherum {

// The bytes of an operand: blocks of equal size. The first block is at `start`, and the loops define the
// offsets of further blocks.
struct Footprint {
  struct Loop {
    int64_t extent, stride;
  };

  Footprint(const void* start, int64_t block) : start(reinterpret_cast<intptr_t>(start)), block(block) {}
  void add(int64_t extent, int64_t stride) { loops.push_back({extent, stride}); }

  int64_t start, block;
  std::vector<Loop> loops;
};
// The blocks that a nest addresses in the data, and in the moved operand.
Footprint data_footprint(const Nest& nest, const void* start);
Footprint moved_footprint(const Nest& nest, const void* start);

bool shares_memory(const Footprint& one, const Footprint& other);
// Returns true if the strides of a dimension of this size lead to different elements. A dimension of size 1
// has one element, so its strides have no effect.
inline bool strides_differ(int64_t extent, int64_t one, int64_t other) { return extent > 1 && one != other; }
// Returns true if a footprint shares memory with the indices of a program.
bool shares_indices(const Footprint& one, const Program& program, const void* indices);

// An operand that a call must not write to, with its name for messages.
struct NamedFootprint {
  const char* name;
  Footprint bytes;
};
// Returns the name of the first operand that shares memory with the operand that is written, or null if there
// is none.
const char* find_shared(const Footprint& written, const std::vector<NamedFootprint>& operands);

// Returns true if a scatter works in place: `out` is the data, with the same layout.
bool is_in_place(const Program& program, const gatherum_operands& operands);
// Returns the name of the first operand that has bytes but a null address, or null if there is none.
const char* find_null(const Program& program, const gatherum_operands& operands);
// Returns the name of the first operand that shares memory with `out` but must not, or null if there is none.
const char* find_overlap(const Program& program, const gatherum_operands& operands);

// Returns true if every operand has an address, and no operand's bounds intersect the bounds of `out`. Nearly
// all calls meet this condition.
inline bool is_apart(const Program& p, const gatherum_operands& operands) {
  const auto address = [](const void* start) {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(start));
  };
  const int64_t low = address(operands.out.start) + p.reaches.out.low;
  const int64_t high = address(operands.out.start) + p.reaches.out.high;
  const auto lies_outside = [&](const gatherum_buffer& b, const Reach& r) {
    return b.start != nullptr && (address(b.start) + r.high <= low || high <= address(b.start) + r.low);
  };
  return operands.out.start != nullptr && operands.fill == nullptr &&
         lies_outside(operands.data, p.reaches.data) && lies_outside(operands.indices, p.reaches.indices) &&
         (!p.scatter || lies_outside(operands.updates, p.reaches.updates));
}

}  // namespace gatherum
