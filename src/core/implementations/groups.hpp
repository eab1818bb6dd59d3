// The cut into groups of updates that folds and their gradients share.
#pragma once

#include <functional>

#include "implementations.hpp"

namespace gatherum {

// What is done with a share of the groups of a unit, whose updates are in order in `scratch`.
using ShareOfGroups = std::function<void(const GroupedScatter& groups, int64_t unit, int64_t kept,
                                         int64_t share, int64_t shares, char* scratch)>;
// Puts the updates of each unit in order, and shares their groups among threads. Not valid: an index
// addresses nothing, and its update was left out.
Run run_shares_of_groups(const Program& program, const Call& call, const ShareOfGroups& share);

}  // namespace gatherum
