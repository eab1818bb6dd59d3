// Folds in batches, from Python: the class `Fold` and the function `accumulate`.
#pragma once

#include "arrays.hpp"

namespace gatherum {

void bind_folds(nb::module_& m);

}  // namespace gatherum
