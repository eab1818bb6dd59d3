#include "model/shape_rules.hpp"

#include <cstdint>
#include <utility>

namespace gatherum {
namespace {

using Sizes = std::vector<int64_t>;

constexpr int64_t kMaxRank = kMaxLoops;

// Returns true if an operand has more bytes than an address can count, or, if its elements have no bytes,
// more elements than that.
bool is_too_big(const Sizes& shape, int64_t item) {
  int64_t size = std::max<int64_t>(item, 1);
  for (int64_t extent : shape) {
    if (extent > 1 && size > PTRDIFF_MAX / extent) return true;
    size *= std::max<int64_t>(extent, 1);
  }
  return false;
}

Finding wrong_shape(Fault fault, Operand operand, Sizes wanted = {}) {
  return {fault, operand, 0, 0, 0, std::move(wanted)};
}

Finding check_rank(Operand operand, int64_t rank) {
  if (rank <= kMaxRank) return {};
  return {.fault = Fault::too_many_dimensions, .operand = operand, .expected = kMaxRank, .found = rank};
}

Finding check_operand(Operand operand, const OperandLayout& layout, int64_t item) {
  if (const Finding f = check_rank(operand, layout.rank())) return f;
  return is_too_big(layout.shape, item) ? wrong_shape(Fault::operand_too_big, operand) : Finding{};
}

// Computes the layout of an operand that is broadcast to a shape by NumPy's rule. Returns false if the
// operand does not broadcast to the shape.
bool broadcast_layout(const OperandLayout& from, const Sizes& shape, OperandLayout& to) {
  if (from.shape.size() > shape.size()) return false;
  const size_t missing = shape.size() - from.shape.size();
  to = {shape, Sizes(shape.size(), 0)};
  for (size_t d = 0; d < from.shape.size(); ++d) {
    if (from.shape[d] != shape[missing + d] && from.shape[d] != 1) return false;
    if (from.shape[d] == shape[missing + d]) to.strides[missing + d] = from.strides[d];
  }
  return true;
}

Finding check_result(const Sizes& shape, int64_t item) {
  if (const Finding f = check_rank(Operand::result, static_cast<int64_t>(shape.size()))) return f;
  return is_too_big(shape, item) ? wrong_shape(Fault::result_too_big, Operand::result, shape) : Finding{};
}

// The layout of the result, or of `out` if it is given.
Finding find_result_layout(const ShapedCall& call, const Sizes& shape, int64_t item, OperandLayout& result) {
  result = call.out == nullptr ? contiguous_layout(shape, item) : *call.out;
  if (result.shape != shape) return wrong_shape(Fault::other_shape, Operand::out, shape);
  if (call.out != nullptr && overlaps_itself(result, item))
    return wrong_shape(Fault::overlaps_itself, Operand::out, shape);
  return {};
}

// The number of components of an index tuple. Components are checked only if a tuple has any.
int64_t components_of(const ShapedCall& call) {
  return call.addressing.takes_tuples ? call.indices.shape.back() : 1;
}

Finding check_operands(const ShapedCall& call, const Program& p, int64_t& axis, Roles& roles, Sizes& moved) {
  if (const Finding f = resolve_attribute(call, axis)) return f;
  if (const Finding f = check_operand(Operand::data, call.data, p.item)) return f;
  if (const Finding f = check_operand(Operand::indices, call.indices, p.index.width)) return f;
  const Sizes &n = call.data.shape, &m = call.indices.shape;
  const auto fits = [&](int64_t d, bool equal) {
    const auto at = static_cast<size_t>(d);
    return equal ? m[at] == n[at] : m[at] <= n[at];
  };
  const int64_t rank = call.data.rank(), components = components_of(call);
  if (const Finding f = find_misfit(call.addressing, rank, call.indices.rank(), components, axis, fits))
    return f;
  roles = roles_of(call.addressing, rank, call.indices.rank(), components, axis);
  for (const auto& [d, e] : roles.moved)
    moved.push_back(e == kNowhere ? n[static_cast<size_t>(d)] : m[static_cast<size_t>(e)]);
  return {};
}

// Computes the layouts of the operands that the loops step through: D (the output of a scatter) and U (the
// output of a gather, or the updates of a scatter).
Finding check_moved(const ShapedCall& call, const Program& p, const Sizes& moved, OperandLayout& data,
                    OperandLayout& moved_layout) {
  if (!p.scatter) {
    data = call.data;
    if (const Finding f = check_result(moved, p.item)) return f;
    return find_result_layout(call, moved, p.item, moved_layout);
  }
  const auto most = static_cast<int64_t>(std::max(moved.size(), call.updates->shape.size()));
  if (const Finding f = check_rank(Operand::updates, most)) return f;
  if (const Finding f = check_operand(Operand::updates, *call.updates, p.item)) return f;
  if (!broadcast_layout(*call.updates, moved, moved_layout))
    return wrong_shape(Fault::other_shape, Operand::updates, moved);
  return find_result_layout(call, call.data.shape, p.item, data);
}

// Returns true if the destinations of all units together are the whole data, laid out as the result. A
// scatter with accumulators then reads the data directly, and the data need not be copied first.
bool covers_data(const ShapedCall& call, const Roles& roles, const OperandLayout& result) {
  if (result.strides != call.data.strides) return false;
  for (int64_t d = roles.addressed.begin; d < roles.addressed.end; ++d) {
    const bool shared = d < roles.indexed.begin || d >= roles.indexed.end;
    const auto at = static_cast<size_t>(d);
    if (shared && call.indices.shape[at] != call.data.shape[at]) return false;
  }
  return true;
}

// Division that rounds down, as in Python.
int64_t floor_division(int64_t n, int64_t by) { return n / by - (n % by < 0 ? 1 : 0); }

// A nonnegative stride and its number of steps, for a layout that may overlap itself.
struct Steps {
  int64_t stride, extent;
};

// Returns true if a combination of at most `extent - 1` steps in either direction, not all zero, moves by
// less than one item. Also returns true if the search needs more than `kMostSteps` steps. Steps have either
// sign, so this search takes longer than that of engine/overlaps.cpp; it runs once for a plan, not for a
// call.
bool may_collide(const std::vector<Steps>& loops, int64_t item) {
  constexpr int64_t kMostSteps = 100'000;
  struct Pending {
    size_t i;
    int64_t offset;
    bool stepped;
  };
  // back[i] is the distance by which the loops with smaller strides than loop i can step back.
  Sizes back{item - 1};
  for (const Steps& l : loops) {
    back.push_back(back.back() + distance(l.extent - 1, l.stride));
    if (back.back() >= kSizeLimit) return true;
  }
  int64_t steps = 0;
  std::vector<Pending> pending{{loops.size(), 0, false}};
  while (!pending.empty()) {
    auto [i, offset, stepped] = pending.back();
    pending.pop_back();
    if (i == 0) {
      if (stepped) return true;
      continue;
    }
    const auto [stride, extent] = loops[--i];
    const int64_t low = std::max(1 - extent, -floor_division(offset + back[i], stride));
    const int64_t high = std::min(extent - 1, floor_division(back[i] - offset, stride));
    steps += std::max<int64_t>(0, high - low + 1);
    if (steps > kMostSteps) return true;
    for (int64_t d = low; d <= high; ++d) pending.push_back({i, offset + d * stride, stepped || d != 0});
  }
  return false;
}

// Returns true if two elements share a byte. Compares all offsets if there are few. Strides ascend.
bool collides(const std::vector<Steps>& loops, int64_t item, int64_t few) {
  if (loops.front().stride == 0) return true;
  int64_t count = 1, reach = 0;
  for (const Steps& l : loops) {
    count = limited_product(count, l.extent);
    reach += distance(l.extent - 1, l.stride);
    if (reach >= kSizeLimit) return true;
  }
  if (count > few) return may_collide(loops, item);
  Sizes offsets{0};
  for (const Steps& l : loops) {
    const size_t n = offsets.size();
    for (int64_t k = 1; k < l.extent; ++k)
      for (size_t i = 0; i < n; ++i) offsets.push_back(offsets[i] + k * l.stride);
  }
  std::sort(offsets.begin(), offsets.end());
  for (size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] - offsets[i - 1] < item) return true;
  return false;
}

}  // namespace

namespace {

// Returns true if the attribute is `batch_dims`, which counts dimensions of the indices. `axis` counts
// dimensions of the data, also from the end.
bool counts_indices(const Addressing& addressing) { return addressing.takes_tuples; }

}  // namespace

int64_t rank_of_attribute(const ShapedCall& call) {
  return (counts_indices(call.addressing) ? call.indices : call.data).rank();
}

Finding resolve_attribute(const ShapedCall& call, int64_t& axis) {
  const bool from_front = counts_indices(call.addressing);
  const Operand operand = from_front ? Operand::indices : Operand::data;
  const int64_t rank = rank_of_attribute(call);
  if (rank == 0) return {.fault = Fault::too_few_dimensions, .operand = operand, .expected = 1};
  const int64_t low = from_front ? 0 : -rank;
  if (call.axis < low || call.axis >= rank)
    return {
        .fault = Fault::out_of_range, .operand = operand, .expected = rank, .found = call.axis, .least = low};
  axis = call.axis < 0 ? call.axis + rank : call.axis;
  return {};
}

bool overlaps_itself(const OperandLayout& layout, int64_t item, int64_t few) {
  if (layout.is_empty() || item == 0) return false;
  std::vector<Steps> loops;
  for (size_t d = 0; d < layout.shape.size(); ++d)
    if (layout.shape[d] > 1) loops.push_back({distance(1, layout.strides[d]), layout.shape[d]});
  std::sort(loops.begin(), loops.end(), [](const Steps& one, const Steps& other) {
    return std::pair(one.stride, one.extent) < std::pair(other.stride, other.extent);
  });
  int64_t reach = item;
  for (const Steps& l : loops) {
    if (l.stride < reach) return collides(loops, item, few);
    reach = std::min(reach + distance(l.extent - 1, l.stride), kSizeLimit);
  }
  return false;
}

Finding lower_checked(const ShapedCall& call, Program& p, std::vector<int64_t>& moved) {
  int64_t axis = 0;
  Roles roles;
  OperandLayout data, moved_layout;
  if (Finding f = check_operands(call, p, axis, roles, moved)) return f;
  if (Finding f = check_moved(call, p, moved, data, moved_layout)) return f;
  Loops loops;
  Components components;
  list_loops(roles, data, call.indices, moved_layout, loops, components);
  // Indices are checked even if no element is moved.
  if (!moved_layout.is_empty() && p.item > 0) lower_call(loops, components, p);
  const OperandLayout entries = entries_of(call.addressing, call.indices);
  if (!components.empty() && !entries.is_empty()) p.checks = lower_checks(entries, components);
  if (p.scatter && p.item > 0 && !call.data.is_empty()) p.copy = lower_copy(call.data, data, p.item);
  p.covers_data = covers_data(call, roles, data);
  const Sizes& result = p.scatter ? call.data.shape : moved;
  p.result.rank = static_cast<int>(result.size());
  std::copy(result.begin(), result.end(), p.result.extent);
  return {};
}

}  // namespace gatherum
