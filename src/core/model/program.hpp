// A program: one lowered call to an operator, without its data. A program contains no pointers, so it can be
// compared, hashed, and serialized for another process or machine. each_field lists its fields.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "include/gatherum.h"
#include "model/nest.hpp"

namespace gatherum {

// The version changes whenever the fields or their meaning change. Reading the bytes of a different version
// raises an error.
inline constexpr int64_t kProgramVersion = 1;

// If a call moves more bytes than this, which takes a few us, it releases the interpreter's lock.
inline constexpr int64_t kLongBytes = int64_t{64} << 10;

struct Shape {
  int rank = 0;
  int64_t extent[kMaxLoops] = {};

  int64_t items() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n = limited_product(n, extent[i]);
    return n;
  }
};

// The number of bytes that n strides span, limited to kSizeLimit, because a forged program may have any
// strides.
inline int64_t distance(int64_t n, int64_t stride) {
  return std::min(limited_product(n, stride == INT64_MIN ? kSizeLimit : std::abs(stride)), kSizeLimit);
}

// Returns true if n updates, edges or destinations can be numbered in 32 bits. The number with all bits set
// means none, so counts of up to n also fit.
constexpr bool fits_32_bits(int64_t n) { return n < int64_t{0xFFFFFFFF}; }

// The bytes [low, high) that loops and components address, relative to the first element.
struct Reach {
  int64_t low = 0, high = 0;

  bool is_empty() const { return low == high; }
  void add(int64_t extent, int64_t stride) {
    if (extent < 1) return;
    const bool back = stride < 0;
    int64_t& end = back ? low : high;
    const int64_t sum = distance(extent - 1, stride) + std::abs(end);
    end = back ? -std::min(sum, kSizeLimit) : std::min(sum, kSizeLimit);
  }
};

struct Program {
  bool scatter = false;
  Mode mode = Mode::raise;  // drop is also the mode "fill", which has a fill item
  bool negative = true;     // whether negative indices count from the end
  IndexType index;
  int64_t item = 1;    // bytes of one element
  FoldRule fold_rule;  // scatters
  // The call. Points of the leading `unit_loops` loops are independent of each other. If `split_line`, the
  // points of the line are also independent; at most `line_chunk` points of the line (0: any number) then
  // form one unit. A nest whose block is 0 moves nothing.
  Nest nest;
  int unit_loops = 0;
  bool split_line = false;
  int64_t line_chunk = 0;
  // The nest of a scatter in which each unit contains all updates of its destinations: the line loop has data
  // stride 0. The first `fold_unit_loops` loops enumerate the units.
  Nest fold_nest;
  int fold_unit_loops = 0;
  // The destinations of all units together are the whole data, laid out as the source.
  bool covers_data = false;
  Nest checks;  // only the index space, in row-major order; without components no indices are checked
  Nest copy;    // functional scatters: data -> output, without components
  Shape result;

  // complete() computes the following fields from the fields above.
  bool invalid_is_error = true;  // an invalid index is an error
  bool has_points = false;       // false: the call has no points, only indices to check
  bool has_copy = false;         // false: nothing to copy first
  int unaddressable = -1;        // a component of size 0 that clip or wrap cannot resolve
  int64_t tuples = 0;            // number of index tuples
  int64_t bytes = 0;             // bytes moved by the nest, for the choice of threads
  int64_t destinations = 0;      // destinations of one unit
  int64_t step = 0;              // bytes from one destination to the next, if that is constant
  int64_t components_low = 0, components_reach = 0;  // offsets of components: [low, low + reach)
  struct {
    Reach data, indices, updates, out;
  } reaches;              // of the operands; `data` is the source of a functional scatter
  int small_choice = -1;  // the algorithm of a call too small for several threads; -1: not small
};

// Calls `visit(name, field)` for every field that identifies a program. Equality, bytes and the Python
// binding share this one declaration.
template <class P, class Visit>
void each_field(P& p, Visit&& visit) {
  visit("scatter", p.scatter);
  visit("mode", p.mode);
  visit("negative", p.negative);
  visit("index_width", p.index.width);
  visit("index_signed", p.index.is_signed);
  visit("index_swapped", p.index.swapped);
  visit("item", p.item);
  visit("reduction", p.fold_rule.reduction);
  visit("value", p.fold_rule.value);
  visit("include_self", p.fold_rule.include_self);
  visit("nest", p.nest);
  visit("unit_loops", p.unit_loops);
  visit("split_line", p.split_line);
  visit("line_chunk", p.line_chunk);
  visit("fold_nest", p.fold_nest);
  visit("fold_unit_loops", p.fold_unit_loops);
  visit("covers_data", p.covers_data);
  visit("checks", p.checks);
  visit("copy", p.copy);
  visit("shape", p.result);
}

// Returns the name of the general kernel for a completed program's nest, which the algorithm `direct` runs.
const char* kernel_name(const Program& program);

// Checks the fields and computes the derived ones. Returns an error message, or null.
const char* complete(Program& program);

std::vector<uint8_t> to_bytes(const Program& program);
// Reads and completes a program. Returns an error message about the bytes, or null if there is no error.
const char* from_bytes(const uint8_t* bytes, size_t size, Program& program);

// Checks that every byte that the program can address is inside its operands, for any index values. Returns
// the name of the first operand that is too small, or null if there is none. For a scatter, `data` is the
// output, `moved` is the updates, and `source` is the data.
const char* find_too_small(const Program& program, const gatherum_buffer& data,
                           const gatherum_buffer& indices, const gatherum_buffer& moved,
                           const gatherum_buffer& source);

// Returns the same nest, with component strides that compute the destination numbers within a unit, from 0.
Nest number_destinations(const Nest& nest);

// The number of points in the first `loops` loops of a nest.
inline int64_t points(const Nest& nest, int loops) {
  int64_t n = 1;
  for (int i = 0; i < loops; ++i) n = limited_product(n, nest.loops[i].extent);
  return n;
}

}  // namespace gatherum
