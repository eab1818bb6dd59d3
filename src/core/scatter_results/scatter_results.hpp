// Results of scatters other than their output: gradients of products and extremes, positions of extremes
// (argmax and argmin), and squared distances from means.
#pragma once

#include "engine/outcome.hpp"
#include "kernels/calls.hpp"
#include "model/program.hpp"

namespace gatherum {

// Writes the requested gradients of a scatter that is not in place and whose output and updates are
// contiguous. `bytes` is the size of the updates. If an index is invalid, or poll interrupts the work, the
// gradients are undefined. The gradients have the same bits on any number of threads, because one thread
// handles a destination and all its updates.
Outcome differentiate(const Program& program, const char* index, const Gradients& gradients, int64_t bytes,
                      const Poll& poll);

// Returns true if a program is a scatter of maxima or minima, for which argmax or argmin can be computed.
bool has_positions(const Program& program);
// Returns true if the positions can also be computed without the updates that are NaN: of floats, except few
// single items of many updates.
bool has_positions_of_numbers(const Program& program);
// Writes the argmax or argmin of each item: the number of the first update that equals the maximum or
// minimum. Also writes the result itself, contiguous, if it is requested. `source` is the data. If the
// program's fold skips NaN, the result must not be requested. Errors and
// threads are as in `differentiate`.
Outcome find_extremes(const Program& program, const char* index, const char* source, const Extremes& extremes,
                      const Poll& poll);

// Returns true if a program finds spreads: it is a scatter of exact means of floats, without the old values.
// Either it moves rows, or it moves single floats and the accumulators for the whole output take at most 16
// bytes per update.
bool finds_spreads(const Program& program);
// For such a program, writes the sums of squared distances from the means, and the numbers of updates. If
// `skips_nan`, updates that are NaN are skipped. The remarks on errors and threads at `differentiate` also
// apply here.
Outcome find_spreads(const Program& program, const char* index, const char* updates, bool skips_nan,
                     const Spreads& to, const Poll& poll);

}  // namespace gatherum
