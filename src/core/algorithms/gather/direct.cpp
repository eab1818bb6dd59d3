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

bool applies_gather_direct(const Program& p, int, std::string* why) {
  if (why != nullptr && gathers_items(p, why)) append_why_direct(p.nest, why);
  return true;
}

RunResult gather_direct(const Program& p, const Execution& call, bool streams) {
  const Nest& nest = p.nest;
  if (!is_long(p)) {  // too short to be divided
    const Range everything{.chunk = nest.line_loop().extent, .begin = 0, .end = points(nest, p.unit_loops)};
    return {.valid = chosen_kernels().gather(nest, p.unit_loops, call.operands, everything, streams)};
  }
  const Split s = split(points(nest, p.unit_loops), nest.line_loop().extent, true, p.line_chunk,
                        work_bytes(p), call.threads);
  return run_units_of(s, call, [&](int64_t begin, int64_t end, int) {
    return chosen_kernels().gather(nest, p.unit_loops, call.operands,
                                   {.chunk = s.chunk, .begin = begin, .end = end}, streams);
  });
}

RunResult run_gather_direct(const Program& p, const Execution& call) { return gather_direct(p, call, false); }

}  // namespace gatherum
