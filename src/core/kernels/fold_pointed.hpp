// fold_pointed: reduces table rows by a CSR pointer array. Destination d has the edges from starts[d] up to,
// but not including, starts[d + 1].
//
// Processes a few thousand edges at a time: all edges of a portion of the destinations. The indices of these
// edges are checked and written to lists in cache, and the lists are then reduced (fold_lists.hpp). Every
// index is therefore read once, and no list of all edges is needed. Cost: the checks of the indices, 4 bytes
// per edge written and read in cache, and the reduction.
#pragma once

#include <algorithm>

#include "kernels/fold_lists.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Reads the targets of edges [begin, end). If they are valid and ascend, writes the entries above the lowest
// target, up to the highest. Entry d is the number of the first edge whose target is at least d.
inline EdgeOrder make_pointer(const Nest& nest, const char* targets, int64_t begin, int64_t end,
                              int64_t* starts) {
  // This many equal targets are skipped at a time (800k edges to 20k targets: 0.8 ms, one by one 2.0).
  constexpr int skipped = 8;
  const int64_t stride = nest.line_loop().index;
  int64_t first = 0, last = 0;
  alignas(64) int64_t tile[kTile];
  for (int64_t i = begin; i < end; i += kTile) {
    const auto n = static_cast<int>(std::min<int64_t>(kTile, end - i));
    if (stage(nest, targets + i * stride, stride, n, tile)) return {.first = 0, .last = 0, .ascends = false};
    if (i == begin) first = last = tile[0];
    int64_t falls = tile[0] - last;
    for (int j = 1; j < n; ++j) falls |= tile[j] - tile[j - 1];
    if (falls < 0) return {.first = 0, .last = 0, .ascends = false};
    for (int j = 0; j < n; j += skipped) {
      const int stop = std::min(j + skipped, n);
      if (tile[stop - 1] == last) continue;
      for (int k = j; k < stop; ++k)
        while (last < tile[k]) starts[++last] = i + k;
    }
  }
  return {.first = first, .last = last, .ascends = true};
}

// Reads entries [begin, end) of a CSR pointer array. Returns the greatest difference between adjacent
// entries, or -1 if an entry is invalid or less than the previous one.
inline int64_t read_pointer(const Nest& nest, const char* address, int64_t begin, int64_t end,
                            int64_t* starts) {
  const int64_t stride = nest.line_loop().index;
  for (int64_t i = begin; i < end; i += kTile) {
    const auto n = static_cast<int>(std::min<int64_t>(kTile, end - i));
    if (stage(nest, address + i * stride, stride, n, starts + i)) return -1;
  }
  int64_t greatest = 0, least = 0;
  for (int64_t i = begin + 1; i < end; ++i) {
    const int64_t step = starts[i] - starts[i - 1];
    greatest = std::max(greatest, step);
    least = std::min(least, step);
  }
  return least < 0 ? -1 : greatest;
}

// Stages n <= kTile tuples of one component as 32-bit numbers. Returns false if an index is negative or
// invalid, or if the indices are not contiguous in native byte order. The numbers are then undefined.
inline bool stage_numbers(const Nest& nest, const char* address, int64_t stride, int n, uint32_t* numbers) {
  const int64_t width = nest.index.width, size = nest.component[0].size;
  if (nest.index.swapped || stride != width || width < 4 || size > int64_t{1} << 31) return false;
  prefetch_on(nest, address, stride, n);
  // Copied before the check, because another thread may change the indices.
  const auto check = [n, size](const auto* values, const auto& each) {
    auto invalid = values[0];
    const auto last = static_cast<decltype(invalid)>(size - 1);
    for (int i = 0; i < n; ++i) invalid |= values[i] | (last - values[i]), each(i);
    return invalid >> (8 * sizeof invalid - 1) == 0;
  };
  if (width == 4) {
    std::memcpy(numbers, address, static_cast<size_t>(n) * 4);
    compiler_barrier(numbers);
    return check(numbers, [](int) {});
  }
  alignas(64) uint64_t copied[kTile];
  std::memcpy(copied, address, static_cast<size_t>(n) * 8);
  compiler_barrier(copied);
  return check(copied, [&](int i) { numbers[i] = static_cast<uint32_t>(copied[i]); });
}

// The lists of a few destinations, in a worker's scratch.
template <class Number>
class PointedPortion {
 public:
  PointedPortion(const PointedFold& call, char* scratch)
      : call_(call),
        starts_(reinterpret_cast<Number*>(scratch)),
        numbers_(starts_ + kPointedPortion + 1),
        weights_(reinterpret_cast<char*>(numbers_ + call.capacity)) {
    if (call.fold.weights != nullptr) weight_step_ = call.fold.weight_loops->line_loop().moved;
  }

  // Creates the lists of destinations from `first` on, and returns the end of their range.
  int64_t make(int64_t first, int64_t last) {
    const int64_t begin = call_.starts[first];
    int64_t stop = first + 1;
    last = std::min(last, first + kPointedPortion);
    while (stop < last && call_.starts[stop + 1] - begin <= kPointedPortion) ++stop;
    for (int64_t d = first; d <= stop; ++d) starts_[d - first] = static_cast<Number>(call_.starts[d] - begin);
    const int64_t edges = call_.starts[stop] - begin;
    const bool all = stage(begin, edges);
    valid_ &= all;
    fold_ = call_.fold;
    fold_.starts = reinterpret_cast<const char*>(starts_);
    fold_.numbers = reinterpret_cast<const char*>(numbers_);
    fold_.out += first * fold_.out_step;
    if (fold_.weights != nullptr) order_weights(begin, edges, all);
    if (!all) leave_out(stop - first);
    fold_.kept_edges = starts_[stop - first];
    return stop;
  }

  const ListFold& fold() const { return fold_; }
  // True if all indices so far were valid.
  bool valid() const { return valid_; }

 private:
  static constexpr Number kLeftOut = std::numeric_limits<Number>::max();

  bool stage(int64_t begin, int64_t edges) {
    const Nest& nest = *call_.sources;
    const int64_t stride = nest.line_loop().index;
    alignas(64) int64_t offsets[kTile];
    bool valid = true;
    for (int64_t i = 0; i < edges; i += kTile) {
      const auto n = static_cast<int>(std::min<int64_t>(kTile, edges - i));
      const char* address = call_.indices + (begin + i) * stride;
      if constexpr (sizeof(Number) == 4)
        if (stage_numbers(nest, address, stride, n, numbers_ + i)) continue;
      valid &= !gatherum::GATHERUM_LEVEL::stage(nest, address, stride, n, offsets);
      // The lower half of kInvalid could also be a valid number.
      if (valid)
        for (int j = 0; j < n; ++j) numbers_[i + j] = static_cast<Number>(offsets[j]);
      else
        for (int j = 0; j < n; ++j)
          numbers_[i + j] = offsets[j] == kInvalid ? kLeftOut : static_cast<Number>(offsets[j]);
    }
    return valid;
  }

  // Contiguous weights are used in place.
  void order_weights(int64_t begin, int64_t edges, bool all) {
    const int64_t item = fold_.rows->item;
    const char* from = fold_.weights + begin * weight_step_;
    fold_.weights = from;
    if (all && weight_step_ == item) return;
    by_item(item, [&](auto width) {
      constexpr int W = decltype(width)::value;
      for (int64_t i = 0; i < edges; ++i) store_item(weights_ + i * W, load_item<W>(from + i * weight_step_));
    });
    fold_.weights = weights_;
  }

  void leave_out(int64_t destinations) {
    const auto item = static_cast<size_t>(fold_.rows->item);
    Number at = 0, begin = 0;
    for (int64_t d = 0; d < destinations; ++d) {
      const Number end = starts_[d + 1];
      starts_[d] = at;
      for (Number i = begin; i < end; ++i) {
        if (numbers_[i] == kLeftOut) continue;
        numbers_[at] = numbers_[i];
        if (fold_.weights != nullptr) std::memmove(weights_ + at * item, weights_ + i * item, item);
        ++at;
      }
      begin = end;
    }
    starts_[destinations] = at;
  }

  const PointedFold& call_;
  Number* const starts_;
  Number* const numbers_;
  char* const weights_;
  int64_t weight_step_ = 0;
  bool valid_ = true;
  ListFold fold_{};
};

}  // namespace gatherum::GATHERUM_LEVEL
