// Runs programs. A program is a lowered call, with all decisions that do not depend on the data. Nothing here
// uses Python.
#pragma once

#include "include/gatherum.h"
#include "kernels/table.hpp"
#include "model/program.hpp"

namespace gatherum {

enum class Status : uint8_t { done, invalid_index, interrupted, no_memory };

struct Outcome {
  Status status = Status::done;
  Invalid invalid;
};

using Poll = gatherum_poll;

// Runs the program. `source` is the data of a scatter that is not in place; it is copied to operands.data
// first. For gathers and scatters in place, `source` is null. `fresh` is true if the output is discarded
// after an error. poll is only called while nothing has been written in place.
Outcome execute(const Program& program, const Operands& operands, const char* source, bool fresh,
                const Poll& poll);

// Returns true if scatters of rows have kernels that skip NaN: folds, and copies of the last update.
constexpr bool skips_nan_in_rows(const Combine& combine) {
  return is_real_float(combine.value) && (combine.reduction == Reduction::none || !combine.include_self);
}
// Returns true if execute_skipping_nan supports a program.
bool skips_nan(const Program& program);
// Like `execute`, for a scatter that skips updates that are NaN. A destination without other updates keeps
// its old value.
Outcome execute_skipping_nan(const Program& program, const Operands& operands, const char* source, bool fresh,
                             const Poll& poll);

// Finds the first invalid index in row-major order, in any mode. In the modes clip and wrap, only indices
// into a dimension of size 0 are invalid.
Outcome find_invalid(const Program& program, const char* index, const Poll& poll);

// For each tuple, writes the number of the element that it addresses, or -1 if the tuple is invalid. Returns
// the number of invalid tuples. The component strides of the program's nest define the numbers. The numbers
// are written in the order of its loops.
int64_t number_tuples(const Program& program, const char* index, int64_t* numbers);

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
// It moves rows, or it moves single floats and its accumulators for all items of the output take at most 16
// bytes per update.
bool finds_spreads(const Program& program);
// For such a program, writes the sums of squared distances from the means, and the numbers of updates. If
// `skips_nan`, updates that are NaN are skipped. The remarks on errors and threads at `differentiate` also
// apply here.
Outcome find_spreads(const Program& program, const char* index, const char* updates, bool skips_nan,
                     const Spreads& to, const Poll& poll);

// Returns true if the call is long enough that other Python threads should run during the call.
bool is_long(const Program& program);

// The i-th instruction-set level that both this build and the processor support, best level first. Null if i
// is too large.
const char* available_level(int i);
// Selects a level by name, "" for the best. Returns false if it is not available.
bool choose_level(const char* name);
const Kernels& chosen_kernels();

}  // namespace gatherum
