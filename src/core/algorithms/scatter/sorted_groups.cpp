// Kernel: kernels/scatter_grouped.hpp. Sorts updates by destination; groups.cpp runs it.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {

bool applies_sorted_groups(const Program& p, int, std::string* why) {
  if (!applies_groups(p, why)) return false;
  append(why, "by sorting them");
  return true;
}

}  // namespace gatherum
