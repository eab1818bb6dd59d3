// The operands of a remembered call: views of its tensors, and operands that are computed from their values.
#pragma once

#include <functional>

#include "python/torch/index_reads.hpp"
#include "python/torch/override_key.hpp"

namespace gatherum {

// The maximum number of items that are computed here. Elsewhere, the core and torch divide larger numbers of
// items among threads.
inline constexpr int64_t kMostItems = int64_t{1} << 16;

int64_t items_of(const View& view);

// A view of a tensor of the call, or a constant. The address of this object must not change after `find`.
class OperandSource {
 public:
  // Returns false for a tensor that does not start at the first element of a tensor of the call.
  bool find(nb::handle tensor, const OverrideKey& call) { return read(tensor) && find_tensor(call); }
  // Also accepts a constant, which is a tuple of one tensor whose elements are all the same element in
  // memory.
  bool find_or_copy(nb::handle operand, const OverrideKey& call);

  bool is_present() const { return layout_.is_present(); }
  int tensor() const { return tensor_; }
  dlpack::DataType type() const { return type_; }
  const View& layout() const { return layout_; }  // without an address
  View view(const OverrideKey& call) const;

 private:
  bool read(nb::handle tensor);
  bool find_tensor(const OverrideKey& call);

  int tensor_ = -1;
  View layout_;
  dlpack::DataType type_ = {};
  std::vector<npy_intp> extents_;  // the shape and the strides of the view
  char* first_ = nullptr;          // the address when the view was read
  char constant_[kWidestBlock];
};

// An operand in newly allocated memory, in C order.
struct ComputedOperand {
  std::unique_ptr<char[]> memory;
  npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];

  // Allocates the memory for a view whose shape has already been set.
  View allocate(int rank, int dtype, int64_t item);
};

// Returns the tuples of the components of indices, which are views of one shape.
View tuples_of(const std::vector<View>& components, ComputedOperand& tuples);

// How a vector of bounds divides items into segments: by their lengths, by the offsets of all segments and of
// the end, or by the offsets of all segments.
enum class Segments : uint8_t { none, lengths, offsets, starts };
// Writes the number of the segment of each item. Returns false if the segments do not contain exactly these
// items.
bool expand_segments(Segments segments, const View& bounds, npy_intp items, int64_t* numbers);

// Rows or a tensor of float32 or float64 values, which are selected, divided and multiplied.
struct Terms {
  View rows, update_rows, divisors, factors;  // all but the rows may be missing
  double factor = 1;                          // if `factors` is missing
};
// Writes the terms. Returns false if a selected row does not exist.
bool write_terms(const Terms& terms, char* to);

}  // namespace gatherum
