// A fold in batches, without Python: accumulators that are begun from data, take any number of batches, and
// are finished any number of times.
#pragma once

#include "engine/engine.hpp"

namespace gatherum {

// What is folded: how, and the bytes of an element of the data.
struct FoldType {
  Combine combine;
  int64_t item = 0;

  // Whether the order of the updates does not matter. Then the accumulators hold the updates alone: they need
  // no beginning, `finish` needs the data, and two folds can be merged.
  bool any_order() const { return is_any_order(combine.value, combine.reduction); }
  int64_t sum_bytes() const {
    return combine.reduction == Reduction::none ? item
                                                : gatherum::sum_bytes(combine.value, combine.reduction);
  }
};

// All arrays are in C order.
void begin_fold(const FoldType& type, const char* data, char* sums, int64_t n);
void finish_fold(const FoldType& type, const Finish& arrays);
void merge_folds(const FoldType& type, const Merge& arrays);

// Folds a batch: the program of a scatter without `out`. Where an index is invalid, or poll ends it, nothing
// has been folded; poll is asked only before.
Outcome accumulate(const Program& program, const Accumulators& to, const char* index, const char* updates,
                   const Poll& poll);

}  // namespace gatherum
