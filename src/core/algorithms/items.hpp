// Sizes and checks shared by the algorithms that move single items by one index.
#pragma once

#include <functional>
#include <optional>

#include "algorithms/algorithms.hpp"

namespace gatherum {

// Returns true if a gather moves single items, each with one index, and is not small. Otherwise appends the
// reason.
bool gathers_items(const Program& program, std::string* why);

// A task of a gather. Returns false if it found an invalid index.
using GatherTask = std::function<bool(int64_t begin, int64_t end, int worker)>;
// Runs a gather over all units. After an invalid index, no further tasks are started.
RunResult run_units_of(const Split& split, const Execution& call, const GatherTask& task);
// Gathers point by point, with streaming stores if `streams`.
RunResult gather_direct(const Program& program, const Execution& call, bool streams);

// The sizes of a scatter of items. A unit is an independent batch.
struct Items {
  int64_t updates;  // per unit
  int64_t units;
  int64_t columns;   // the extent of the line loop, or 1 if it does not move the data
  bool is_one_unit;  // there is only one unit, without columns
  bool is_small;
  int64_t slot_bytes;  // bytes of an accumulator
  int64_t slots_bytes;
};

// Returns true if a scatter moves single items to evenly spaced destinations; otherwise appends the reason.
bool scatters_items(const Program& program, std::string* why);
Items items_of(const Program& program);
// Returns the number of bytes that updates of this many destinations access. This is the size of the windows
// and counters for exact sums, and `otherwise` for all other folds.
int64_t busy_bytes(const Program& program, int64_t destinations, int64_t otherwise);
// Returns true if accumulators for all destinations, with or without updates, take at most 16 bytes per
// update.
bool fits_slots(const Items& items);
// Appends the reason why a scatter does not keep an accumulator for every destination of a unit.
void append_why_no_accumulators(const Program& program, std::string* why);

// Returns true if there are few destinations for the number of updates, so that a slab per thread costs
// little.
inline bool are_few(const Program& p, int threads) { return p.destinations <= p.tuples / (4 * threads); }
// Returns true if it is faster to divide `bytes` of accumulators among the threads, each of which reads all
// indices.
bool shares_slots(const Program& program, int threads, int64_t bytes);
// From this size on, the accumulators of a slab are prefetched. For 1M float32, this reduces the time per
// update from 2.7 to 1.7 ns; for 400,000 it changes nothing; for 256 it increases the time from 1 to 1.4 ns.
constexpr int64_t kFarSlabBytes = int64_t{2} << 20;

// Returns the size in bytes of a slab with this many accumulators.
int64_t slab_bytes(const Program& program, int64_t slots);
// Returns true if there is only one unit and it keeps accumulators for all its destinations.
bool keeps_one_slab(const Program& program, std::string* why);

// Runs a scatter that keeps one slab, whose destinations are divided into at most this many ranges.
RunResult run_in_ranges(const Program& program, const Execution& call, int64_t most);
// The same with several threads, if each can skip most of the updates of other ranges. Otherwise returns
// nothing, and has written nothing.
std::optional<RunResult> run_near(const Program& program, const Execution& call);

// Prepares a scatter into private slabs of this many bytes per thread, but does not allocate the slabs.
PrivateScatter private_scatter_of(const Program& program, const Execution& call, Nest& numbering,
                                  int64_t slab_bytes);

// Calls `write(begin, end)` for each thread's share of the destinations.
template <class Write>
void share_destinations(const Program& p, int threads, const Write& write) {
  const int64_t share = p.destinations / threads + 1;
  run_tasks(threads, threads, {}, [&](int64_t i, int) {
    write(std::min(i * share, p.destinations), std::min((i + 1) * share, p.destinations));
  });
}

// Returns true if argmax and argmin are computed with thread-private accumulators; otherwise they are
// computed with groups.
bool locates_items(const Program& program, int threads);
// Writes argmax or argmin, unless an invalid index is an error. Each result is the number of an update. It is
// stored at the offset of its destination in the output.
RunResult locate_items(const Program& program, const Execution& call, int64_t* positions, int64_t none);

}  // namespace gatherum
