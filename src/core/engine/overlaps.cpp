#include "engine/overlaps.hpp"

#include <numeric>

namespace gatherum {
namespace {

using FootprintLoop = Footprint::Loop;

// The bytes [low, high) of memory.
struct Interval {
  int64_t low, high;

  bool is_empty() const { return low >= high; }
  bool intersects(const Interval& other) const {
    return !is_empty() && !other.is_empty() && low < other.high && other.low < high;
  }
};

Interval interval_of(const Footprint& f) {
  Reach reach;
  for (const FootprintLoop& loop : f.loops) {
    if (loop.extent < 1) return {f.start, f.start};
    reach.add(loop.extent, loop.stride);
  }
  return {f.start + reach.low, f.start + std::min(reach.high, kSizeLimit) + f.block};
}

Interval interval_of(const void* start, const Reach& reach) {
  const auto at = static_cast<int64_t>(reinterpret_cast<intptr_t>(start));
  return {at + reach.low, at + reach.high};
}

// Searches for a sum of z * stride in a window, where each loop has a z in [0, extent).
class SumSearch {
 public:
  // Strides are above 0, in ascending order.
  explicit SumSearch(std::vector<FootprintLoop> loops) : loops_(std::move(loops)) {
    for (const FootprintLoop& loop : loops_) {
      reach_.push_back(reach_.back() + (loop.extent - 1) * loop.stride);
      divisor_.push_back(std::gcd(divisor_.back(), loop.stride));
    }
  }

  // Returns true if a sum is in [low, high], or if the search takes more than kMostSteps steps.
  bool reaches(int64_t low, int64_t high) { return reaches(loops_.size(), low, high); }

 private:
  static constexpr int64_t kMostSteps = 10'000;

  bool reaches(size_t n, int64_t low, int64_t high) {
    low = std::max<int64_t>(low, 0);
    high = std::min(high, reach_[n]);
    if (low > high) return false;
    if (n == 0) return true;
    if (high / divisor_[n] * divisor_[n] < low) return false;
    if (n == 1) return true;  // every multiple of the stride is a sum
    const auto [extent, stride] = loops_[n - 1];
    const int64_t needed = low - reach_[n - 1];  // the least product of z and the stride
    const int64_t first = needed <= 0 ? 0 : (needed - 1) / stride + 1;
    const int64_t last = std::min(extent - 1, high / stride);
    for (int64_t z = first; z <= last; ++z)
      if (++steps_ > kMostSteps || reaches(n - 1, low - z * stride, high - z * stride)) return true;
    return false;
  }

  std::vector<FootprintLoop> loops_;
  std::vector<int64_t> reach_{0}, divisor_{0};  // of the first n loops
  int64_t steps_ = 0;
};

// The loops of both footprints in ascending order of their strides, with loops of equal stride combined.
std::vector<FootprintLoop> merge_loops(const Footprint& one, const Footprint& other) {
  std::vector<FootprintLoop> all;
  for (const Footprint* f : {&one, &other})
    for (const FootprintLoop& loop : f->loops)
      if (loop.extent > 1 && loop.stride != 0) all.push_back({loop.extent, std::abs(loop.stride)});
  std::sort(all.begin(), all.end(),
            [](const FootprintLoop& a, const FootprintLoop& b) { return a.stride < b.stride; });
  std::vector<FootprintLoop> merged;
  for (const FootprintLoop& loop : all) {
    if (!merged.empty() && merged.back().stride == loop.stride)
      merged.back().extent += loop.extent - 1;
    else
      merged.push_back(loop);
  }
  return merged;
}

}  // namespace

Footprint data_footprint(const Nest& nest, const void* start) {
  Footprint f(start, nest.block);
  for (int i = 0; i < nest.rank; ++i) f.add(nest.loops[i].extent, nest.loops[i].data);
  for (int c = 0; c < nest.components; ++c) f.add(nest.component[c].size, nest.component[c].stride);
  return f;
}

Footprint moved_footprint(const Nest& nest, const void* start) {
  Footprint f(start, nest.block);
  for (int i = 0; i < nest.rank; ++i) f.add(nest.loops[i].extent, nest.loops[i].moved);
  return f;
}

bool shares_memory(const Footprint& one, const Footprint& other) {
  if (one.block < 1 || other.block < 1) return false;
  const Interval a = interval_of(one), b = interval_of(other);
  if (!a.intersects(b)) return false;
  if (a.high - a.low >= kSizeLimit || b.high - b.low >= kSizeLimit) return true;
  // Each block of one footprint begins at a.low + (a sum of its steps). Each block of the other footprint
  // begins at (the start of its last block) - (a sum of its steps). Two blocks share a byte if their starts
  // are less than a block apart.
  const int64_t apart = b.high - other.block - a.low;
  int64_t low = apart + 1 - one.block;
  const int64_t high = apart + other.block - 1;
  std::vector<FootprintLoop> loops = merge_loops(one, other);
  auto next = loops.begin();
  for (; next != loops.end() && next->stride <= high - low + 1; ++next)  // steps without gaps
    low -= (next->extent - 1) * next->stride;
  loops.erase(loops.begin(), next);
  return SumSearch(std::move(loops)).reaches(low, high);
}

bool shares_indices(const Footprint& one, const Program& p, const void* indices) {
  for (int c = 0; c < p.checks.components; ++c) {
    Footprint f(static_cast<const char*>(indices) + p.checks.component[c].offset, p.index.width);
    for (int i = 0; i < p.checks.rank; ++i) f.add(p.checks.loops[i].extent, p.checks.loops[i].index);
    if (shares_memory(one, f)) return true;
  }
  return false;
}

const char* find_shared(const Footprint& written, const std::vector<NamedFootprint>& operands) {
  for (const NamedFootprint& operand : operands)
    if (shares_memory(written, operand.bytes)) return operand.name;
  return nullptr;
}

bool is_in_place(const Program& p, const gatherum_operands& operands) {
  if (!p.scatter || operands.data.start != operands.out.start) return false;
  for (int i = 0; i < p.copy.rank; ++i)
    if (const auto& loop = p.copy.loops[i]; strides_differ(loop.extent, loop.data, loop.moved)) return false;
  return true;
}

const char* find_null(const Program& p, const gatherum_operands& operands) {
  const auto is_null = [](const gatherum_buffer& b, const Reach& r) {
    return b.start == nullptr && !r.is_empty();
  };
  if (is_null(operands.data, p.reaches.data)) return "data";
  if (is_null(operands.indices, p.reaches.indices)) return "indices";
  if (is_null(operands.updates, p.reaches.updates)) return "updates";
  return is_null(operands.out, p.reaches.out) ? "out" : nullptr;
}

const char* find_overlap(const Program& p, const gatherum_operands& operands) {
  const Interval out = interval_of(operands.out.start, p.reaches.out);
  const auto intersects = [&](const void* start, const Reach& reach) {
    return out.intersects(interval_of(start, reach));
  };
  const auto written = [&] {
    return p.scatter && !p.has_copy ? data_footprint(p.nest, operands.out.start)
                                    : moved_footprint(p.scatter ? p.copy : p.nest, operands.out.start);
  };
  if (intersects(operands.data.start, p.reaches.data) && !is_in_place(p, operands) &&
      shares_memory(written(), data_footprint(p.scatter ? p.copy : p.nest, operands.data.start)))
    return "data";
  if (intersects(operands.indices.start, p.reaches.indices) &&
      shares_indices(written(), p, operands.indices.start))
    return "indices";
  if (p.scatter) {
    const bool shared = intersects(operands.updates.start, p.reaches.updates) &&
                        shares_memory(written(), moved_footprint(p.nest, operands.updates.start));
    return shared ? "updates" : nullptr;
  }
  const bool fills = p.mode == Mode::drop && operands.fill != nullptr;
  return fills && intersects(operands.fill, {0, p.item}) && shares_memory(written(), {operands.fill, p.item})
             ? "fill"
             : nullptr;
}

}  // namespace gatherum
