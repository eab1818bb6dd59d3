#include "engine.hpp"

#include <atomic>
#include <cstring>

#include "schedule.hpp"

namespace gatherum {
namespace {

const Kernels* chosen = nullptr;

// clip and wrap cannot make an index valid in a dimension of size 0: the first tuple is the culprit.
Outcome nothing_to_address(const Program& p, const char* index) {
  Nest probe = p.checks;
  probe.mode = Mode::raise;
  probe.components = 1;
  probe.component[0] = p.checks.component[p.unaddressable];
  Invalid invalid = chosen->first_invalid(probe, index, {probe.line_loop().extent, 0, 1});
  invalid.component = p.unaddressable;
  return {Status::invalid_index, invalid};
}

// What a look at an invalid index has told. Where it found nothing wrong any more, the indices have
// changed meanwhile, which position -1 reports.
Outcome told(Invalid invalid) {
  if (invalid.component < 0) invalid.position = -1;
  return {Status::invalid_index, invalid};
}

}  // namespace

bool is_long(const Program& p) { return work_bytes(p) >= kLongBytes; }

Outcome check_indices(const Program& p, const char* index, const Poll& poll) {
  const Nest& nest = p.checks;
  if (!is_long(p)) {
    const Invalid invalid =
        chosen->first_invalid(nest, index, {nest.line_loop().extent, 0, nest.outer_count()});
    return invalid.position < 0 ? Outcome{} : told(invalid);
  }
  const Split s = split(nest.outer_count(), nest.line_loop().extent, true, 0, times(p.tuples, kTupleBytes));
  std::atomic<int64_t> first{s.units};
  const bool finished = run_split(s, poll, [&](int64_t begin, int64_t end, int) {
    if (begin >= first.load(std::memory_order_relaxed)) return;
    if (chosen->first_invalid(nest, index, {s.chunk, begin, end}).position < 0) return;
    int64_t seen = first.load();
    while (begin < seen && !first.compare_exchange_weak(seen, begin)) {
    }
  });
  if (!finished) return {Status::interrupted, {}};
  if (first.load() == s.units) return {};
  return told(chosen->first_invalid(nest, index, {s.chunk, first.load(), s.units}));
}

Outcome execute(const Program& p, const Operands& at, const char* source, bool fresh, const Poll& poll) {
  if (p.unaddressable >= 0 && p.tuples > 0) return nothing_to_address(p, at.index);
  if (p.scatter) return run_scatter(p, at, source, fresh, poll);
  if (p.moves) return run_gather(p, at, poll);
  return p.tuples > 0 && p.raises ? check_indices(p, at.index, poll) : Outcome{};
}

namespace {

struct Level {
  const char* name;
  int number;
  const Kernels& (*kernels)();
};

// Those that this build has, best first.
const Level kLevels[] = {
#if GATHERUM_V4
    {"v4", 4, kernels_v4},
#endif
#if GATHERUM_V3
    {"v3", 3, kernels_v3},
#endif
#if GATHERUM_V2
    {"v2", 2, kernels_v2},
#endif
    {"portable", 0, kernels_portable}};

}  // namespace

std::vector<std::string> available_levels() {
  std::vector<std::string> names;
  for (const Level& level : kLevels)
    if (processor_has(level.number)) names.push_back(level.name);
  return names;
}

bool choose_level(const std::string& name) {
  for (const Level& level : kLevels)
    if ((name.empty() || name == level.name) && processor_has(level.number)) {
      chosen = &level.kernels();
      return true;
    }
  return false;
}

const Kernels& chosen_kernels() { return *chosen; }

}  // namespace gatherum
