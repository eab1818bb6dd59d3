// The gradients of a scatter whose fold depends on the values: products, maxima and minima.
#pragma once

#include "engine.hpp"

namespace gatherum {

// Writes the wanted gradients of a functional scatter whose output and updates are contiguous. `bytes`: of
// its updates. If an index is invalid, or poll ends the work, the gradients mean nothing. The bits are the
// same on any number of threads, because one thread handles a destination and all its updates.
Outcome differentiate(const Program& program, const char* index, const Gradients& at, int64_t bytes,
                      const Poll& poll);

}  // namespace gatherum
