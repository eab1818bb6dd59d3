// Copies arrays, and fills them with one item.
#pragma once

#include "engine/outcome.hpp"
#include "model/nest.hpp"

namespace gatherum {

// Runs a nest without index components: copies the block at every point from `source` to `to`. A scatter that
// is not in place begins with this copy.
bool run_copy(const Nest& nest, const char* source, char* to, const Poll& poll);
// Fills an array with one number. Returns false if poll interrupted it.
bool fill(int64_t* to, int64_t count, const int64_t& number, const Poll& poll);

}  // namespace gatherum
