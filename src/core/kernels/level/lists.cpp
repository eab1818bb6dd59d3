// Compiled once for each instruction-set level, like movement.cpp. This translation unit implements lists of
// rows.
#include "kernels/dispatch.hpp"
#include "kernels/fold_pointed.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

bool list_stage(const ListStage& call, const char* targets, const char* sources, int64_t piece) {
  return by_number(call.wide,
                   [&](auto number) { return stage_edges<decltype(number)>(call, targets, sources, piece); });
}

void list_place(const ListStage& call, int64_t piece) {
  by_number(call.wide, [&](auto number) { place_edges<decltype(number)>(call, piece); });
}

void list_weights(const ListFold& call, char* to, int64_t begin, int64_t end) {
  by_item(call.rows->item, [&](auto width) { order_weights<decltype(width)::value>(call, to, begin, end); });
}

FoldLists::Functions functions_of(const ListFold& call) {
  return by_value<true>(call.fold_rule.value, call.fold_rule.reduction,
                        [&](auto fold) { return FoldLists::functions_of<decltype(fold)>(call); });
}

void list_fold(const ListFold& call, int64_t begin, int64_t end) {
  const FloatMode mode;
  FoldLists(call, functions_of(call))(begin, end);
}

bool pointed_fold(const PointedFold& call, int64_t begin, int64_t end, char* scratch) {
  const FloatMode mode;
  return by_number(call.fold.wide, [&](auto number) {
    PointedPortion<decltype(number)> portion(call, scratch);
    for (int64_t first = begin; first < end;) {
      const int64_t stop = portion.make(first, end);
      FoldLists(portion.fold(), functions_of(portion.fold()))(0, stop - first);
      first = stop;
    }
    return portion.valid();
  });
}

}  // namespace

void add_list_kernels(Kernels& all) {
  all.list_stage = list_stage;
  all.list_place = list_place;
  all.list_weights = list_weights;
  all.list_fold = list_fold;
  all.pointed_make = make_pointer;
  all.pointed_read = read_pointer;
  all.pointed_fold = pointed_fold;
}

}  // namespace gatherum::GATHERUM_LEVEL
