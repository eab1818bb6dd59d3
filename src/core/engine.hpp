// Executes a program: a lowered call together with everything that was decided about it beforehand.
// No Python here.
#pragma once

#include "program.hpp"

namespace gatherum {

enum class Status : uint8_t { done, invalid_index, interrupted, no_memory };

struct Outcome {
  Status status = Status::done;
  Invalid invalid;
};

struct Poll {
  bool (*ask)(void*) = nullptr;
  void* context = nullptr;
};

// Runs the program. `source` is a functional scatter's data, which is copied to at.data first; null
// for gathers and for scatters in place. `fresh`: nobody sees the output if the call fails. poll is asked
// only while nothing has been written in place.
Outcome execute(const Program& program, const Operands& at, const char* source, bool fresh, const Poll& poll);

// Whether the call is long enough to let other Python threads run meanwhile.
bool is_long(const Program& program);

// The i-th instruction-set level that both this build and the processor have, best first; null behind the
// last.
const char* available_level(int i);
// Chooses one by name: "" for the best. False: there is no such level.
bool choose_level(const char* name);
const Kernels& chosen_kernels();

}  // namespace gatherum
