// The kernels, compiled once for each instruction-set level, like kernels.cpp. This object: scatters into
// slabs.
#include "dispatch.hpp"
#include "fold_items.hpp"
#include "scatter_partition.hpp"
#include "scatter_private.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

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

void list_items(const ListFold& call, int64_t list, char* scratch) {
  const FloatMode mode;
  by_slab(call.combine, call.rows->item, [&](auto fold, auto counted) {
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
  all.slab_take = slab_take;
  all.slab_write = slab_write;
  all.private_bytes = private_bytes;
  all.private_take = private_take;
  all.private_write = private_write;
  all.entry_bytes = entry_bytes;
  all.partition_spread = partition_spread;
  all.partition_apply = partition_apply;
  all.list_items = list_items;
}

}  // namespace gatherum::GATHERUM_LEVEL
