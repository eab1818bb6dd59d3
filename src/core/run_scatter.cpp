// Scatters: each algorithm gives every destination its updates in row-major order of the indices, or in any
// where that gives the same bits, so they do not depend on the number of threads.
#include <atomic>

#include "schedule.hpp"

namespace gatherum {
namespace {

// From here on, and from three threads on, a slab's misses cost more than looking at every index once a
// thread. (Two take 1.5 times as long as one that stages while it folds: 20M updates of 1M float32.)
constexpr int64_t kSharedSlabBytes = int64_t{2} << 20;
constexpr int kSharedSlabThreads = 3;
// From here on the accumulators of a slab are fetched ahead (5M updates of 1M float64: 45 ms -> 18; of 256
// float32: 5 -> 7).
constexpr int64_t kFarSlabBytes = int64_t{4} << 20;
// A block of a partition, about what a core's own cache holds: a tenth faster than 2 MiB.
constexpr int64_t kBlockBytes = int64_t{1} << 20;
constexpr int64_t kMaxBlocks = 1024;
// Tuples of one unit of a partition.
constexpr int64_t kPartitionChunk = 16384;
// Groups of updates are dealt out in so many shares a thread: some take longer than others.
constexpr int64_t kSharesAThread = 8;

// What became of a scatter: cut short by poll, or done, perhaps with invalid tuples skipped.
struct Run {
  bool finished = true, valid = true, memory = true;
};

// Collects from tasks whether all of them were content.
class All {
 public:
  void operator&=(bool one) {
    if (!one) all_.store(false, std::memory_order_relaxed);
  }
  explicit operator bool() const { return all_.load(); }

 private:
  std::atomic<bool> all_{true};
};

// Independent units, or, where there is only one, shares of the destinations, each looked for by a
// thread of its own.
Run scatter_units(const Program& p, const Operands& at, const Poll& poll) {
  const Nest& nest = p.nest;
  Run run;
  if (!is_long(p)) {
    const Range everything{nest.line_loop().extent, 0, points(nest, p.units)};
    run.valid = chosen_kernels().scatter(nest, p.units, at, everything, p.combine);
    return run;
  }
  const Split s =
      split(points(nest, p.units), nest.line_loop().extent, p.split_line, p.line_chunk, work_bytes(p));
  All valid;
  if (s.units > 1 || s.threads == 1 || p.components_reach == 0) {
    run.finished = run_split(s, poll, [&](int64_t begin, int64_t end, int) {
      valid &= chosen_kernels().scatter(nest, p.units, at, {s.chunk, begin, end}, p.combine);
    });
  } else {
    const int64_t share = p.components_reach / s.threads + 1;
    run.finished = run_tasks(s.threads, s.threads, poll, [&](int64_t i, int) {
      const int64_t low = p.components_low + i * share;
      valid &=
          chosen_kernels().scatter_owned(nest, p.units, at, {s.chunk, 0, 1}, p.combine, low, low + share);
    });
  }
  run.valid = static_cast<bool>(valid);
  return run;
}

// Whether every thread may have accumulators of its own for the one unit there is: without columns, few
// beside the updates, and folded in any order.
bool keeps_private(const Program& p, int threads) {
  return threads > 1 && !p.split_line && p.destinations <= p.tuples / (4 * threads) &&
         chosen_kernels().private_bytes(p.combine, p.destinations) > 0;
}

// One unit, a piece of its updates for each thread. Nothing is written before all indices have been found
// valid.
Run scatter_private(const Program& p, const Nest& ids, const Operands& at, const char* source, int threads,
                    const Poll& poll) {
  const Loop& line = ids.line_loop();
  PrivateScatter call{};
  call.ids = &ids;
  call.chunk = std::min(kPartitionChunk, line.extent);
  call.units = ids.outer_count() * ((line.extent - 1) / call.chunk + 1);
  call.piece_units = (call.units + threads - 1) / threads;
  call.pieces = (call.units + call.piece_units - 1) / call.piece_units;
  call.destinations = p.destinations;
  call.step = p.step;
  call.source = source;
  call.combine = p.combine;
  call.slab_bytes =
      chosen_kernels().private_bytes(p.combine, p.destinations) / kCacheLine * kCacheLine + kCacheLine;
  const WorkerScratch scratch(times(call.slab_bytes, call.pieces), 1);
  Run run;
  if (!scratch) return run.memory = false, run;
  call.slabs = scratch.of(0);
  All valid;
  run.finished = run_tasks(call.pieces, threads, poll, [&](int64_t piece, int) {
    valid &= chosen_kernels().private_take(call, at, piece);
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.raises)) return run;
  const int64_t share = p.destinations / threads + 1;
  run_tasks(threads, threads, {}, [&](int64_t i, int) {
    chosen_kernels().private_write(call, at, std::min(i * share, p.destinations),
                                   std::min((i + 1) * share, p.destinations));
  });
  return run;
}

// One unit: ranges of its destinations, each a slab that looks at every index; nothing is written
// before all of them have been found valid. Many units: one slab after the other.
Run scatter_slabs(const Program& p, const Operands& at, const char* source, bool fresh, const Poll& poll) {
  Nest ids = p.ids;
  const Split s =
      split(points(ids, p.units), ids.line_loop().extent, p.split_line, p.line_chunk, work_bytes(p));
  SlabScatter call{&ids, p.units,        s.chunk, p.destinations, p.step,
                   1,    p.destinations, source,  p.combine,      false};
  const bool alone = s.units == 1;
  const int64_t everything = chosen_kernels().slab_bytes(p.combine, ids.item, p.destinations);
  ids.far = everything >= kFarSlabBytes;
  if (alone && keeps_private(p, s.threads)) return scatter_private(p, ids, at, source, s.threads, poll);
  call.direct = fresh || !alone;  // with many units the indices were checked before
  if (alone && everything >= kSharedSlabBytes && s.threads >= kSharedSlabThreads) {
    call.range_size = (p.destinations + s.threads - 1) / s.threads;
    call.ranges = (p.destinations + call.range_size - 1) / call.range_size;
  }
  // One thread folds while the processor's own prefetch goes on; a burst of ours would make it wait (5M
  // updates of 256 bins: 6.6 ms with it, 5.1 without).
  ids.fetches_indices = !alone || call.ranges > 1;
  const int64_t columns = p.split_line ? s.chunk : 1;
  const int64_t bytes = chosen_kernels().slab_bytes(p.combine, ids.item, call.range_size * columns);
  const WorkerScratch scratch(bytes, alone ? static_cast<int>(call.ranges) : s.threads);
  Run run;
  if (!scratch) return run.memory = false, run;
  All valid;
  if (alone) {
    run.finished = run_tasks(call.ranges, s.threads, poll, [&](int64_t range, int) {
      valid &= chosen_kernels().slab_take(call, at, range, scratch.of(static_cast<int>(range)));
    });
    run.valid = static_cast<bool>(valid);
    if (!run.finished || (!run.valid && p.raises)) return run;
    run_tasks(call.ranges, s.threads, {}, [&](int64_t range, int) {
      chosen_kernels().slab_write(call, at, range, scratch.of(static_cast<int>(range)));
    });
    return run;
  }
  run.finished = run_split(s, poll, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t unit = begin; unit < end; ++unit) {
      valid &= chosen_kernels().slab_take(call, at, unit, scratch.of(worker));
      chosen_kernels().slab_write(call, at, unit, scratch.of(worker));
    }
  });
  run.valid = static_cast<bool>(valid);
  return run;
}

// Blocks as large as fit a slab, but enough of them for every thread.
int block_shift(const Program& p, int threads) {
  const auto slab = [&](int shift) {
    return chosen_kernels().slab_bytes(p.combine, p.nest.item, int64_t{1} << shift);
  };
  int shift = 6;
  while (shift < 31 && slab(shift + 1) <= kBlockBytes && (p.destinations >> (shift + 1)) >= 4 * threads)
    ++shift;
  while ((p.destinations >> shift) >= kMaxBlocks) ++shift;
  return shift;
}

// How the updates of a partition are cut: into pieces, and their lists into runs. Lists waste a part
// of their last run: pieces are few enough, and runs short enough, to keep that below an eighth.
struct Cut {
  int64_t chunk, units, pieces, piece_units, run, runs;
};

Cut cut_updates(const Program& p, int threads, int64_t blocks) {
  constexpr int64_t kShortestRun = 16, kLongestRun = 1024;
  const Loop& line = p.ids.line_loop();
  Cut c{};
  c.chunk = std::min(kPartitionChunk, line.extent);
  c.units = p.ids.outer_count() * ((line.extent - 1) / c.chunk + 1);
  const int64_t most = std::max<int64_t>(1, p.tuples / (8 * kShortestRun * blocks));
  const int64_t pieces = std::min({c.units, int64_t{4} * threads, most});
  c.piece_units = (c.units + pieces - 1) / pieces;
  c.pieces = (c.units + c.piece_units - 1) / c.piece_units;
  c.run = std::clamp(p.tuples / (8 * c.pieces * blocks), kShortestRun, kLongestRun);
  c.runs = p.tuples / c.run + c.pieces * blocks;
  return c;
}

Run scatter_partition(const Program& p, const Operands& at, const char* source, const Poll& poll) {
  const int threads = threads_for(work_bytes(p));
  PartitionScatter part{};
  part.ids = &p.ids;
  part.shift = block_shift(p, threads);
  part.blocks = ((p.destinations - 1) >> part.shift) + 1;
  const Cut cut = cut_updates(p, threads, part.blocks);
  part.chunk = cut.chunk;
  part.units = cut.units;
  part.pieces = cut.pieces;
  part.piece_units = cut.piece_units;
  part.run_bytes = cut.run * chosen_kernels().entry_bytes(p.ids.item);
  part.destinations = p.destinations;
  part.step = p.step;
  part.source = source;
  part.combine = p.combine;
  const int64_t lists = part.pieces * part.blocks;
  const WorkerScratch entries(times(cut.runs, part.run_bytes), 1);
  const WorkerScratch chains((cut.runs + 3 * lists) * 8, 1);
  const WorkerScratch slabs(chosen_kernels().slab_bytes(p.combine, p.ids.item, int64_t{1} << part.shift),
                            threads);
  Run run;
  if (!entries || !chains || !slabs) return run.memory = false, run;
  std::atomic<int64_t> taken{0};
  part.taken = &taken;
  part.entries = entries.of(0);
  part.next = reinterpret_cast<int64_t*>(chains.of(0));
  part.first = part.next + cut.runs;
  part.cursors = reinterpret_cast<PartitionScatter::Cursor*>(part.first + lists);

  All valid;
  run.finished = run_tasks(part.pieces, threads, poll, [&](int64_t piece, int) {
    valid &= chosen_kernels().partition_spread(part, at, piece);
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.raises)) return run;
  run.finished = run_tasks(part.blocks, threads, poll, [&](int64_t b, int worker) {
    chosen_kernels().partition_apply(part, at, b, slabs.of(worker));
  });
  return run;
}

// Many units: one after the other on each thread. One unit: threads share its groups.
Run scatter_grouped(const Program& p, const Operands& at, const Poll& poll) {
  const Nest& nest = p.nest;
  const Split s = split(points(nest, p.units), nest.line_loop().extent, false, 0, work_bytes(p));
  const int64_t updates = points(nest, nest.line + 1) / points(nest, p.units);
  const GroupedScatter call{&nest, &p.ids, p.units, updates, p.destinations, p.combine};
  const bool alone = s.units == 1;
  const WorkerScratch scratch(chosen_kernels().grouped_bytes(updates, p.destinations), alone ? 1 : s.threads);
  Run run;
  if (!scratch) return run.memory = false, run;
  if (alone) {
    const int64_t kept = chosen_kernels().group_updates(call, at, 0, scratch.of(0));
    const int64_t shares = s.threads > 1 ? kSharesAThread * s.threads : 1;
    run.finished = run_tasks(shares, s.threads, poll, [&](int64_t share, int) {
      chosen_kernels().fold_groups(call, at, 0, kept, share, shares, scratch.of(0));
    });
    return run;
  }
  run.finished = run_split(s, poll, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t kept = chosen_kernels().group_updates(call, at, unit, scratch.of(worker));
      chosen_kernels().fold_groups(call, at, unit, kept, 0, 1, scratch.of(worker));
    }
  });
  return run;
}

// Whether an invalid index comes to light before anything is written: then no check is needed first.
bool checks_itself(const Program& p) {
  if (p.algorithm == Algorithm::partition) return true;
  return p.algorithm == Algorithm::slabs && points(p.ids, p.units) == 1 && !p.split_line;
}

// The index that a scatter has met; with position -1 where it has changed meanwhile.
Outcome report_invalid(const Program& p, const char* index, const Poll& poll) {
  Outcome outcome = check_indices(p, index, poll);
  if (outcome.status == Status::done) outcome.status = Status::invalid_index;
  return outcome;
}

}  // namespace

Outcome run_scatter(const Program& p, const Operands& at, const char* source, bool fresh, const Poll& poll) {
  const bool slabs = p.algorithm == Algorithm::slabs || p.algorithm == Algorithm::partition;
  // Slabs read the source themselves, where each of its elements is some destination.
  const bool reads_source = p.tiles && slabs && p.moves && source != nullptr;
  const bool copies = source != nullptr && p.copies && !reads_source;
  // A fresh result that turns out wrong is thrown away, so its scatter may find the bad index itself.
  const bool finds_invalid =
      p.moves && (fresh ? p.algorithm != Algorithm::grouped : checks_itself(p) && !copies);
  if (p.tuples > 0 && p.raises && !finds_invalid) {
    const Outcome outcome = check_indices(p, at.index, poll);
    if (outcome.status != Status::done) return outcome;
  }
  if (copies && !run_copy(p.copy, source, at.data, poll)) return {Status::interrupted, {}};
  if (!p.moves) return {};
  const Poll quiet = fresh ? poll : Poll{};  // what has begun to write is finished
  const char* from = reads_source ? source : nullptr;
  Run run;
  switch (p.algorithm) {
    case Algorithm::slabs:
      run = scatter_slabs(p, at, from, fresh, quiet);
      break;
    case Algorithm::partition:
      run = scatter_partition(p, at, from, quiet);
      break;
    case Algorithm::grouped:
      run = scatter_grouped(p, at, quiet);
      break;
    default:
      run = scatter_units(p, at, quiet);
  }
  if (!run.memory) return {Status::no_memory, {}};
  if (!run.finished) return {Status::interrupted, {}};
  if (!run.valid && p.raises && finds_invalid) return report_invalid(p, at.index, quiet);
  return {};
}

}  // namespace gatherum
