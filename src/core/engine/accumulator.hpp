// A fold in batches, without Python: accumulators are initialized from data, accept any number of batches,
// and are finished any number of times.
#pragma once

#include "engine/engine.hpp"

namespace gatherum {

// The type of a fold: how it combines, and the bytes of an element of the data.
struct FoldType {
  Combine combine;
  int64_t item = 0;

  // Returns true if the order of the updates does not matter. The accumulators then hold only the updates:
  // they need no initialization, `finish` needs the data, and two folds can be merged.
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

// Folds a batch: the program of a scatter without `out`. If an index is invalid, or poll interrupts the call,
// nothing has been folded. poll is only called before the first fold.
Outcome accumulate(const Program& program, const Accumulators& to, const char* index, const char* updates,
                   const Poll& poll);

}  // namespace gatherum
