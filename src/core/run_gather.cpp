// Gathers: which kernel, on how many threads.
#include <atomic>
#include <cstring>

#include "schedule.hpp"

namespace gatherum {
namespace {

// Runs a gather over all units. False: cut short by poll; `valid` false: an index was invalid.
template <class Kernel>
bool run_units(const Split& s, const Poll& poll, bool& valid, const Kernel& kernel) {
  std::atomic<bool> all_valid{true};
  const bool finished = run_split(s, poll, [&](int64_t begin, int64_t end, int worker) {
    if (all_valid.load(std::memory_order_relaxed) && !kernel(begin, end, worker))
      all_valid.store(false, std::memory_order_relaxed);
  });
  valid = all_valid.load();
  return finished;
}

bool run_plain(const Nest& nest, int units, int64_t line_chunk, int64_t bytes, const Operands& at,
               const Poll& poll, bool& valid) {
  const Split s = split(points(nest, units), nest.line_loop().extent, true, line_chunk, bytes);
  return run_units(s, poll, valid, [&](int64_t begin, int64_t end, int) {
    return chosen_kernels().gather(nest, units, at, {s.chunk, begin, end});
  });
}

// False: no scratch memory.
bool run_stretches(const Program& p, const Operands& at, const Poll& poll, bool& valid, bool& finished) {
  Nest nest = p.nest;
  nest.fetches_indices = false;  // gather_stretches does, a few lines at a time
  const Split s = split(nest.outer_count(), nest.line_loop().extent, false, 0, work_bytes(p));
  const WorkerScratch scratch(nest.line_loop().extent * 8 + 256 * 8, s.threads);
  if (!scratch) return false;
  finished = run_units(s, poll, valid, [&](int64_t begin, int64_t end, int worker) {
    auto* staged = reinterpret_cast<int64_t*>(scratch.of(worker));
    return chosen_kernels().gather_stretches(nest, at, begin, end, staged);
  });
  return true;
}

bool run_packed(const Program& p, const Operands& at, const Poll& poll, bool& valid, bool& finished) {
  const Nest& nest = p.nest;
  const Split s = split(points(nest, p.units), nest.line_loop().extent, true, p.line_chunk, work_bytes(p));
  const WorkerScratch scratch(p.destinations * s.chunk * nest.block, s.threads);
  if (!scratch) return false;
  const PackedGather call{&nest, p.units, s.chunk, p.destinations, p.step};
  finished = run_units(s, poll, valid, [&](int64_t begin, int64_t end, int worker) {
    return chosen_kernels().gather_packed(call, at, begin, end, scratch.of(worker));
  });
  return true;
}

}  // namespace

Outcome run_gather(const Program& p, const Operands& at, const Poll& poll) {
  bool valid = true, finished = true, memory = true;
  if (p.algorithm == Algorithm::stretches)
    memory = run_stretches(p, at, poll, valid, finished);
  else if (p.algorithm == Algorithm::packed)
    memory = run_packed(p, at, poll, valid, finished);
  else
    finished = run_plain(p.nest, p.units, p.line_chunk, work_bytes(p), at, poll, valid);
  if (!memory) return {Status::no_memory, {}};
  if (!finished) return {Status::interrupted, {}};
  if (valid) return {};
  Outcome outcome = check_indices(p, at.index, poll);
  if (outcome.status == Status::done) outcome.status = Status::invalid_index;  // changed meanwhile
  return outcome;
}

bool run_copy(const Nest& nest, const char* source, char* to, const Poll& poll) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  const int64_t bytes = nest.block * points(nest, nest.rank);
  if (bytes == nest.block && bytes < kLongBytes) {
    std::memcpy(to, source, static_cast<size_t>(bytes));
    return true;
  }
  if (bytes == nest.block) {  // one contiguous run
    return run_tasks((bytes + kPiece - 1) / kPiece, threads_for(2 * bytes), poll, [&](int64_t i, int) {
      const int64_t begin = i * kPiece, n = std::min(kPiece, bytes - begin);
      if (bytes >= kParallelBytes)
        chosen_kernels().copy(to + begin, source + begin, n);
      else
        std::memcpy(to + begin, source + begin, static_cast<size_t>(n));
    });
  }
  Operands at;
  at.data = const_cast<char*>(source);  // a gather only reads it
  at.other = to;
  bool valid = true;
  return run_plain(nest, nest.line, 0, 2 * bytes, at, poll, valid);
}

}  // namespace gatherum
