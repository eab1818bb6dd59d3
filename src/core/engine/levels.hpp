// Chooses the instruction-set level, whose kernels all programs use.
#pragma once

#include "kernels/table.hpp"

namespace gatherum {

// The i-th instruction-set level that both this build and the processor support, best level first. Null if i
// is too large.
const char* available_level(int i);
// Selects a level by name, "" for the best. Returns false if it is not available.
bool choose_level(const char* name);
const Kernels& chosen_kernels();

}  // namespace gatherum
