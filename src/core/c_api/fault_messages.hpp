// Words the errors of calls for C.
#pragma once

#include <string>
#include <vector>

#include "model/plan_call.hpp"

namespace gatherum {

// A name in backquotes.
inline std::string quoted(const char* name) { return std::string("`") + name + "`"; }
// A shape in Python's notation.
std::string written_shape(const std::vector<int64_t>& shape);
// A one-line error message, without the operator's name in front.
std::string message_of(const Finding& finding, const CallSpec& call);

}  // namespace gatherum
