// Executes a program: a lowered call together with every decision made beforehand. This part does not use
// Python.
#pragma once

#include "include/gatherum.h"
#include "model/program.hpp"

namespace gatherum {

enum class Status : uint8_t { done, invalid_index, interrupted, no_memory };

struct Outcome {
  Status status = Status::done;
  Invalid invalid;
};

using Poll = gatherum_poll;

// Runs the program. `source` is the data of a functional scatter, which is copied to at.data first; null for
// gathers and for scatters in place. `fresh`: the output is discarded if the call fails. poll is only called
// while nothing has been written in place.
Outcome execute(const Program& program, const Operands& at, const char* source, bool fresh, const Poll& poll);

// The first invalid index in row-major order, in every mode. With clip and wrap every index is valid, unless
// a dimension has size 0.
Outcome find_invalid(const Program& program, const char* index, const Poll& poll);

// Writes the number of the element that each tuple addresses, -1 for an invalid tuple, and returns the number
// of invalid tuples. The component strides of the program's nest define the numbers. They are written in the
// order of its loops.
int64_t number_tuples(const Program& program, const char* index, int64_t* numbers);

// Writes the requested gradients of a functional scatter whose output and updates are contiguous. `bytes` is
// the size of its updates. If an index is invalid, or poll interrupts the work, the gradients are undefined.
// They are bit-for-bit equal on any number of threads, because one thread handles a destination and all its
// updates.
Outcome differentiate(const Program& program, const char* index, const Gradients& at, int64_t bytes,
                      const Poll& poll);

// Returns true if a program has positions: it is a scatter of maxima or minima.
bool has_positions(const Program& program);
// Runs such a program from `source` into a contiguous result, if requested, and writes for each item the
// number of the first update that is the extreme. The remarks on errors and threads at `differentiate` apply.
Outcome find_extremes(const Program& program, const char* index, const char* source, const Extremes& at,
                      const Poll& poll);

// Returns true if the call is long enough to let other Python threads run meanwhile.
bool is_long(const Program& program);

// The i-th instruction-set level that both this build and the processor support, best first; null after the
// last.
const char* available_level(int i);
// Selects a level by name, "" for the best. Returns false if it is not available.
bool choose_level(const char* name);
const Kernels& chosen_kernels();

}  // namespace gatherum
