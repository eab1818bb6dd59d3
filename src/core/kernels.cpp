// The kernels, compiled once for each instruction-set level (GATHERUM_LEVEL is the namespace). All
// templates of this file use types of that namespace, so that the linker can never take a function
// of one level for another's.
#include <cmath>

#include "dispatch.hpp"
#include "scatter_grouped.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

bool is_line(const Nest& nest) { return nest.row_rank() == 0; }

bool gather(const Nest& nest, int units, const Operands& at, const Range& range) {
  return by_width(nest.block, [&](auto width) {
    constexpr int W = decltype(width)::value;
    if constexpr (W != 0)
      if (is_line(nest) && nest.item == W)
        return gather_blocks(nest, units, at, range, GatherLine<W>{nest, at});
    return gather_blocks(nest, units, at, range, GatherRow<W>{nest, at});
  });
}

template <class Apply>
void scatter_with(const Nest& nest, int units, const Operands& at, const Range& range, const Apply& apply,
                  bool line) {
  if (line)
    scatter_blocks(nest, units, at, range, ScatterLine<Apply>{nest, at, apply});
  else
    scatter_blocks(nest, units, at, range, ScatterRow<Apply>{nest, at, apply});
}

void scatter(const Nest& nest, int units, const Operands& at, const Range& range, const Combine& how) {
  if (how.reduction == Reduction::none) {
    by_width(nest.block, [&](auto width) {
      constexpr int W = decltype(width)::value;
      scatter_with(nest, units, at, range, Set<W>{nest.block}, is_line(nest) && W != 0);
    });
    return;
  }
  const FloatMode mode;
  by_value(how.value, how.reduction, [&](auto fold) {
    const FoldInto<decltype(fold)> apply{nest.block / nest.item};
    scatter_with(nest, units, at, range, apply, is_line(nest) && nest.block == nest.item);
  });
}

bool scatter_grouped(const Nest& nest, const Nest& ids, int units, const Operands& at, const Range& range,
                     const Combine& how, int64_t destinations) {
  const FloatMode mode;
  return by_value(how.value, how.reduction, [&](auto fold) {
    return scatter_by_group<decltype(fold)>(nest, ids, units, at, range, how.include_self, destinations);
  });
}

// The first invalid component of the tuple at `at`, told from a fresh look; component -1 when another
// thread has changed the indices and nothing is wrong any more.
Invalid examine(const Nest& nest, const char* at, int64_t position) {
  for (int c = 0; c < nest.components; ++c) {
    int64_t value = 0, offset = 0, bad = 0;
    load(nest.index, at + nest.component[c].offset, 0, 1, &value);
    forget(&value);
    if (add_component(nest, c == 0 ? 0 : c, 1, &value, &offset, &bad) != 0) return {position, value, c};
  }
  return {position, 0, -1};
}

Invalid first_invalid(const Nest& nest, const char* index, int64_t begin, int64_t end) {
  Blocks blocks(nest, nest.line, {nest.line_loop().extent, begin, end});
  int64_t position = begin * nest.line_loop().extent;
  Block block;
  while (stage_next(nest, index, blocks, block)) {
    for (int j = 0; block.any_invalid && j < block.n; ++j) {
      if (block.offsets[j] != kInvalid) continue;
      const char* at = index + block.place.index + j * nest.line_loop().index;
      return examine(nest, at, position + j);
    }
    position += block.n;
  }
  return {};
}

void number(const Nest& ids, const char* index, int64_t* numbers) {
  int64_t units = ids.outer_count();
  Blocks blocks(ids, ids.line, {ids.line_loop().extent, 0, units});
  Place place;
  int n = 0;
  while (blocks.next(place, n)) {
    if (stage(ids, index + place.index, ids.line_loop().index, n, numbers))
      for (int j = 0; j < n; ++j) numbers[j] = numbers[j] == kInvalid ? -1 : numbers[j];
    for (int j = 0; j < n; ++j)
      numbers[j] = numbers[j] < 0 ? -1 : numbers[j] + place.data + j * ids.line_loop().data;
    numbers += n;
  }
}

}  // namespace

const Kernels& kernels() {
  static const Kernels table = {GATHERUM_LEVEL_NAME, gather, first_invalid, scatter, scatter_grouped, number};
  return table;
}

}  // namespace gatherum::GATHERUM_LEVEL

namespace gatherum {
const Kernels& GATHERUM_KERNELS() { return GATHERUM_LEVEL::kernels(); }
}  // namespace gatherum
