// Compiled once for each instruction-set level, like movement.cpp. This translation unit implements scatters
// into slabs.
#include "kernels/dispatch.hpp"
#include "kernels/fold_items.hpp"
#include "kernels/scatter_keyed.hpp"
#include "kernels/scatter_partition.hpp"
#include "kernels/scatter_private.hpp"
#include "kernels/scatter_uncounted.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

int64_t slab_bytes(const FoldRule& fold_rule, int64_t item, int64_t slots) {
  if (fold_rule.skips_nan) return skipping_bytes(fold_rule, slots);
  return by_slab(fold_rule, item, [&](auto fold, auto counted) {
    return Slab<decltype(fold), decltype(counted)::value>::bytes(slots);
  });
}

bool slab_take(const SlabScatter& call, const Operands& operands, int64_t task, char* scratch) {
  const FloatMode mode;
  if (call.fold_rule.skips_nan) return skipping_take(call, operands, task, scratch);
  return by_slab(call.fold_rule, call.numbering->item, [&](auto fold, auto counted) {
    return GATHERUM_LEVEL::slab_take<decltype(fold), decltype(counted)::value>(call, operands, task, scratch);
  });
}

void slab_write(const SlabScatter& call, const Operands& operands, int64_t task, char* scratch) {
  const FloatMode mode;
  if (call.fold_rule.skips_nan) return skipping_write(call, operands, task, scratch);
  by_slab(call.fold_rule, call.numbering->item, [&](auto fold, auto counted) {
    GATHERUM_LEVEL::slab_write<decltype(fold), decltype(counted)::value>(call, operands, task, scratch);
  });
}

int64_t private_bytes(const FoldRule& fold_rule, int64_t slots, bool tables) {
  int64_t bytes = 0;
  by_private(fold_rule, [&](auto fold, auto keyed) {
    using F = decltype(fold);
    if constexpr (decltype(keyed)::value)
      bytes = slots * static_cast<int64_t>(sizeof(typename OrderKeys<F>::Key));
    else
      bytes = Slab<F, false>::bytes(slots);
    if constexpr (kHasTable<F>)
      if (tables) bytes = ExactTables<F>::bytes(slots);
  });
  return bytes;
}

FoldedUpdates private_take(const PrivateScatter& call, const Operands& operands, int64_t piece) {
  FoldedUpdates folded = FoldedUpdates::none;
  by_private(call.fold_rule, [&](auto fold, auto keyed) {
    using F = decltype(fold);
    if constexpr (decltype(keyed)::value)
      folded = keyed_take<F, false>(call, operands, piece);
    else
      folded =
          GATHERUM_LEVEL::private_take<F>(call, operands, piece) ? FoldedUpdates::all : FoldedUpdates::valid;
  });
  return folded;
}

void private_write(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  const FloatMode mode;
  by_private(call.fold_rule, [&](auto fold, auto keyed) {
    using F = decltype(fold);
    if constexpr (decltype(keyed)::value)
      keyed_write<F>(call, operands, begin, end);
    else
      GATHERUM_LEVEL::private_write<F>(call, operands, begin, end);
  });
}

// Calls `f(fold)` if a fold that excludes the old values can run without counters.
template <class Visit>
auto by_uncounted(const FoldRule& fold_rule, const Visit& visit)
    -> decltype(visit(Fold<float, Reduction::add>{})) {
  using Result = decltype(visit(Fold<float, Reduction::add>{}));
  if (fold_rule.reduction == Reduction::none || row_of(fold_rule.reduction).divides) return Result();
  return by_value<false>(fold_rule.value, fold_rule.reduction, [&](auto fold) {
    if constexpr (kRunsUncounted<decltype(fold)>)
      return visit(fold);
    else
      return Result();
  });
}

int64_t uncounted_bytes(const FoldRule& fold_rule, int64_t slots) {
  return by_uncounted(fold_rule, [&](auto fold) { return Slab<decltype(fold), false>::bytes(slots); });
}

bool uncounted_is_any_order(const FoldRule& fold_rule) {
  return by_uncounted(fold_rule, [](auto fold) { return decltype(fold)::kAnyOrderOfFirsts; });
}

bool uncounted_is_suitable(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  return by_uncounted(call.fold_rule, [&](auto fold) {
    return GATHERUM_LEVEL::uncounted_is_suitable<decltype(fold)>(call, operands, begin, end);
  });
}

bool uncounted_take(const PrivateScatter& call, const Operands& operands, int64_t task) {
  const FloatMode mode;
  return by_uncounted(call.fold_rule, [&](auto fold) {
    return GATHERUM_LEVEL::uncounted_take<decltype(fold)>(call, operands, task);
  });
}

bool uncounted_merge(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  const FloatMode mode;
  return by_uncounted(call.fold_rule, [&](auto fold) {
    return GATHERUM_LEVEL::uncounted_merge<decltype(fold)>(call, operands, begin, end);
  });
}

bool uncounted_is_unambiguous(const PrivateScatter& call, const Operands& operands, int64_t piece) {
  const FloatMode mode;
  return by_uncounted(call.fold_rule, [&](auto fold) {
    return GATHERUM_LEVEL::uncounted_is_unambiguous<decltype(fold)>(call, operands, piece);
  });
}

void uncounted_write(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  const FloatMode mode;
  by_uncounted(call.fold_rule, [&](auto fold) {
    GATHERUM_LEVEL::uncounted_write<decltype(fold)>(call, operands, begin, end);
    return true;
  });
}

// Calls `f(fold)` for a maximum or minimum.
template <class Visit>
void by_extreme(const FoldRule& fold_rule, Visit&& visit) {
  by_value<false>(fold_rule.value, fold_rule.reduction, [&](auto fold) {
    if constexpr (kHasKeys<decltype(fold)>) visit(fold);
  });
}

int64_t located_bytes(const FoldRule& fold_rule, int64_t slots) {
  int64_t bytes = 0;
  by_extreme(fold_rule, [&](auto fold) {
    using Key = typename OrderKeys<decltype(fold)>::Key;
    bytes = slots * static_cast<int64_t>(sizeof(Key) + sizeof(uint32_t));
  });
  return bytes;
}

FoldedUpdates located_take(const PrivateScatter& call, const Operands& operands, int64_t piece) {
  FoldedUpdates folded = FoldedUpdates::none;
  by_extreme(call.fold_rule,
             [&](auto fold) { folded = keyed_take<decltype(fold), true>(call, operands, piece); });
  return folded;
}

void located_write(const PrivateScatter& call, int64_t begin, int64_t end) {
  by_extreme(call.fold_rule,
             [&](auto fold) { GATHERUM_LEVEL::located_write<decltype(fold)>(call, begin, end); });
}

bool partition_distribute(const PartitionScatter& p, const Operands& operands, int64_t piece) {
  return by_item(p.numbering->item, [&](auto width) {
    return GATHERUM_LEVEL::partition_distribute<Item<decltype(width)::value>>(p, operands, piece);
  });
}

void partition_apply(const PartitionScatter& p, const Operands& operands, int64_t bucket, char* scratch) {
  const FloatMode mode;
  by_slab(p.fold_rule, p.numbering->item, [&](auto fold, auto counted) {
    GATHERUM_LEVEL::partition_apply<decltype(fold), decltype(counted)::value>(p, operands, bucket, scratch);
  });
}

void list_items(const ListFold& call, int64_t list, char* scratch) {
  const FloatMode mode;
  by_slab(call.fold_rule, call.rows->item, [&](auto fold, auto counted) {
    using F = decltype(fold);
    constexpr bool kCounted = decltype(counted)::value;
    call.narrow ? fold_items<F, kCounted, uint16_t>(call, list, scratch)
                : fold_items<F, kCounted, uint32_t>(call, list, scratch);
  });
}

}  // namespace

void add_slab_kernels(Kernels& all) {
  all.slab_bytes = slab_bytes;
  all.chooses_slots = chooses_slots;
  all.find_lowest_and_highest = find_lowest_and_highest;
  all.slab_take = slab_take;
  all.slab_write = slab_write;
  all.private_bytes = private_bytes;
  all.private_take = private_take;
  all.private_write = private_write;
  all.uncounted_bytes = uncounted_bytes;
  all.uncounted_is_any_order = uncounted_is_any_order;
  all.uncounted_is_suitable = uncounted_is_suitable;
  all.uncounted_take = uncounted_take;
  all.uncounted_merge = uncounted_merge;
  all.uncounted_is_unambiguous = uncounted_is_unambiguous;
  all.uncounted_write = uncounted_write;
  all.located_bytes = located_bytes;
  all.located_take = located_take;
  all.located_write = located_write;
  all.partition_distribute = partition_distribute;
  all.partition_apply = partition_apply;
  all.list_items = list_items;
}

}  // namespace gatherum::GATHERUM_LEVEL
