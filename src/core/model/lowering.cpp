#include "model/lowering.hpp"

#include <iterator>

namespace gatherum {
namespace {

constexpr Loop kOnce{1, 0, 0, 0};
// The number of columns that are processed together if the indexed axis is not the last axis: 128 lines of
// the data at a time.
constexpr int64_t kLineChunk = 128;

uint64_t magnitude(int64_t n) { return n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n); }

// The offsets of an array's elements fit in 64 bits, but the offset one step further may not.
int64_t wrapped_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

bool steps_as_one(const Loop& outer, const Loop& inner) {
  return outer.data == wrapped_product(inner.extent, inner.data) &&
         outer.index == wrapped_product(inner.extent, inner.index) &&
         outer.moved == wrapped_product(inner.extent, inner.moved);
}

struct BodyAndRows {
  Loops body, rows;
  int64_t block;
};

// Row loops read no index. In a scatter, they must also step through the data, so that their points are
// independent of each other.
BodyAndRows split_rows(const Loops& loops, bool scatter, int64_t item) {
  size_t end = loops.size();
  while (end > 0 && loops[end - 1].index == 0 && !(scatter && loops[end - 1].data == 0)) --end;
  const auto middle = loops.begin() + static_cast<std::ptrdiff_t>(end);
  // Rows may run in any order, so the smallest strides are innermost.
  Loops rows(middle, loops.end());
  std::stable_sort(rows.begin(), rows.end(), [](const Loop& one, const Loop& other) {
    return magnitude(one.data) + magnitude(one.moved) > magnitude(other.data) + magnitude(other.moved);
  });
  rows = collapse(rows);
  int64_t block = item;
  const auto continues = [&](const Loop& row) {
    return row.data == block && row.moved == block &&
           block <= kSizeLimit / std::max<int64_t>(row.extent, 1);  // otherwise it is a loop
  };
  for (; !rows.empty() && continues(rows.back()); rows.pop_back()) block *= rows.back().extent;
  return {Loops(loops.begin(), middle), rows, block};
}

// Removes the last loop of the body, which becomes the line.
Loop take_line(Loops& body) {
  if (body.empty()) return kOnce;
  const Loop line = body.back();
  body.pop_back();
  return line;
}

// Moves the loops that step through the data, and so enumerate units, to the front. Otherwise the order is
// unchanged. Returns the number of these loops.
size_t put_units_first(Loops& body) {
  const auto along =
      std::stable_partition(body.begin(), body.end(), [](const Loop& loop) { return loop.data != 0; });
  return static_cast<size_t>(along - body.begin());
}

Nest make_nest(const Loops& outer, const Loop* line, const Loops& rows, const Components& components,
               int64_t block) {
  Nest nest;
  Loops all = outer;
  if (line != nullptr) all.push_back(*line);
  nest.line = static_cast<int>(all.size()) - 1;
  all.insert(all.end(), rows.begin(), rows.end());
  nest.rank = all.size() > kMaxLoops ? 0 : static_cast<int>(all.size());  // 0: complete() rejects it
  std::copy_n(all.begin(), nest.rank, nest.loops);
  nest.components = static_cast<int>(components.size());
  std::copy(components.begin(), components.end(), nest.component);
  nest.block = block;
  return nest;
}

// All points of a gather are independent.
void lower_gather(const Loops& loops, const Components& components, Program& p) {
  auto [body, rows, block] = split_rows(collapse(loops), false, p.item);
  const Loop line = take_line(body);
  p.unit_loops = static_cast<int>(body.size());
  p.line_chunk = 0;
  p.split_line = true;
  if (line.data != 0) {  // columns are walked in chunks, so that the lines read stay in cache
    const size_t unit_loops = put_units_first(body);
    p.unit_loops = static_cast<int>(unit_loops);
    p.line_chunk = unit_loops < body.size() ? kLineChunk : 0;
  }
  p.nest = make_nest(body, &line, rows, components, block);
}

// Loops that step through the data are outermost, because their points are independent of each other. The
// other loops are the fold, whose order matters, and keep their order.
void lower_scatter(const Loops& loops, const Components& components, Program& p) {
  auto [body, rows, block] = split_rows(collapse(loops), true, p.item);
  Loops fold = body;
  const Loop line = take_line(body);
  const size_t unit_loops = put_units_first(body);
  p.unit_loops = static_cast<int>(unit_loops);
  p.split_line = line.data != 0;
  p.line_chunk = p.split_line && unit_loops < body.size() ? kLineChunk : 0;
  p.nest = make_nest(body, &line, rows, components, block);
  // Lower the call a second time, with the whole fold inside each unit: no line moves the data.
  const size_t fold_unit_loops = put_units_first(fold);
  if (fold_unit_loops == fold.size()) fold.push_back(kOnce);
  p.fold_unit_loops = static_cast<int>(fold_unit_loops);
  p.fold_nest = make_nest(fold, nullptr, rows, components, block);
}

}  // namespace

OperandLayout contiguous_layout(const std::vector<int64_t>& shape, int64_t item) {
  OperandLayout layout{shape, std::vector<int64_t>(shape.size())};
  int64_t step = item;
  for (size_t d = shape.size(); d-- > 0;) {
    layout.strides[d] = step;
    step = wrapped_product(step, std::max<int64_t>(shape[d], 1));
  }
  return layout;
}

Roles roles_of(const Addressing& addressing, int64_t rank, int64_t indices_rank, int64_t components,
               int64_t axis) {
  const auto [takes_tuples, shares_front, shares_back] = addressing;
  Roles roles{};
  roles.indexed = {axis, axis + components};
  const int64_t first = shares_front ? axis : 0;
  roles.entries = {first, shares_back ? first + 1 : std::max(first, indices_rank - (takes_tuples ? 1 : 0))};
  for (int64_t d = 0; d < axis; ++d) roles.moved.push_back({d, shares_front ? d : kNowhere});
  for (int64_t e = roles.entries.begin; e < roles.entries.end; ++e) roles.moved.push_back({kNowhere, e});
  for (int64_t d = roles.indexed.end; d < rank; ++d) roles.moved.push_back({d, shares_back ? d : kNowhere});
  roles.addressed = {shares_front ? 0 : axis, shares_back ? rank : roles.indexed.end};
  return roles;
}

OperandLayout entries_of(const Addressing& addressing, const OperandLayout& indices) {
  OperandLayout entries = indices;
  if (addressing.takes_tuples) {
    entries.shape.pop_back();
    entries.strides.pop_back();
  }
  return entries;
}

void list_loops(const Roles& roles, const OperandLayout& data, const OperandLayout& indices,
                const OperandLayout& moved_layout, Loops& loops, Components& components) {
  const bool reads = roles.indexed.begin < roles.indexed.end;
  for (size_t i = 0; i < roles.moved.size(); ++i) {
    const auto [d, e] = roles.moved[i];
    const auto step = [](const OperandLayout& of, int64_t number) {
      return of.strides[static_cast<size_t>(number)];
    };
    loops.push_back({moved_layout.shape[i], d == kNowhere ? 0 : step(data, d),
                     e == kNowhere || !reads ? 0 : step(indices, e), moved_layout.strides[i]});
  }
  // The components of a tuple are in the last dimension of the indices.
  for (int64_t c = 0; c < roles.indexed.end - roles.indexed.begin; ++c) {
    const auto d = static_cast<size_t>(roles.indexed.begin + c);
    components.push_back({data.shape[d], data.strides[d], c == 0 ? 0 : c * indices.strides.back()});
  }
}

Loops collapse(const Loops& loops) {
  Loops merged;
  for (const Loop& loop : loops) {
    if (loop.extent == 1) continue;
    if (!merged.empty() && steps_as_one(merged.back(), loop)) {
      const int64_t extent = merged.back().extent * loop.extent;
      merged.back() = loop;
      merged.back().extent = extent;
    } else {
      merged.push_back(loop);
    }
  }
  return merged;
}

Nest lower_checks(const OperandLayout& entries, const Components& components) {
  Loops loops;
  for (size_t d = 0; d < entries.shape.size(); ++d)
    loops.push_back({entries.shape[d], 0, entries.strides[d], 0});
  loops = collapse(loops);
  if (loops.empty()) loops.push_back(kOnce);
  return make_nest(loops, nullptr, {}, components, 0);
}

Nest lower_numbers(const Addressing& addressing, int64_t axis, const OperandLayout& space,
                   const OperandLayout& indices) {
  const int64_t components = addressing.takes_tuples ? indices.shape.back() : 1;
  const Roles roles = roles_of(addressing, space.rank(), indices.rank(), components, axis);
  Loops loops;
  Components steps;
  list_loops(roles, space, indices, contiguous_layout(entries_of(addressing, indices).shape, 1), loops,
             steps);
  loops = collapse(loops);
  if (loops.empty()) loops.push_back(kOnce);
  return make_nest(loops, nullptr, {}, steps, 1);
}

Nest lower_copy(const OperandLayout& source, const OperandLayout& target, int64_t item) {
  Loops loops;
  for (size_t d = 0; d < source.shape.size(); ++d)
    loops.push_back({source.shape[d], source.strides[d], 0, target.strides[d]});
  BodyAndRows split = split_rows(loops, false, item);
  const Loop line = split.rows.empty() ? kOnce : split.rows.front();
  if (!split.rows.empty()) split.rows.erase(split.rows.begin());
  return make_nest({}, &line, split.rows, {}, split.block);
}

void lower_call(const Loops& loops, const Components& components, Program& program) {
  program.scatter ? lower_scatter(loops, components, program) : lower_gather(loops, components, program);
}

}  // namespace gatherum
