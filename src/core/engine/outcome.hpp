// The outcome of a run, and the function that can interrupt it.
#pragma once

#include "include/gatherum.h"
#include "kernels/calls.hpp"

namespace gatherum {

enum class Status : uint8_t { done, invalid_index, interrupted, no_memory };

struct Outcome {
  Status status = Status::done;
  Invalid invalid;
};

using Poll = gatherum_poll;

}  // namespace gatherum
