// Writes the error messages of the C interface.
#pragma once

#include <string>
#include <vector>

#include "model/plan_call.hpp"

namespace gatherum {

// Returns a name in backquotes.
inline std::string quoted(const char* name) { return std::string("`") + name + "`"; }
// Returns a shape in Python's notation.
std::string written_shape(const std::vector<int64_t>& shape);
// Returns a one-line error message, without the operator's name in front.
std::string message_of(const Finding& finding, const CallSpec& call);

}  // namespace gatherum
