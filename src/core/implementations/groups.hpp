// The cut into groups of updates that folds and their gradients share.
#pragma once

#include <functional>

#include "implementations.hpp"

namespace gatherum {

// Puts the updates of each unit in order, and shares their groups among threads, which `work` is done with.
// Not valid: an index addresses nothing, and its update was left out.
using GroupWork = std::function<void(const GroupedScatter& groups, const GroupShare& share)>;
Run run_shares_of_groups(const Program& program, const Call& call, const GroupWork& work);

}  // namespace gatherum
