// A call of an operator without its data: checked, and lowered to a program. The rules of shapes are here,
// for the C interface and for Python (gatherum/_plans/programs.py), which names what is wrong in its own
// words.
#pragma once

#include <string>
#include <vector>

#include "model/lowering.hpp"

namespace gatherum {

// What can be wrong with the shapes of a call, in the order of the checks.
enum class Fault : uint8_t {
  none,
  too_few_dimensions,   // of what the attribute counts
  out_of_range,         // the attribute
  too_many_dimensions,  // of an operand or of the result
  operand_too_big,
  other_rank,         // the indices: not that of the data
  larger_than_data,   // the indices, on a dimension
  other_batch_shape,  // the indices
  tuple_too_long,     // the last dimension of the indices
  result_too_big,
  other_shape,  // the updates or `out`
  overlaps_itself,
};

constexpr const char* name_of(Fault fault) {
  return name_among({"none", "too_few_dimensions", "out_of_range", "too_many_dimensions", "operand_too_big",
                     "other_rank", "larger_than_data", "other_batch_shape", "tuple_too_long",
                     "result_too_big", "other_shape", "overlaps_itself"},
                    fault);
}
static_assert(kCount<Fault> == static_cast<int>(Fault::overlaps_itself) + 1);

// The operand of a fault: `result` is what a gather gives.
enum class Operand : uint8_t { data, indices, updates, out, result };

constexpr const char* name_of(Operand operand) {
  return name_among({"data", "indices", "updates", "out", "result"}, operand);
}

struct ShapedCall {
  Addressing addressing;
  int64_t axis;  // `axis` or `batch_dims`, as the caller gave it
  OperandLayout data, indices;
  const OperandLayout* updates = nullptr;  // scatters
  const OperandLayout* out = nullptr;      // null: contiguous
  const char* dtype = "";                  // of the data, for messages
};

// What is wrong with a call.
struct Finding {
  Fault fault = Fault::none;
  Operand operand = Operand::data;
  int64_t dimension = 0;            // larger_than_data
  int64_t expected = 0, found = 0;  // numbers: the limit, and what was given
  std::vector<int64_t> wanted;      // the shape that was expected
  explicit operator bool() const { return fault != Fault::none; }
};

// What the sizes of data and indices break, none where they fit. `fits(d, equal)` says whether the indices
// have the data's size on a shared dimension d, or at most that: sizes of a graph that is traced may be
// symbols. `axis` counts from the front.
template <class Fits>
Finding find_misfit(const Addressing& addressing, int64_t rank, int64_t indices_rank, int64_t components,
                    int64_t axis, const Fits& fits) {
  const auto wrong = [](Fault fault, int64_t dimension, int64_t expected, int64_t found) {
    return Finding{fault, Operand::indices, dimension, expected, found, {}};
  };
  const int64_t entries_rank = indices_rank - (addressing.tuples ? 1 : 0);
  if (addressing.shares_back && indices_rank != rank) return wrong(Fault::other_rank, 0, rank, indices_rank);
  if (addressing.shares_front && (rank < axis || entries_rank < axis))
    return wrong(Fault::other_batch_shape, 0, axis, 0);
  const int64_t shared_front = addressing.shares_front ? axis : 0;
  for (int64_t d = 0; d < shared_front; ++d)
    if (!fits(d, !addressing.shares_back))
      return wrong(addressing.shares_back ? Fault::larger_than_data : Fault::other_batch_shape, d, axis, 0);
  for (int64_t d = axis + 1; d < rank && addressing.shares_back; ++d)
    if (!fits(d, false)) return wrong(Fault::larger_than_data, d, 0, 0);
  if (addressing.tuples && components > rank - axis)
    return wrong(Fault::tuple_too_long, 0, rank - axis, components);
  return {};
}

// Counts the attribute from the front, where there are dimensions that it can be one of.
Finding resolve_attribute(const ShapedCall& call, int64_t& axis);

inline constexpr int64_t kFewElements = 1'000'000;
// Whether two elements share a byte. Exact where bounded work decides; when in doubt, true. Up to `few`
// elements are compared each with its neighbours; of more, the strides are searched.
bool overlaps_itself(const OperandLayout& layout, int64_t item, int64_t few = kFewElements);

// Checks the shapes of a call and lowers it. The fields of the program that say no shape are there already:
// scatter, mode, negative, index, item and combine. `moved` is the shape of a gather's result, of a scatter's
// updates.
Finding lower_checked(const ShapedCall& call, Program& program, std::vector<int64_t>& moved);

// A shape as Python writes it.
std::string written_shape(const std::vector<int64_t>& shape);
// One line that says what is wrong, without the operator's name in front.
std::string message_of(const Finding& finding, const ShapedCall& call, const char* attribute);

}  // namespace gatherum
