// Sizes and checks shared by the implementations that move single items by one index.
#pragma once

#include <functional>

#include "algorithms/algorithms.hpp"

namespace gatherum {

// Whether a gather follows one index to each item, and is not small; else why not.
bool gathers_items(const Program& program, std::string* why);

// A task of a gather: false when it met an invalid index.
using GatherTask = std::function<bool(int64_t begin, int64_t end, int worker)>;
// Runs a gather over all units; once an index was invalid, no further tasks begin.
Run run_units_of(const Split& split, const Execution& call, const GatherTask& task);
// Gathers point by point, written past the cache if `streams`.
Run gather_units(const Program& program, const Execution& call, bool streams);

// The sizes of a scatter of items: how many updates and destinations a unit has, and the bytes of an
// accumulator.
struct Items {
  int64_t updates;  // of a unit
  int64_t units;
  int64_t columns;  // points of the line, where it moves the data
  bool alone;       // there is one unit
  bool small;
  int64_t slot;  // bytes of an accumulator
  int64_t slots_bytes;
};

// Whether a scatter moves single items to destinations at even steps; else why not.
bool scatters_items(const Program& program, std::string* why);
Items items_of(const Program& program);
// Bytes that the updates of so many destinations go to: of exact sums the windows and counters alone, of any
// other fold `otherwise`.
int64_t busy_bytes(const Program& program, int64_t destinations, int64_t otherwise);
// Whether accumulators for all destinations, touched or not, cost at most 16 bytes per update.
bool fits_slots(const Items& items);
// Appends why a scatter keeps no accumulators for all destinations of a unit.
void append_why_no_accumulators(const Program& program, std::string* why);

// Whether so few destinations get so many updates that a slab for each thread costs little.
inline bool are_few(const Program& p, int threads) { return p.destinations <= p.tuples / (4 * threads); }
// Whether it pays that each thread reads every index, and has a range of accumulators of so many bytes.
bool shares_slots(const Program& program, int threads, int64_t bytes);
// From here on the accumulators of a slab are fetched ahead (updates of 1M float32: 2.7 ns each -> 1.7; of
// 400,000: no difference; of 256: 1 -> 1.4).
constexpr int64_t kFarSlabBytes = int64_t{2} << 20;

// Bytes of a slab of that many accumulators.
int64_t slab_bytes(const Program& program, int64_t slots);
// Whether the only unit has accumulators for all its destinations.
bool keeps_one_slab(const Program& program, std::string* why);

// Whether updates are put in order of their destination first, and whether by counting them out.
bool applies_groups(const Program& program, std::string* why);
bool counts_out(const Program& program);

// A scatter into slabs of so many bytes for each thread, but for their memory.
PrivateScatter privately(const Program& program, const Execution& call, Nest& ids, int64_t slab_bytes);

// Calls write(begin, end) for each thread's share of the destinations.
template <class Write>
void share_destinations(const Program& p, int threads, const Write& write) {
  const int64_t share = p.destinations / threads + 1;
  run_tasks(threads, threads, {}, [&](int64_t i, int) {
    write(std::min(i * share, p.destinations), std::min((i + 1) * share, p.destinations));
  });
}

// Whether the positions of extremes are found by accumulators of their own for each thread; else by groups.
bool locates_items(const Program& program, int threads);
// Writes them, where no index is invalid that must not be; the numbers of updates where they lie as the
// output.
Run locate_items(const Program& program, const Execution& call, int64_t* positions, int64_t none);

}  // namespace gatherum
