// Executes a program: a lowered call together with everything that was decided about it beforehand.
// No Python here.
#pragma once

#include "kernels.hpp"
#include "pool.hpp"

namespace gatherum {

// How a scatter runs; chosen by the plan (gatherum/algorithms.py).
enum class Algorithm : uint8_t { units, grouped };

struct Program {
  bool scatter = false;
  Algorithm algorithm = Algorithm::units;
  Combine combine;
  Nest nest;                 // the call
  int units = 0;             // leading loops whose points are independent units
  int64_t line_chunk = 0;    // tuples of the line in one unit at the most; 0: as many as it has
  bool split_line = false;   // whether the line's points are independent too
  Nest ids;                  // grouped scatters: the nest that numbers destinations
  int64_t destinations = 0;  // of one unit
  Nest copy;                 // functional scatters: data -> output, without components
  Nest checks;               // the index space alone, in row-major order
  bool moves = true;         // false: no point at all, only indices to check
  bool copies = true;        // false: a scatter whose data is empty
  int unaddressable = -1;    // a component of size 0 that clip or wrap cannot resolve
  int64_t tuples = 0;        // index tuples
  int64_t bytes = 0;         // moved by the nest, for the choice of threads
};

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
// for gathers and for scatters in place. poll is asked only while nothing has been written in place.
Outcome execute(const Program& program, const Operands& at, const char* source, const Poll& poll);

// Whether the call is long enough to let other Python threads run meanwhile.
bool is_long(const Program& program);

// Chooses the instruction-set level: "" for the best that the processor has. False: unknown, or the
// processor lacks it.
bool choose_level(const char* name);
const Kernels& chosen_kernels();

}  // namespace gatherum
