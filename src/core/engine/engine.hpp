// Executes a program: a lowered call together with everything that was decided about it beforehand.
// No Python here.
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

// Runs the program. `source` is a functional scatter's data, which is copied to at.data first; null
// for gathers and for scatters in place. `fresh`: nobody sees the output if the call fails. poll is asked
// only while nothing has been written in place.
Outcome execute(const Program& program, const Operands& at, const char* source, bool fresh, const Poll& poll);

// The first invalid index in row-major order, in every mode; clip and wrap bring all into the data, unless a
// dimension has size 0.
Outcome find_invalid(const Program& program, const char* index, const Poll& poll);

// Writes the number of what each tuple addresses, -1 where it is invalid, and returns how many are. The
// numbers are those that the component strides of the program's nest make, in the order of its loops.
int64_t number_tuples(const Program& program, const char* index, int64_t* numbers);

// Writes the wanted gradients of a functional scatter whose output and updates are contiguous. `bytes`: of
// its updates. If an index is invalid, or poll ends the work, the gradients mean nothing. The bits are the
// same on any number of threads, because one thread handles a destination and all its updates.
Outcome differentiate(const Program& program, const char* index, const Gradients& at, int64_t bytes,
                      const Poll& poll);

// Whether a program has positions: it is a scatter of extremes.
bool has_positions(const Program& program);
// Runs such a program from `source` into a contiguous result, where one is wanted, and writes the number of
// the first update that is the extreme beside each item. What is said of gradients holds here as well.
Outcome find_extremes(const Program& program, const char* index, const char* source, const Extremes& at,
                      const Poll& poll);

// Whether the call is long enough to let other Python threads run meanwhile.
bool is_long(const Program& program);

// The i-th instruction-set level that both this build and the processor have, best first; null behind the
// last.
const char* available_level(int i);
// Chooses one by name: "" for the best. False: there is no such level.
bool choose_level(const char* name);
const Kernels& chosen_kernels();

}  // namespace gatherum
