// The algorithms that run a program, in two ordered lists. The first algorithm that applies runs. All
// algorithms return the same bits: each destination folds its updates in row-major order of the indices, or
// in any order if the result does not depend on the order. Algorithms differ in streaming stores, cache use,
// and memory use.
//
// To add an algorithm: create a file with its functions and add it to CMakeLists.txt, declare the
// functions at the end of this file, and add a row to the list of gathers or scatters (list.cpp).
#pragma once

#include <functional>
#include <string>

#include "algorithms/reasons.hpp"
#include "algorithms/rows.hpp"
#include "engine/levels.hpp"
#include "engine/outcome.hpp"
#include "engine/owned_memory.hpp"
#include "engine/schedule.hpp"
#include "engine/thresholds.hpp"
#include "model/program.hpp"

namespace gatherum {

// One run of a program. `source` is the data of a scatter that is not in place if the algorithm reads the
// data directly. Otherwise it is null. `fresh` is true if the output is discarded after an error.
struct Execution {
  const Operands& operands;
  const char* source;
  bool fresh;
  int threads;
  const Poll& poll;
};

// The result of a run. `finished` is false if poll interrupted the run. `valid` is false if invalid tuples
// were skipped. `has_memory` is false if scratch memory could not be allocated.
struct RunResult {
  bool finished = true, valid = true, has_memory = true;
};

// Returns the outcome of a run. If invalid indices are errors, this function reads the indices again, and the
// outcome describes the first invalid index that it finds. Another thread may have changed the indices since
// the run.
Outcome outcome_of(const RunResult& run, const Program& program, const char* index, const Poll& poll);

// The time at which an algorithm detects invalid indices.
enum class InvalidIndexCheck : uint8_t { never, while_writing, before_writing };

// Returns true if the algorithm can run the program on this number of threads and is fast for it. If so,
// appends the reason to `why`, unless `why` is null. The last algorithm of a list applies to every program.
using Applies = bool(const Program&, int threads, std::string* why);
// Returns the size in bytes of the working memory for this number of threads, in addition to buffers of up to
// 4 MiB per thread.
using Scratch = int64_t(const Program&, int threads);
using Runs = RunResult(const Program&, const Execution&);

struct Algorithm {
  const char* name;
  Applies* applies;
  Scratch* scratch;
  Runs* run;
  InvalidIndexCheck invalid_index_check;
  bool reads_source;  // functional scatter, if `covers_data`: the data need not be copied first
  bool skips_nan;     // runs folds that skip NaN
  bool is_last_for_accumulators = false;  // the algorithms behind it have no accumulators
};

// Returns the first algorithm of the list that applies.
const Algorithm& choose(const Program& program, int threads);

// Completes a program. If the program is too small for several threads, also chooses its algorithm. Returns
// an error message, or null for success.
const char* complete_and_choose(Program& program);

// The algorithm that runs on the current number of threads.
struct Choice {
  const char* name;
  std::string reason;
  int64_t scratch;
};
Choice describe(const Program& program);

// Returns the name of the i-th algorithm, gathers first, or null if i is too large.
const char* algorithm_name(int i);

// The scratch function for algorithms without scratch memory.
inline int64_t no_scratch(const Program&, int) { return 0; }

// Sorts the updates of each unit by destination. If there is only one unit, divides its groups among threads.
// Calls `work` for each share, to compute folds, gradients, or argmax and argmin. If an index is invalid, its
// update is skipped, and the run is marked as not valid.
using GroupWork = std::function<void(const GroupedScatter& groups, const GroupShare& share)>;
RunResult run_shares_of_groups(const Program& program, const Execution& call, const GroupWork& work);

// The functions of the algorithms in the two lists. Algorithms without scratch memory use no_scratch.
Applies applies_gather_prefetched, applies_gather_packed, applies_streamed, applies_gather_direct;
Scratch scratch_gather_prefetched, scratch_gather_packed;
Runs run_gather_prefetched, run_gather_packed, run_streamed, run_gather_direct;

Applies applies_partitioned, applies_uncounted_accumulators, applies_private_accumulators, applies_in_rounds,
    applies_divided_accumulators, applies_serial_accumulators, applies_batch_accumulators,
    applies_by_destination, applies_last_updates, applies_by_column, applies_by_range, applies_scatter_direct;
Scratch scratch_uncounted_accumulators, scratch_partitioned, scratch_private_accumulators, scratch_in_rounds,
    scratch_divided_accumulators, scratch_serial_accumulators, scratch_batch_accumulators,
    scratch_by_destination, scratch_last_updates;
Runs run_uncounted_accumulators, run_partitioned, run_private_accumulators, run_in_rounds,
    run_divided_accumulators, run_serial_accumulators, run_batch_accumulators, run_by_destination,
    run_last_updates, run_by_column, run_by_range, run_scatter_direct;

}  // namespace gatherum
