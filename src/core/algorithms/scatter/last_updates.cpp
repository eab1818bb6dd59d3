// Kernel: kernels/scatter_last.hpp. One unit of rows without a reduction: threads first find the last update
// of each destination, and then write each destination once.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

// The number of updates of a task that finds the last updates.
constexpr int64_t kPieceUpdates = 4096;

// Returns the size in bytes of the number that is stored for each destination.
constexpr int64_t number_bytes() { return sizeof(std::atomic<uint32_t>); }

LastUpdates find_in_pieces(const Program& p, const Nest& numbering, int threads) {
  const Loop& line = numbering.line_loop();
  LastUpdates call{};
  call.numbering = &numbering;
  call.chunk = std::min(kPieceUpdates, line.extent);
  call.units = (line.extent - 1) / call.chunk + 1;
  call.piece_units = threads == 1 ? call.units : 1;
  call.pieces = (call.units - 1) / call.piece_units + 1;
  call.step = p.step;
  call.streams = limited_product(p.destinations, row_bytes(p.nest)) >= thresholds().streamed_bytes;
  return call;
}

}  // namespace

bool applies_last_updates(const Program& p, int, std::string* why) {
  // If at least half of the updates are overwritten, this algorithm is faster even for rows of two cache
  // lines. Otherwise, a number is written and read for every update, and the algorithm is faster only for
  // longer rows (256 MiB, each destination once, on one thread, time without this algorithm divided by the
  // time with it: rows of 128 bytes 0.8, 256 bytes 0.9, 512 bytes 1.15; half of the destinations, 512 bytes:
  // 1.0).
  constexpr int64_t kShortRowBytes = 2 * kCacheLine, kLongRowBytes = 8 * kCacheLine;
  const Nest& nest = p.nest;
  if (p.fold_rule.reduction != Reduction::none || !is_one_unit(p) || nest.line > 0 || nest.row_rank() > 0)
    return false;
  const bool apart = p.step >= nest.block && nest.components > 0 && fits_32_bits(p.tuples);
  if (!apart || nest.block < kShortRowBytes || p.bytes / 2 < thresholds().streamed_bytes) return false;
  const bool once = nest.block >= kLongRowBytes && p.destinations <= p.tuples;
  if (!once && limited_product(2, p.destinations) > p.tuples) return false;
  append_why_no_accumulators(p, why);
  append(why, "; the last update of each destination is found first, so each destination is written once");
  return true;
}

int64_t scratch_last_updates(const Program& p, int) {
  return limited_product(p.destinations, number_bytes());
}

// Nothing is written before all indices have been checked.
RunResult run_last_updates(const Program& p, const Execution& call) {
  const Nest numbering = number_destinations(p.nest);
  LastUpdates updates = find_in_pieces(p, numbering, call.threads);
  const WorkerScratch scratch(limited_product(p.destinations, number_bytes()), 1);
  if (!scratch) return {.has_memory = false};
  updates.last = reinterpret_cast<std::atomic<uint32_t>*>(scratch.memory_of(0));
  updates.source = call.source;
  share_destinations(p, call.threads, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<void*>(updates.last + begin), 0,
                static_cast<size_t>((end - begin) * number_bytes()));
  });
  All valid;
  RunResult run;
  // The last pieces are processed first, because a number is only written if it exceeds the number there.
  run.finished = run_tasks(updates.pieces, call.threads, call.poll, [&](int64_t task, int) {
    valid &= chosen_kernels().last_find(updates, call.operands, updates.pieces - 1 - task);
  });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.invalid_is_error)) return run;
  const int64_t share = std::max<int64_t>(1, kWriteTaskBytes / row_bytes(p.nest));
  run.finished = run_tasks((p.destinations - 1) / share + 1, call.threads, call.poll, [&](int64_t i, int) {
    chosen_kernels().last_write(updates, call.operands, i * share, std::min((i + 1) * share, p.destinations));
  });
  return run;
}

}  // namespace gatherum
