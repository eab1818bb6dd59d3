// A scatter of maxima or minima with the position of each.
#pragma once

#include "engine.hpp"

namespace gatherum {

// Whether a program has positions: it is a scatter of extremes.
bool has_positions(const Program& program);

// Runs such a program from `source` into a contiguous result, where one is wanted, and writes the number of
// the first update that is the extreme beside each item. After an error what was written means nothing. The
// bits are the same on any number of threads, because one thread handles a destination and all its updates.
Outcome find_extremes(const Program& program, const char* index, const char* source, const Extremes& at,
                      const Poll& poll);

}  // namespace gatherum
