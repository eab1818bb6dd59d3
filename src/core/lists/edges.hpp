// Checks of the edges of lists and pointer arrays, and the division of their destinations among threads.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/schedule.hpp"
#include "kernels/calls.hpp"
#include "model/program.hpp"

namespace gatherum {

// Returns true if each index is the number of the element that it selects.
inline bool has_element_numbers(const Program& p) {
  return p.checks.components == 1 && p.checks.component[0].stride == 1 && p.checks.component[0].offset == 0;
}

// Returns true if the targets of all edges ascend.
inline bool are_in_order(const std::vector<EdgeOrder>& orders) {
  bool all = true;
  for (size_t i = 0; i < orders.size(); ++i)
    all &= orders[i].ascends && (i == 0 || orders[i - 1].last <= orders[i].first);
  return all;
}

// Returns the first destination of a share if destinations and edges are divided among `shares` shares.
// Destinations and edges have equal weight. `start(d)` is the position of the first edge of d.
template <class Start>
int64_t first_destination_of(int64_t share, int64_t shares, int64_t edges, int64_t destinations,
                             const Start& start) {
  if (share == shares) return destinations;
  const auto wanted = static_cast<int64_t>(static_cast<double>(edges + destinations) / shares * share);
  int64_t low = 0, high = destinations;
  while (low < high) {
    const int64_t d = low + (high - low) / 2;
    if (start(d) + d < wanted)
      low = d + 1;
    else
      high = d;
  }
  return low;
}

// The number of threads, and the number of shares that the destinations are divided into.
struct Shares {
  int threads;
  int64_t count;
};
inline Shares shares_of(const Nest& rows, int64_t edges, int64_t destinations) {
  const int64_t row = limited_product(points(rows, rows.rank), rows.block);
  const int64_t work = limited_product(edges + destinations, row + kTupleBytes);
  const int threads = threads_for(work);
  const int64_t count = threads > 1 ? kSharesPerThread * threads : work / kLongestTask;
  return {threads, std::clamp<int64_t>(count, 1, 1 << 16)};
}

}  // namespace gatherum
