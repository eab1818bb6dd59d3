// Gathers of quantized rows, on all threads.
#pragma once

#include "engine/engine.hpp"
#include "kernels/table.hpp"

namespace gatherum {

// How many bytes the operands of a gather of quantized rows have.
struct QuantizedBytes {
  int64_t data, scales, zeros, out;
};

// Whether the types go together and no size is negative.
bool has_meaning(const QuantizedGather& call);
QuantizedBytes bytes_of(const QuantizedGather& call);

// False: cut short by poll.
bool run_quantized(const QuantizedGather& call, const Poll& poll);

}  // namespace gatherum
