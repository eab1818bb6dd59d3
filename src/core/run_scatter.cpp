// Scatters: each algorithm gives every destination its updates in row-major order of the indices, so
// the bits do not depend on the number of threads.
#include <atomic>

#include "schedule.hpp"

namespace gatherum {
namespace {

constexpr int64_t kSlabBytes = int64_t{2} << 20;
constexpr int64_t kMaxBlocks = 1024;
// Tuples of one unit of a partition.
constexpr int64_t kPartitionChunk = 16384;

// Independent units, or, where there is only one, shares of the destinations, each looked for by a
// thread of its own.
bool scatter_units(const Program& p, const Nest& nest, const Operands& at, const Poll& poll) {
  const Split s =
      split(points(nest, p.units), nest.line_loop().extent, p.split_line, p.line_chunk, work_bytes(p));
  if (s.units > 1 || s.threads == 1 || p.components_reach == 0) {
    return run_split(s, poll, [&](int64_t begin, int64_t end, int) {
      chosen_kernels().scatter(nest, p.units, at, {s.chunk, begin, end}, p.combine);
    });
  }
  const int64_t share = p.components_reach / s.threads + 1;
  return run_tasks(s.threads, s.threads, poll, [&](int64_t i, int) {
    const int64_t low = p.components_low + i * share;
    chosen_kernels().scatter_owned(nest, p.units, at, {s.chunk, 0, 1}, p.combine, low, low + share);
  });
}

Status scatter_slabs(const Program& p, const Nest& ids, const Operands& at, const char* source,
                     const Poll& poll) {
  const Split s =
      split(points(ids, p.units), ids.line_loop().extent, p.split_line, p.line_chunk, work_bytes(p));
  SlabScatter call{&ids, p.units, s.chunk, p.destinations, p.step, 1, p.destinations, source, p.combine};
  if (s.units == 1) {
    call.range_size = (p.destinations + s.threads - 1) / s.threads;
    call.ranges = (p.destinations + call.range_size - 1) / call.range_size;
  }
  const int64_t columns = p.split_line ? s.chunk : 1;
  const int64_t bytes = chosen_kernels().slab_bytes(p.combine, ids.item, call.range_size * columns);
  const WorkerScratch scratch(bytes, s.threads);
  if (!scratch) return Status::no_memory;
  const Split tasks = s.units == 1 ? Split{s.threads, s.chunk, call.ranges, 1, call.ranges} : s;
  const bool finished = run_split(tasks, poll, [&](int64_t begin, int64_t end, int worker) {
    chosen_kernels().scatter_slabs(call, at, begin, end, scratch.of(worker));
  });
  return finished ? Status::done : Status::interrupted;
}

// Blocks as large as fit a slab, but enough of them for every thread.
int block_shift(const Program& p, int threads) {
  const auto slab = [&](int shift) {
    return chosen_kernels().slab_bytes(p.combine, p.nest.item, int64_t{1} << shift);
  };
  int shift = 6;
  while (shift < 31 && slab(shift + 1) <= kSlabBytes && (p.destinations >> (shift + 1)) >= 4 * threads)
    ++shift;
  while ((p.destinations >> shift) >= kMaxBlocks) ++shift;
  return shift;
}

// Turns counts [piece][block] into where each begins, in (block, piece) order; one more row holds
// where the blocks end.
void place_lists(const PartitionScatter& part) {
  int64_t at = 0;
  for (int64_t b = 0; b < part.blocks; ++b) {
    for (int64_t piece = 0; piece < part.pieces; ++piece) {
      int64_t& count = part.counts[piece * part.blocks + b];
      const int64_t n = count;
      count = at;
      at += n;
    }
    part.counts[part.pieces * part.blocks + b] = at;
  }
}

Outcome scatter_partition(const Program& p, const Nest& ids, const Operands& at, const char* source,
                          const Poll& poll) {
  const int threads = threads_for(work_bytes(p));
  PartitionScatter part{};
  part.ids = &ids;
  part.chunk = std::min(kPartitionChunk, ids.line_loop().extent);
  part.units = ids.outer_count() * ((ids.line_loop().extent + part.chunk - 1) / part.chunk);
  const int64_t pieces = std::min<int64_t>(part.units, int64_t{4} * threads);
  part.piece_units = (part.units + pieces - 1) / pieces;
  part.pieces = (part.units + part.piece_units - 1) / part.piece_units;
  part.shift = block_shift(p, threads);
  part.blocks = ((p.destinations - 1) >> part.shift) + 1;
  part.destinations = p.destinations;
  part.step = p.step;
  part.source = source;
  part.combine = p.combine;
  const int64_t entry = 4 + ids.item;
  const WorkerScratch counts((2 * part.pieces + 1) * part.blocks * 8, 1);
  const WorkerScratch entries(p.tuples * entry + 16 * entry, 1);
  const WorkerScratch slabs(chosen_kernels().slab_bytes(p.combine, ids.item, int64_t{1} << part.shift),
                            threads);
  if (!counts || !entries || !slabs) return {Status::no_memory, {}};
  part.counts = reinterpret_cast<int64_t*>(counts.of(0));
  part.ends = part.counts + (part.pieces + 1) * part.blocks;
  part.entries = entries.of(0);

  std::atomic<bool> valid{true};
  bool finished = run_tasks(part.pieces, threads, poll, [&](int64_t piece, int) {
    if (!chosen_kernels().partition_count(part, at.index, piece))
      valid.store(false, std::memory_order_relaxed);
  });
  if (finished && !valid.load() && p.nest.mode == Mode::raise) {
    Outcome outcome = check_indices(p, at.index, poll);
    if (outcome.status == Status::done) outcome.status = Status::invalid_index;  // changed meanwhile
    return outcome;
  }
  if (finished) place_lists(part);
  finished = finished && run_tasks(part.pieces, threads, poll, [&](int64_t piece, int) {
               chosen_kernels().partition_spread(part, at, piece);
             });
  finished = finished &&
             run_tasks(part.blocks, threads, source != nullptr ? poll : Poll{}, [&](int64_t b, int worker) {
               chosen_kernels().partition_apply(part, at, b, slabs.of(worker));
             });
  return {finished ? Status::done : Status::interrupted, {}};
}

bool scatter_grouped(const Program& p, const Nest& nest, const Nest& ids, const Operands& at,
                     const Poll& poll, bool& memory) {
  const Split s = split(points(nest, p.units), nest.line_loop().extent, false, 0, work_bytes(p));
  std::atomic<bool> enough{true};
  const bool finished = run_split(s, poll, [&](int64_t begin, int64_t end, int) {
    if (!chosen_kernels().scatter_grouped(nest, ids, p.units, at, {s.chunk, begin, end}, p.combine,
                                          p.destinations))
      enough.store(false, std::memory_order_relaxed);
  });
  memory = enough.load();
  return finished;
}

}  // namespace

Outcome run_scatter(const Program& p, const Operands& at, const char* source, const Poll& poll) {
  // Slabs and partitions read the source themselves, where each of its elements is some destination.
  const bool reads_source =
      p.tiles && (p.algorithm == Algorithm::slabs || p.algorithm == Algorithm::partition) && p.moves;
  if (p.algorithm == Algorithm::partition && p.moves && p.tuples > 0) {
    if (source != nullptr && !reads_source && !run_copy(p.copy, source, at.data, poll))
      return {Status::interrupted, {}};
    return scatter_partition(p, p.ids, at, reads_source ? source : nullptr, poll);
  }
  if (p.tuples > 0 && p.nest.mode == Mode::raise) {
    const Outcome outcome = check_indices(p, at.index, poll);
    if (outcome.status != Status::done) return outcome;
  }
  if (source != nullptr && p.copies && !reads_source && !run_copy(p.copy, source, at.data, poll))
    return {Status::interrupted, {}};
  if (!p.moves) return {};
  Nest nest = p.nest, ids = p.ids;
  // Checked above; what another thread has made invalid since is dropped.
  if (nest.mode == Mode::raise) nest.mode = ids.mode = Mode::drop;
  const Poll quiet = source != nullptr ? poll : Poll{};  // in place, what has begun is finished
  bool memory = true, finished = true;
  if (p.algorithm == Algorithm::slabs) {
    const Status status = scatter_slabs(p, ids, at, reads_source ? source : nullptr, quiet);
    return {status, {}};
  }
  if (p.algorithm == Algorithm::grouped)
    finished = scatter_grouped(p, nest, ids, at, quiet, memory);
  else
    finished = scatter_units(p, nest, at, quiet);
  if (!memory) return {Status::no_memory, {}};
  return {finished ? Status::done : Status::interrupted, {}};
}

}  // namespace gatherum
