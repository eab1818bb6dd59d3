// Executes a program: a lowered call together with everything that was decided about it beforehand.
// No Python here.
#pragma once

#include <string>
#include <vector>

#include "kernels.hpp"

namespace gatherum {

// How the work is done; chosen by the plan (gatherum/algorithms.py).
enum class Algorithm : uint8_t { units, stretches, packed, slabs, partition, grouped };

struct Program {
  bool scatter = false;
  Algorithm algorithm = Algorithm::units;
  Combine combine;
  Nest nest;                 // the call
  int units = 0;             // leading loops whose points are independent units
  int64_t line_chunk = 0;    // tuples of the line in one unit at the most; 0: as many as it has
  bool split_line = false;   // whether the line's points are independent too
  Nest ids;                  // the nest that numbers the destinations of a unit
  int64_t destinations = 0;  // of one unit
  int64_t step = 0;          // bytes from one destination to the next, where that is even
  bool tiles = false;        // the destinations of all units are all of the data, laid out as the source
  int64_t components_low = 0,
          components_reach = 0;  // the offsets that components can make: [low, low + reach)
  Nest copy;                     // functional scatters: data -> output, without components
  Nest checks;                   // the index space alone, in row-major order
  bool raises = true;            // an invalid index is an error
  bool moves = true;             // false: no point at all, only indices to check
  bool copies = true;            // false: a scatter whose data is empty
  int unaddressable = -1;        // a component of size 0 that clip or wrap cannot resolve
  int64_t tuples = 0;            // index tuples
  int64_t bytes = 0;             // moved by the nest, for the choice of threads
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
// for gathers and for scatters in place. `fresh`: nobody sees the output if the call fails. poll is asked
// only while nothing has been written in place.
Outcome execute(const Program& program, const Operands& at, const char* source, bool fresh, const Poll& poll);

// Whether the call is long enough to let other Python threads run meanwhile.
bool is_long(const Program& program);

// Instruction-set levels that both this build and the processor have, best first.
std::vector<std::string> available_levels();
// Chooses one: "" for the best. False: there is no such level.
bool choose_level(const std::string& name);
const Kernels& chosen_kernels();

}  // namespace gatherum
