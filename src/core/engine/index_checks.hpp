// Finds invalid indices, and the numbers of the elements that the indices address.
#pragma once

#include "engine/outcome.hpp"
#include "model/program.hpp"

namespace gatherum {

// Finds the first invalid index in row-major order, in any mode. In the modes clip and wrap, only indices
// into a dimension of size 0 are invalid.
Outcome find_invalid(const Program& program, const char* index, const Poll& poll);

// For each tuple, writes the number of the element that it addresses, or -1 if the tuple is invalid. Returns
// the number of invalid tuples. The component strides of the program's nest define the numbers. The numbers
// are written in the order of its loops.
int64_t number_tuples(const Program& program, const char* index, int64_t* numbers);

// Finds the first invalid index in row-major order, on all threads.
Outcome check_indices(const Program& p, const char* index, const Poll& poll);
// Finds the first index into a dimension of size 0, which clip and wrap cannot make valid.
Outcome check_addressable(const Program& p, const char* index);

}  // namespace gatherum
