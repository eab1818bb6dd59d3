// Gathers of quantized rows, on all threads.
#pragma once

#include "engine/outcome.hpp"
#include "kernels/calls.hpp"

namespace gatherum {

// The sizes in bytes of the operands of a gather of quantized rows.
struct QuantizedBytes {
  int64_t data, scales, zeros, out;
};

// Returns true if the combination of types is supported and no size is negative.
bool has_meaning(const QuantizedGather& call);
QuantizedBytes bytes_of(const QuantizedGather& call);

// Returns false if poll interrupted it.
bool run_quantized(const QuantizedGather& call, const Poll& poll);

}  // namespace gatherum
