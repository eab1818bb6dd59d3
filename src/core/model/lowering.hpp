// Lowers every operator to one loop nest over three operands (nest.hpp). The differences between the
// operators end here: prefix shapes, batch dimensions, strided and broadcast operands are loops like any
// other. All strides and offsets are bytes. Python's `nests` calls these functions.
#pragma once

#include <vector>

#include "model/program.hpp"

namespace gatherum {

using Loops = std::vector<Loop>;
using Components = std::vector<Component>;

// Shape and byte strides of an operand.
struct OperandLayout {
  std::vector<int64_t> shape, strides;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool is_empty() const { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }
};
OperandLayout lay_contiguous(const std::vector<int64_t>& shape, int64_t item);

// What indices address. Three facts decide the roles of all dimensions, and these all the rest.
struct Addressing {
  bool tuples;  // the last dimension of the indices is a tuple; otherwise each index stands alone
  // The dimensions in front of the attribute are shared by data and indices. Otherwise they are free: the
  // same indices serve every place along them, stand alone, and address slices.
  bool shares_front;
  bool shares_back;  // those behind the indexed ones are shared; otherwise they are free
};
inline constexpr Addressing kSlices{false, false, false}, kElements{false, true, true},
    kTuples{true, true, false};

// Numbers [begin, end) of dimensions.
struct DimensionRange {
  int64_t begin, end;
};

// Where a dimension of what moves comes from: its number in the data and in the indices, or kNowhere.
struct Source {
  int64_t data, indices;
};
inline constexpr int64_t kNowhere = -1;

// The roles of the dimensions of a call (gatherum/_model/dimensions.py).
struct Roles {
  std::vector<Source> moved;
  DimensionRange entries, indexed, addressed;
};
// `components`: of an index tuple, 1 where each index stands alone. `axis` counts from the front.
Roles roles_of(const Addressing& addressing, int64_t rank, int64_t indices_rank, int64_t components,
               int64_t axis);

// The entries: the indices, less the dimension of a tuple.
OperandLayout entries_of(const Addressing& addressing, const OperandLayout& indices);

// The loops over what moves, and the components of an index or of a tuple of them. Without components there
// is no index to read, and nothing steps through the indices. `other` has the shape that moves.
void list_loops(const Roles& roles, const OperandLayout& data, const OperandLayout& indices,
                const OperandLayout& other, Loops& loops, Components& components);
// Drops loops of one step and merges neighbours that step as one.
Loops collapse(const Loops& loops);

// The index space alone, in row-major order: what a check of every index walks.
Nest lower_checks(const OperandLayout& entries, const Components& components);
// Loops that number what the entries address in a space, both in row-major order. `space` is contiguous, of
// items of 1 byte.
Nest lower_numbers(const Addressing& addressing, int64_t axis, const OperandLayout& space,
                   const OperandLayout& indices);
// target[...] = source[...], the start of a functional scatter: a gather without components, whose outermost
// loop is the line, so that it can be cut.
Nest lower_copy(const OperandLayout& source, const OperandLayout& target, int64_t item);
// The nests of a call that moves something: `nest`, and for a scatter `whole`, with how they may be cut.
void lower_call(const Loops& loops, const Components& components, Program& program);

}  // namespace gatherum
