// The kernels, compiled once for each instruction-set level (GATHERUM_LEVEL is the namespace). All
// templates of this file use types of that namespace, so that the linker can never take a function
// of one level for another's.
#include <cmath>

#include "accumulate.hpp"
#include "dispatch.hpp"
#include "gather_packed.hpp"
#include "gather_stretches.hpp"
#include "scatter_grouped.hpp"
#include "scatter_partition.hpp"
#include "scatter_private.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

bool is_line(const Nest& nest) { return nest.row_rank() == 0; }

bool gather(const Nest& nest, int units, const Operands& at, const Range& range, bool streams) {
  return by_width(nest.block, [&](auto width) {
    constexpr int W = decltype(width)::value;
    if constexpr (W != 0)
      if (is_line(nest)) return gather_lines<W>(nest, units, at, range, false);
    return gather_rows<W>(nest, units, at, range, streams);
  });
}

bool gather_stretches(const Nest& nest, const Operands& at, int64_t begin, int64_t end, int64_t* scratch) {
  return by_item(nest.block, [&](auto width) {
    return GATHERUM_LEVEL::gather_stretches<decltype(width)::value>(nest, at, begin, end, scratch);
  });
}

bool gather_packed(const PackedGather& call, const Operands& at, int64_t begin, int64_t end, char* scratch) {
  return by_item(call.nest->block, [&](auto width) {
    return GATHERUM_LEVEL::gather_packed<decltype(width)::value>(call, at, begin, end, scratch);
  });
}

template <class Apply>
bool scatter_lines(const Nest& nest, int units, const Operands& at, const Range& range, const Owned& owned,
                   const Apply& apply) {
  if (const int tuples = owned == nullptr ? tuples_at_once(nest, units, range) : 0; tuples > 0)
    return scatter_at_once(nest, at, tuples, apply);
  return scatter_blocks(nest, units, at, range, owned, ScatterLine<Apply>{nest, at, apply});
}

template <class Apply>
bool scatter_rows(const Nest& nest, int units, const Operands& at, const Range& range, const Owned& owned,
                  const Apply& apply) {
  return scatter_blocks(nest, units, at, range, owned, ScatterRow<Apply>{nest, at, apply});
}

bool scatter_any(const Nest& nest, int units, const Operands& at, const Range& range, const Combine& how,
                 const Owned& owned) {
  if (how.reduction == Reduction::none) {
    return by_width(nest.block, [&](auto width) {
      constexpr int W = decltype(width)::value;
      const Set<W> set{nest.block};
      if constexpr (W != 0)
        if (is_line(nest)) return scatter_lines(nest, units, at, range, owned, set);
      return scatter_rows(nest, units, at, range, owned, set);
    });
  }
  const FloatMode mode;
  return by_value<false>(how.value, how.reduction, [&](auto fold) {
    using F = decltype(fold);
    if (is_line(nest) && nest.block == nest.item)
      return scatter_lines(nest, units, at, range, owned, FoldOne<F>{});
    return scatter_rows(nest, units, at, range, owned, FoldInto<F>{nest.block / nest.item});
  });
}

bool scatter(const Nest& nest, int units, const Operands& at, const Range& range, const Combine& how) {
  return scatter_any(nest, units, at, range, how, Owned{});
}

bool scatter_owned(const Nest& nest, int units, const Operands& at, const Range& range, const Combine& how,
                   int64_t low, int64_t high) {
  return scatter_any(nest, units, at, range, how, {low, high});
}

int64_t slab_bytes(const Combine& how, int64_t item, int64_t slots) {
  return by_slab(how, item, [&](auto fold, auto counted) {
    return Slab<decltype(fold), decltype(counted)::value>::bytes(slots);
  });
}

bool slab_take(const SlabScatter& call, const Operands& at, int64_t task, char* scratch) {
  const FloatMode mode;
  return by_slab(call.combine, call.ids->item, [&](auto fold, auto counted) {
    return GATHERUM_LEVEL::slab_take<decltype(fold), decltype(counted)::value>(call, at, task, scratch);
  });
}

void slab_write(const SlabScatter& call, const Operands& at, int64_t task, char* scratch) {
  const FloatMode mode;
  by_slab(call.combine, call.ids->item, [&](auto fold, auto counted) {
    GATHERUM_LEVEL::slab_write<decltype(fold), decltype(counted)::value>(call, at, task, scratch);
  });
}

int64_t private_bytes(const Combine& how, int64_t slots) {
  int64_t bytes = 0;
  by_any_order(how, [&](auto fold) {
    bytes = Slab<decltype(fold), false>::bytes(slots);
    return true;
  });
  return bytes;
}

bool private_take(const PrivateScatter& call, const Operands& at, int64_t piece) {
  return by_any_order(
      call.combine, [&](auto fold) { return GATHERUM_LEVEL::private_take<decltype(fold)>(call, at, piece); });
}

void private_write(const PrivateScatter& call, const Operands& at, int64_t begin, int64_t end) {
  by_any_order(call.combine, [&](auto fold) {
    GATHERUM_LEVEL::private_write<decltype(fold)>(call, at, begin, end);
    return true;
  });
}

int64_t entry_bytes(int64_t item) { return kLocalBytes + item; }

bool partition_spread(const PartitionScatter& p, const Operands& at, int64_t piece) {
  return by_item(p.ids->item, [&](auto width) {
    return GATHERUM_LEVEL::partition_spread<Item<decltype(width)::value>>(p, at, piece);
  });
}

void partition_apply(const PartitionScatter& p, const Operands& at, int64_t block, char* scratch) {
  const FloatMode mode;
  by_slab(p.combine, p.ids->item, [&](auto fold, auto counted) {
    GATHERUM_LEVEL::partition_apply<decltype(fold), decltype(counted)::value>(p, at, block, scratch);
  });
}

int64_t group_updates(const GroupedScatter& call, const Operands& at, int64_t unit, char* scratch) {
  return with_groups(call, scratch, [&](const auto& groups) { return groups.group(at.index, unit); });
}

void fold_groups(const GroupedScatter& call, const Operands& at, int64_t unit, int64_t kept, int64_t share,
                 int64_t shares, char* scratch) {
  const FloatMode mode;
  const Positions positions{kept * share / shares, kept * (share + 1) / shares};
  const auto part = by_value<true>(call.combine.value, call.combine.reduction, [](auto fold) {
    return FoldGroups::Part{&FoldGroups::part<decltype(fold)>};
  });
  const FoldGroups fold(call, at, unit, part);
  with_groups(call, scratch, [&](const auto& groups) { groups.fold(positions, kept, fold); });
}

// The first invalid component of the tuple at `at`, which is read again; component -1 when another thread has
// changed the indices and all are valid now.
Invalid examine(const Nest& nest, const char* at, int64_t position) {
  for (int c = 0; c < nest.components; ++c) {
    int64_t value = 0, offset = 0, bad = 0;
    load(nest.index, at + nest.component[c].offset, 0, 1, &value);
    compiler_barrier(&value);
    if (add_component(nest, c, 1, &value, &offset, &bad) != 0) return {position, value, c};
  }
  return {position, 0, -1};
}

Invalid first_invalid(const Nest& nest, const char* index, const Range& range) {
  const int64_t line = nest.line_loop().extent, chunks = (line - 1) / range.chunk + 1;
  int64_t position = range.begin / chunks * line + range.begin % chunks * range.chunk;
  for (Walk walk(nest, nest.line, range, index); !walk.done(); walk.next()) {
    const Block& b = walk.now();
    for (int j = 0; b.any_invalid && j < b.n; ++j)
      if (b.offsets[j] == kInvalid)
        return examine(nest, index + b.place.index + j * nest.line_loop().index, position + j);
    position += b.n;
  }
  return {};
}

void number(const Nest& ids, const char* index, int64_t* numbers) {
  const Range everything{ids.line_loop().extent, 0, ids.outer_count()};
  for (Walk walk(ids, ids.line, everything, index); !walk.done(); walk.next()) {
    const Block& b = walk.now();
    for (int j = 0; j < b.n; ++j)
      numbers[j] = b.offsets[j] == kInvalid ? -1 : b.offsets[j] + b.place.data + j * ids.line_loop().data;
    numbers += b.n;
  }
}

template <class Apply>
bool accumulate_with(const Nest& nest, int units, const Operands& at, const Range& range, const Owned& owned,
                     const Apply& apply) {
  return scatter_blocks(nest, units, at, range, owned, AccumulateBlocks<Apply>{nest, at, apply});
}

bool accumulate_any(const Nest& nest, int units, const Operands& at, const Range& range, const Combine& how,
                    const Accumulators& to, const Owned& owned) {
  if (how.reduction == Reduction::none)
    return by_width(nest.block, [&](auto width) {
      const AccumulateMoved<decltype(width)::value> moved(to, nest.item, nest.block);
      return accumulate_with(nest, units, at, range, owned, moved);
    });
  const FloatMode mode;
  return by_value<true>(how.value, how.reduction, [&](auto fold) {
    const Accumulate<decltype(fold)> folded(to, how, nest.block);
    return accumulate_with(nest, units, at, range, owned, folded);
  });
}

bool accumulate(const Nest& nest, int units, const Operands& at, const Range& range, const Combine& how,
                const Accumulators& to) {
  return accumulate_any(nest, units, at, range, how, to, Owned{});
}

bool accumulate_owned(const Nest& nest, int units, const Operands& at, const Range& range, const Combine& how,
                      const Accumulators& to, int64_t low, int64_t high) {
  return accumulate_any(nest, units, at, range, how, to, {low, high});
}

void begin_sums(const Combine& how, const char* data, char* sums, int64_t n) {
  by_value<true>(how.value, how.reduction,
                 [&](auto fold) { GATHERUM_LEVEL::begin_sums<decltype(fold)>(data, sums, n); });
}

void finish_sums(const Combine& how, const Finish& f) {
  const FloatMode mode;
  by_value<true>(how.value, how.reduction,
                 [&](auto fold) { GATHERUM_LEVEL::finish_sums<decltype(fold)>(f, how.include_self); });
}

void merge_sums(const Combine& how, const Merge& m) {
  const FloatMode mode;
  by_value<true>(how.value, how.reduction, [&](auto fold) {
    if constexpr (decltype(fold)::kAnyOrderOfFirsts) GATHERUM_LEVEL::merge_sums<decltype(fold)>(m);
  });
}

}  // namespace

const Kernels& kernels() {
  static const Kernels table = {
      GATHERUM_LEVEL_NAME,
      gather,
      gather_stretches,
      gather_packed,
      copy_bytes,
      first_invalid,
      scatter,
      scatter_owned,
      slab_bytes,
      slab_take,
      slab_write,
      private_bytes,
      private_take,
      private_write,
      entry_bytes,
      partition_spread,
      partition_apply,
      grouped_bytes,
      group_updates,
      fold_groups,
      number,
      accumulate,
      accumulate_owned,
      begin_sums,
      finish_sums,
      merge_sums,
  };
  return table;
}

}  // namespace gatherum::GATHERUM_LEVEL

namespace gatherum {
const Kernels& GATHERUM_KERNELS() { return GATHERUM_LEVEL::kernels(); }
}  // namespace gatherum
