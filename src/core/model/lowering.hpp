// Lowers a call of any operator to one loop nest over three operands (nest.hpp). After this step, all
// operators are the same: leading dimensions, batch dimensions, strided and broadcast operands are ordinary
// loops. All strides and offsets are in bytes. Python's `nests` calls these functions.
#pragma once

#include <vector>

#include "model/program.hpp"

namespace gatherum {

using Loops = std::vector<Loop>;
using Components = std::vector<Component>;

// The shape and byte strides of an operand.
struct OperandLayout {
  std::vector<int64_t> shape, strides;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool is_empty() const { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }
};
OperandLayout contiguous_layout(const std::vector<int64_t>& shape, int64_t item);

// How an operator addresses the data. These three facts decide the roles of all dimensions.
struct Addressing {
  bool takes_tuples;  // the last dimension of the indices is a tuple; otherwise each index is a scalar
  // Data and indices share the dimensions before `axis`, or the first `batch_dims` dimensions. Otherwise they
  // are free: the same scalar indices apply to every position along these dimensions, and address slices.
  bool shares_front;
  bool shares_back;  // the dimensions after the indexed ones are shared; otherwise they are free
};
inline constexpr Addressing kSlices{false, false, false}, kElements{false, true, true},
    kTuples{true, true, false};

// The dimensions numbered [begin, end).
struct DimensionRange {
  int64_t begin, end;
};

// The origin of a dimension of the moved shape: the number of this dimension in the data and in the indices,
// or kNowhere.
struct Source {
  int64_t data, indices;
};
inline constexpr int64_t kNowhere = -1;

// The roles of the dimensions of a call (gatherum/_model/dimensions.py).
struct Roles {
  std::vector<Source> moved;
  DimensionRange entries, indexed, addressed;
};
// `components`: the length of an index tuple, 1 for scalar indices. `axis` counts from the front.
Roles roles_of(const Addressing& addressing, int64_t rank, int64_t indices_rank, int64_t components,
               int64_t axis);

// The entries: the indices without the tuple dimension.
OperandLayout entries_of(const Addressing& addressing, const OperandLayout& indices);

// Lists the loops over the moved shape, and the components of an index or index tuple. If there are no
// components, no index is read and no loop steps through the indices. `moved_layout` has the moved shape.
void list_loops(const Roles& roles, const OperandLayout& data, const OperandLayout& indices,
                const OperandLayout& moved_layout, Loops& loops, Components& components);
// Drops loops with a single step, and merges neighbouring loops that are equivalent to one loop.
Loops collapse(const Loops& loops);

// Returns a nest of only the index space, in row-major order. A check of every index uses this nest.
Nest lower_checks(const OperandLayout& entries, const Components& components);
// Returns loops that assign numbers to the addressed elements of a space. The loops and the numbers are in
// row-major order. `space` is contiguous with items of 1 byte.
Nest lower_numbers(const Addressing& addressing, int64_t axis, const OperandLayout& space,
                   const OperandLayout& indices);
// Returns the nest of target[...] = source[...], the copy that begins a scatter that is not in place. It is a
// gather without components. Its outermost loop is the line, so that the copy can be split.
Nest lower_copy(const OperandLayout& source, const OperandLayout& target, int64_t item);
// Lowers a call that moves at least one element. Sets `nest`, sets `fold_nest` for a scatter, and sets how
// the nests may be split.
void lower_call(const Loops& loops, const Components& components, Program& program);

}  // namespace gatherum
