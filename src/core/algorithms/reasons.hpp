// Writes the reasons for the choice of an algorithm, which `explain` prints.
#pragma once

#include <cstdint>
#include <string>

namespace gatherum {

// Appends a text with numbers to a reason, unless the reason is null. Digits are grouped in threes.
void append(std::string& to, const char* text);
void append(std::string& to, int64_t number);
template <class... Parts>
void append(std::string* why, const Parts&... parts) {
  if (why != nullptr) (append(*why, parts), ...);
}

}  // namespace gatherum
