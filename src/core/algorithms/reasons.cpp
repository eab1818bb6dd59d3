#include "algorithms/reasons.hpp"

namespace gatherum {

void append(std::string& to, const char* text) { to += text; }

void append(std::string& to, int64_t number) {
  const std::string digits = std::to_string(number);
  const size_t sign = number < 0 ? 1 : 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) to += ',';
    to += digits[i];
  }
}

}  // namespace gatherum
