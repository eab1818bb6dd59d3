// Kernel: kernels/scatter_rows.hpp. One unit of rows: each thread applies all updates to its share of the
// columns.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

// A share of the columns: its first byte in a row, and its size in bytes.
struct Columns {
  int64_t begin, bytes;
};

// Returns the i-th of n shares. Shares are cut at cache lines of the output if rows are aligned to them.
Columns columns_of(const Program& p, const char* out, int64_t i, int64_t n) {
  const auto cut = [&](int64_t share) {
    if (share == 0 || share == n) return share * p.nest.block / n;
    const int64_t about = p.nest.block * share / n;
    const auto past =
        static_cast<int64_t>((reinterpret_cast<uintptr_t>(out) + static_cast<uintptr_t>(about)) %
                             static_cast<uintptr_t>(kCacheLine));
    return (about - past) / p.item * p.item;
  };
  return {cut(i), cut(i + 1) - cut(i)};
}

}  // namespace

bool applies_by_column(const Program& p, int threads, std::string* why) {
  if (threads == 1 || !is_one_unit(p) || p.nest.row_rank() > 0) return false;
  if (p.nest.block < limited_product(threads, thresholds().least_column_bytes) || p.item > kCacheLine)
    return false;
  append_why_no_accumulators(p, why);
  append(why, "; each of ", int64_t{threads}, " threads writes its share of the columns");
  return true;
}

// Every thread reads all indices in order, so each element folds its updates in order. Each part of an update
// is read by only one thread. If each thread processed the rows of some destinations instead, the processor
// would also prefetch adjacent rows (1M rows of 64 float32 into 100k on an EPYC: 65 ms with shares of the
// rows on two threads, 45 ms with shares of the columns, 38 ms on one thread).
RunResult run_by_column(const Program& p, const Execution& call) {
  All valid;
  const bool finished = run_tasks(call.threads, call.threads, call.poll, [&](int64_t i, int) {
    const Columns columns = columns_of(p, call.operands.data, i, call.threads);
    Nest nest = p.nest;
    nest.block = columns.bytes;
    Operands operands = call.operands;
    operands.data += columns.begin;
    operands.moved += columns.begin;
    const Range everything{.chunk = nest.line_loop().extent, .begin = 0, .end = 1};
    valid &= chosen_kernels().scatter(nest, p.unit_loops, operands, everything, p.fold_rule, {});
  });
  return {finished, static_cast<bool>(valid)};
}

}  // namespace gatherum
