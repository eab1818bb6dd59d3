// The gradients of a scatter whose fold depends on the values: products, maxima and minima.
#pragma once

#include "engine.hpp"

namespace gatherum {

// Writes the gradients that are wanted, of the program of a functional scatter whose output is contiguous, as
// are its updates. `bytes`: of its updates. Where an index is invalid, or poll ends it, what they hold means
// nothing. The same bits on any number of threads: a destination and its updates are one thread's.
Outcome differentiate(const Program& program, const char* index, const Gradients& at, int64_t bytes,
                      const Poll& poll);

}  // namespace gatherum
