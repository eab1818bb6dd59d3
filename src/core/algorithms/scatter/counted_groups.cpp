// Kernel: kernels/scatter_grouped.hpp. Orders updates by destination with a counting sort; groups.cpp runs
// it.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {

bool applies_counted_groups(const Program& p, int, std::string* why) {
  if (!counts_out(p) || !applies_groups(p, why)) return false;
  append(why, "counted out to ", p.destinations, " destinations");
  return true;
}

}  // namespace gatherum
