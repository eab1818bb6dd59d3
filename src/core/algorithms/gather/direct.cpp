// Kernel: kernels/gather_rows.hpp, kernels/gather_lines.hpp. Gathers point by point in the order of the nest,
// and divides independent batches among threads. It applies to every gather, and is the fastest for rows and
// small calls.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"
#include "model/widths.hpp"

namespace gatherum {
namespace {

// Appends the reason why stretches are not prefetched and columns are not packed.
void append_why_direct(const Nest& nest, std::string* why) {
  const Loop& line = nest.line_loop();
  if (line.data != 0) {
    append(why,
           "neighbouring indices read from different columns, and packing the columns would not be faster");
  } else if (nest.line == 0) {
    append(why, "there is only one line of ", line.extent,
           " indices, so prefetching the next line is not possible");
  } else {
    append(why, "each line of ", line.extent, " indices reads from ",
           distance(nest.component[0].size, nest.component[0].stride),
           " bytes: the line is too long or has too few indices to prefetch all of them");
  }
}

}  // namespace

bool gathers_items(const Program& p, std::string* why) {
  const Nest& nest = p.nest;
  if (nest.components == 0) return append(why, "the call has no index components, so it is a copy"), false;
  if (nest.row_rank() > 0 || !is_width(nest.block))
    return append(why, "each index tuple moves ", row_bytes(nest),
                  " bytes, which are copied in the order of the indices"),
           false;
  if (nest.components > 1)
    return append(why, "each index tuple has ", int64_t{nest.components},
                  " components, so items are copied one by one"),
           false;
  if (p.bytes / 2 >= thresholds().small_call_bytes) return true;
  append(why, "the call moves ", p.bytes / 2, " bytes; other algorithms are faster from ",
         thresholds().small_call_bytes, " bytes on");
  return false;
}

bool applies_gather_direct(const Program& p, int, std::string* why) {
  if (why != nullptr && gathers_items(p, why)) append_why_direct(p.nest, why);
  return true;
}

RunResult run_units_of(const Split& s, const Execution& call, const GatherTask& task) {
  std::atomic<bool> all_valid{true};
  const bool finished = run_split(s, call.poll, [&](int64_t begin, int64_t end, int worker) {
    if (all_valid.load(std::memory_order_relaxed) && !task(begin, end, worker))
      all_valid.store(false, std::memory_order_relaxed);
  });
  return {finished, all_valid.load()};
}

RunResult gather_direct(const Program& p, const Execution& call, bool streams) {
  const Nest& nest = p.nest;
  if (!is_long(p)) {  // too short to be divided
    const Range everything{nest.line_loop().extent, 0, points(nest, p.unit_loops)};
    return {.valid = chosen_kernels().gather(nest, p.unit_loops, call.operands, everything, streams)};
  }
  const Split s = split(points(nest, p.unit_loops), nest.line_loop().extent, true, p.line_chunk,
                        work_bytes(p), call.threads);
  return run_units_of(s, call, [&](int64_t begin, int64_t end, int) {
    return chosen_kernels().gather(nest, p.unit_loops, call.operands, {s.chunk, begin, end}, streams);
  });
}

RunResult run_gather_direct(const Program& p, const Execution& call) { return gather_direct(p, call, false); }

}  // namespace gatherum
