// Checks the shapes of a call, and lowers it to a program. plan_call.hpp and Python's planner
// (gatherum/_plans/programs.py) share these rules.
#pragma once

#include <vector>

#include "model/lowering.hpp"

namespace gatherum {

// Errors in a call, in the order of the checks.
enum class Fault : uint8_t {
  none,
  too_few_dimensions,  // of the operand that the attribute indexes
  out_of_range,        // the attribute
  not_an_index_dtype,
  other_dtype,          // the updates or `out`: their dtype is not the data's
  not_reducible,        // the data: the reduction is not defined for its dtype
  too_many_dimensions,  // of an operand or of the result
  operand_too_big,
  other_rank,         // the indices: differs from the data's rank
  larger_than_data,   // the indices, on a dimension
  other_batch_shape,  // the indices
  tuple_too_long,     // the last dimension of the indices
  result_too_big,
  other_shape,  // the updates or `out`
  overlaps_itself,
};

constexpr const char* name_of(Fault fault) {
  return name_among(
      {"none", "too_few_dimensions", "out_of_range", "not_an_index_dtype", "other_dtype", "not_reducible",
       "too_many_dimensions", "operand_too_big", "other_rank", "larger_than_data", "other_batch_shape",
       "tuple_too_long", "result_too_big", "other_shape", "overlaps_itself"},
      fault);
}
static_assert(kEnumerators<Fault> == static_cast<int>(Fault::overlaps_itself) + 1);

// The operand of a fault. `result` is the output of a gather.
enum class Operand : uint8_t { data, indices, updates, out, result };

constexpr const char* name_of(Operand operand) {
  return name_among({"data", "indices", "updates", "out", "result"}, operand);
}

struct ShapedCall {
  Addressing addressing;
  int64_t axis;  // `axis` or `batch_dims`, as the caller passed it
  OperandLayout data, indices;
  const OperandLayout* updates = nullptr;  // scatters
  const OperandLayout* out = nullptr;      // null: contiguous
};

// An error in a call.
struct Finding {
  Fault fault = Fault::none;
  Operand operand = Operand::data;
  int64_t dimension = 0;             // where the sizes differ: larger_than_data
  int64_t expected = 0, found = 0;   // the limit and the actual number
  std::vector<int64_t> wanted = {};  // the expected shape
  int64_t least = 0;                 // the smallest valid number: out_of_range, whose limit is exclusive
  explicit operator bool() const { return fault != Fault::none; }
};

// Finds the first size conflict between data and indices. The fault is `none` if there is no conflict.
// `fits(d, equal)` returns true if, on a shared dimension d, the indices have the data's size (if `equal` is
// true) or at most that size (if it is false). It is a function because sizes in a traced graph may be
// symbols. `axis` counts from the front.
template <class Fits>
Finding find_misfit(const Addressing& addressing, int64_t rank, int64_t indices_rank, int64_t components,
                    int64_t axis, const Fits& fits) {
  const auto finding_of = [](Fault fault, int64_t dimension, int64_t expected, int64_t found) {
    return Finding{.fault = fault,
                   .operand = Operand::indices,
                   .dimension = dimension,
                   .expected = expected,
                   .found = found};
  };
  const int64_t entries_rank = indices_rank - (addressing.takes_tuples ? 1 : 0);
  if (addressing.shares_back && indices_rank != rank)
    return finding_of(Fault::other_rank, 0, rank, indices_rank);
  if (addressing.shares_front && (rank < axis || entries_rank < axis))
    return finding_of(Fault::other_batch_shape, 0, axis, 0);
  const int64_t shared_front = addressing.shares_front ? axis : 0;
  for (int64_t d = 0; d < shared_front; ++d)
    if (!fits(d, !addressing.shares_back))
      return finding_of(addressing.shares_back ? Fault::larger_than_data : Fault::other_batch_shape, d, axis,
                        0);
  for (int64_t d = axis + 1; d < rank && addressing.shares_back; ++d)
    if (!fits(d, false)) return finding_of(Fault::larger_than_data, d, 0, 0);
  if (addressing.takes_tuples && components > rank - axis)
    return finding_of(Fault::tuple_too_long, 0, rank - axis, components);
  return {};
}

// Converts the attribute so that it counts from the front, if the operand has dimensions that the attribute
// can name.
Finding resolve_attribute(const ShapedCall& call, int64_t& axis);
// Returns the number of dimensions that `axis` or `batch_dims` may count.
int64_t rank_of_attribute(const ShapedCall& call);

inline constexpr int64_t kFewElements = 1'000'000;
// Returns true if two elements share a byte, or if a search of bounded length cannot rule this out. If the
// array has at most `few` elements, their offsets are compared; otherwise, overlaps are searched for with the
// strides.
bool overlaps_itself(const OperandLayout& layout, int64_t item, int64_t few = kFewElements);

// Checks the shapes of a call and lowers it. The caller has set the fields that do not depend on shapes:
// scatter, mode, negative, index, item and fold_rule. `moved` is the shape of a gather's result or of a
// scatter's updates.
Finding lower_checked(const ShapedCall& call, Program& program, std::vector<int64_t>& moved);

}  // namespace gatherum
