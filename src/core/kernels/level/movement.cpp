// The kernels, compiled once for each instruction-set level (GATHERUM_LEVEL is the namespace). All templates
// in this file use types from that namespace, so that the linker cannot merge functions of different levels.
//
// This translation unit implements movement, reductions that use no accumulators, the checks of indices, and
// the table of kernels.
#include "kernels/dispatch.hpp"
#include "kernels/gather_packed.hpp"
#include "kernels/gather_stretches.hpp"
#include "kernels/scatter_last.hpp"
#include "kernels/scatter_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

// Calls `f(width)` for the item widths that support streaming stores.
template <class F>
bool by_streamed(int64_t bytes, F&& f) {
  if (bytes == 4) return f(std::integral_constant<int, 4>{});
  if (bytes == 8) return f(std::integral_constant<int, 8>{});
  return f(std::integral_constant<int, kStreamed>{});
}

// Calls `f(width, streams)`, where `width` is the size of an item, and `streams` is true if streaming stores
// are used.
template <class F>
bool by_target(int64_t bytes, bool streams, F&& f) {
  if (streams) return by_streamed(bytes, [&](auto width) { return f(width, std::true_type{}); });
  return by_item(bytes, [&](auto width) { return f(width, std::false_type{}); });
}

bool gather(const Nest& nest, int unit_loops, const Operands& operands, const Range& range, bool streams) {
  if (streams && nest.block <= kStreamed && nest.row_rank() == 0)
    return by_streamed(nest.block, [&](auto width) {
      return gather_lines<decltype(width)::value, true>(nest, unit_loops, operands, range, false);
    });
  if (streams) return gather_rows<0, true>(nest, unit_loops, operands, range);
  const bool by_lines = runs_by_lines(nest, {});
  return by_width(nest.block, [&](auto width) {
    constexpr int W = decltype(width)::value;
    if constexpr (W != 0)
      if (by_lines) return gather_lines<W>(nest, unit_loops, operands, range, false);
    return gather_rows<W, false>(nest, unit_loops, operands, range);
  });
}

bool gather_stretches(const Nest& nest, const Operands& operands, int64_t begin, int64_t end,
                      int64_t* scratch, bool streams) {
  return by_target(nest.block, streams, [&](auto width, auto past) {
    return GATHERUM_LEVEL::gather_stretches<width(), past()>(nest, operands, begin, end, scratch);
  });
}

bool gather_packed(const PackedGather& call, const Operands& operands, int64_t begin, int64_t end,
                   char* scratch) {
  return by_target(call.nest->block, call.streams, [&](auto width, auto past) {
    return GATHERUM_LEVEL::gather_packed<width(), past()>(call, operands, begin, end, scratch);
  });
}

template <class Apply>
bool scatter_lines(const Nest& nest, int unit_loops, const Operands& operands, const Range& range,
                   const DestinationRange& owned, const Apply& apply) {
  if (const int tuples = owned.all() ? tuples_at_once(nest, unit_loops, range) : 0; tuples > 0)
    return scatter_at_once(nest, operands, tuples, apply);
  return scatter_tiles(nest, unit_loops, operands, range, owned, ScatterLine<Apply>{nest, operands, apply});
}

template <class Apply>
bool scatter_rows(const Nest& nest, int unit_loops, const Operands& operands, const Range& range,
                  const DestinationRange& owned, const Apply& apply) {
  return scatter_tiles(nest, unit_loops, operands, range, owned, ScatterRow<Apply>{nest, operands, apply});
}

bool scatter(const Nest& nest, int unit_loops, const Operands& operands, const Range& range,
             const FoldRule& fold_rule, const DestinationRange& owned) {
  const bool by_lines = runs_by_lines(nest, fold_rule);
  if (fold_rule.reduction == Reduction::none) {
    return by_width(nest.block, [&](auto width) {
      constexpr int W = decltype(width)::value;
      const Set<W> set{nest.block};
      if constexpr (W != 0)
        if (by_lines) return scatter_lines(nest, unit_loops, operands, range, owned, set);
      return scatter_rows(nest, unit_loops, operands, range, owned, set);
    });
  }
  const FloatMode mode;
  return by_value<false>(fold_rule.value, fold_rule.reduction, [&](auto fold) -> bool {
    using F = decltype(fold);
    if constexpr (kIsExact<F>)
      impossible();  // exact sums need accumulators
    else if (by_lines)
      return scatter_lines(nest, unit_loops, operands, range, owned, FoldOne<F>{});
    else
      return scatter_rows(nest, unit_loops, operands, range, owned, FoldInto<F>{nest.block / nest.item});
  });
}

// Reads the tuple at `at` again and returns its first invalid component. Returns component -1 if all
// components are valid now, because another thread has changed the indices.
Invalid first_invalid_component(const Nest& nest, const char* address, int64_t position) {
  for (int c = 0; c < nest.components; ++c) {
    int64_t value = 0, offset = 0, invalid = 0;
    load(nest.index, address + nest.component[c].offset, 0, 1, &value);
    compiler_barrier(&value);
    if (add_component(nest, c, 1, &value, &offset, &invalid) != 0)
      return {.position = position, .value = value, .component = c};
  }
  return {.position = position, .value = 0, .component = -1};
}

Invalid first_invalid(const Nest& nest, const char* index, const Range& range) {
  const int64_t line = nest.line_loop().extent, chunks = (line - 1) / range.chunk + 1;
  int64_t position = range.begin / chunks * line + range.begin % chunks * range.chunk;
  for (TileIterator tiles(nest, nest.line, range, index); !tiles.done(); tiles.next()) {
    const Tile& tile = tiles.current();
    for (int j = 0; tile.any_invalid && j < tile.n; ++j)
      if (tile.offsets[j] == kInvalid)
        return first_invalid_component(nest, index + tile.base.index + j * nest.line_loop().index,
                                       position + j);
    position += tile.n;
  }
  return {};
}

// Writes the destination numbers of a tile's tuples. Returns the number of invalid tuples.
int64_t number_tile(const Tile& tile, int64_t step, int64_t* GATHERUM_RESTRICT numbers) {
  const int64_t first = tile.base.data;
  int64_t valid = 0;
  for (int j = 0; j < tile.n; ++j) {
    const bool is_valid = tile.offsets[j] != kInvalid;
    numbers[j] = is_valid ? tile.offsets[j] + first + j * step : -1;
    valid += is_valid ? 1 : 0;
  }
  return tile.n - valid;
}

int64_t write_numbers(const Nest& numbering, const char* index, int64_t* numbers) {
  const Range everything{.chunk = numbering.line_loop().extent, .begin = 0, .end = numbering.outer_count()};
  int64_t invalid = 0;
  for (TileIterator tiles(numbering, numbering.line, everything, index); !tiles.done(); tiles.next()) {
    invalid += number_tile(tiles.current(), numbering.line_loop().data, numbers);
    numbers += tiles.current().n;
  }
  return invalid;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels table = [] {
    Kernels all{};
    all.level = GATHERUM_LEVEL_NAME;
    all.gather = gather;
    all.gather_stretches = gather_stretches;
    all.gather_packed = gather_packed;
    all.copy = copy_bytes;
    all.first_invalid = first_invalid;
    all.scatter = scatter;
    all.last_find = last_find;
    all.last_write = last_write;
    all.write_numbers = write_numbers;
    GATHERUM_SLABS::add_slab_kernels(all);
    GATHERUM_SLABS::add_round_kernels(all);
    GATHERUM_SLABS::add_spread_kernels(all);
    add_grouped_kernels(all);
    add_gradient_kernels(all);
    add_list_kernels(all);
    add_item_kernels(all);
    return all;
  }();
  return table;
}

}  // namespace gatherum::GATHERUM_LEVEL

namespace gatherum {
const Kernels& GATHERUM_KERNELS() { return GATHERUM_LEVEL::kernels(); }
}  // namespace gatherum
