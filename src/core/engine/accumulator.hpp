// Accumulators of a scatter in batches, without Python. They are initialized from the data and accept any
// number of batches. The result can be computed any number of times, even between batches.
#pragma once

#include "engine/outcome.hpp"
#include "kernels/calls.hpp"
#include "model/program.hpp"

namespace gatherum {

// The reduction of the accumulators, and the size of a data element in bytes.
struct FoldType {
  FoldRule fold_rule;
  int64_t item = 0;

  // Returns true if the order of the updates does not matter. The accumulators then contain only the updates.
  // They need no initialization, `finish` needs the data, and two sets of accumulators can be merged.
  bool any_order() const { return is_any_order(fold_rule.value, fold_rule.reduction); }
  int64_t sum_bytes() const {
    return fold_rule.reduction == Reduction::none ? item
                                                  : gatherum::sum_bytes(fold_rule.value, fold_rule.reduction);
  }
};

// All arrays are in C order.
void begin_fold(const FoldType& type, const char* data, char* sums, int64_t n);
void finish_fold(const FoldType& type, const FinishCall& arrays);
void merge_folds(const FoldType& type, const MergeCall& arrays);

// Applies a batch, given as the program of a scatter without `out`. If an index is invalid, or poll
// interrupts the call, no update has been applied. poll is only called before the first update is applied.
Outcome accumulate(const Program& program, const Accumulators& to, const char* index, const char* updates,
                   const Poll& poll);

}  // namespace gatherum
