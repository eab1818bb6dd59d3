// Compiled once for each instruction-set level, like slabs.cpp. This translation unit implements scatters in
// rounds.
#include "kernels/dispatch.hpp"
#include "kernels/scatter_rounds.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

bool rounds_read(const RoundScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  return by_slab(call.fold_rule, call.numbering->item, [&](auto fold, auto counted) {
    return GATHERUM_LEVEL::rounds_read<decltype(fold), decltype(counted)::value>(call, operands, begin, end);
  });
}

bool rounds_distribute(const RoundScatter& call, const Operands& operands, int64_t piece, int64_t area) {
  return by_item(call.numbering->item, [&](auto width) {
    if constexpr (decltype(width)::value <= 8)
      return GATHERUM_LEVEL::rounds_distribute<decltype(width)::value>(call, operands, piece, area);
    else
      return false;
  });
}

void rounds_fold(const RoundScatter& call, const Operands& operands, int64_t set, int64_t begin,
                 int64_t end) {
  const FloatMode mode;
  by_slab(call.fold_rule, call.numbering->item, [&](auto fold, auto counted) {
    if constexpr (sizeof(typename decltype(fold)::Stored) <= 8)
      GATHERUM_LEVEL::rounds_fold<decltype(fold), decltype(counted)::value>(call, operands, set, begin, end);
  });
}

void rounds_write(const RoundScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  const FloatMode mode;
  by_slab(call.fold_rule, call.numbering->item, [&](auto fold, auto counted) {
    GATHERUM_LEVEL::rounds_write<decltype(fold), decltype(counted)::value>(call, operands, begin, end);
  });
}

}  // namespace

void add_round_kernels(Kernels& all) {
  all.rounds_sample = rounds_sample;
  all.rounds_read = rounds_read;
  all.rounds_distribute = rounds_distribute;
  all.rounds_fold = rounds_fold;
  all.rounds_write = rounds_write;
}

}  // namespace gatherum::GATHERUM_LEVEL
