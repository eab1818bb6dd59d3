// Runs programs. A program is a lowered call, with all decisions that do not depend on the data. Nothing here
// uses Python.
#pragma once

#include "engine/outcome.hpp"
#include "model/program.hpp"

namespace gatherum {

// Runs the program. `source` is the data of a scatter that is not in place; it is copied to operands.data
// first. For gathers and scatters in place, `source` is null. `fresh` is true if the output is discarded
// after an error. poll is only called while nothing has been written in place.
Outcome execute(const Program& program, const Operands& operands, const char* source, bool fresh,
                const Poll& poll);

// Returns true if scatters of rows have kernels that skip NaN: folds, and copies of the last update.
constexpr bool skips_nan_in_rows(const FoldRule& fold_rule) {
  return is_real_float(fold_rule.value) &&
         (fold_rule.reduction == Reduction::none || !fold_rule.include_self);
}
// Returns true if execute_skipping_nan supports a program.
bool skips_nan(const Program& program);
// Like `execute`, for a scatter that skips updates that are NaN. A destination without other updates keeps
// its old value.
Outcome execute_skipping_nan(const Program& program, const Operands& operands, const char* source, bool fresh,
                             const Poll& poll);

}  // namespace gatherum
