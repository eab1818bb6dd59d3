// The gradients of a scatter of tensors.
#include <algorithm>

#include "include/gatherum.h"
#include "python/bindings/bindings.hpp"
#include "python/memory_calls.hpp"
#include "python/runs.hpp"
#include "python/torch/tensor_result.hpp"
#include "python/torch/tensor_view.hpp"
#include "python/torch/tensors.hpp"

namespace gatherum {
namespace {

// Allocates a requested gradient: contiguous, of an operand's shape.
gatherum_buffer allocate(TensorResult& result, const TensorView& like, const View& view) {
  Shape shape;
  shape.rank = view.rank;
  std::copy_n(view.shape, view.rank, shape.extent);
  gatherum_buffer buffer = memory_of(view);
  buffer.start = result.allocate(shape, like.type, view.item);
  return buffer;
}

// The inputs of the gradients, in the order of the arguments of `differentiate`.
struct GradientInput {
  enum { gradient, data, indices, updates, result, count };
};

// Reads the tensors that gradients are computed from. All have one dtype and are in C order; `gradient`,
// `data` and `result` have one shape.
void read_all(nb::handle op, const nb::handle* operands, TensorView* tensors, View* views) {
  const char* const names[] = {"gradient", "data", "indices", "updates", "result"};
  for (int i = 0; i < GradientInput::count; ++i) {
    if (operands[i].is_none()) continue;
    if (!tensors[i].read(operands[i], views[i])) refuse_tensor(op, names[i], operands[i]);
    if (i == GradientInput::indices) continue;
    const bool like_output = i != GradientInput::updates;
    if (views[i].dtype != views[GradientInput::gradient].dtype || !is_contiguous(views[i]) ||
        (like_output &&
         !std::equal(views[i].shape, views[i].shape + views[i].rank, views[GradientInput::gradient].shape,
                     views[GradientInput::gradient].shape + views[GradientInput::gradient].rank)))
      throw nb::value_error("gatherum: tensors that do not belong together");
  }
}

nb::object differentiate(nb::str op, nb::handle gradient, nb::handle data, nb::handle indices,
                         nb::handle updates, nb::handle result, nb::handle axis, nb::handle reduction,
                         nb::handle include_self, nb::handle mode, nb::handle negative, bool of_data,
                         bool of_updates) {
  const nb::object interned_op = interned(op);
  const Arguments a = {interned_op, data, indices, updates, axis, reduction, include_self, mode, negative};
  const Attributes attributes = plain_attributes(a.data());
  const nb::handle operands[] = {gradient, data, indices, updates, result};
  TensorView tensors[GradientInput::count];
  View views[GradientInput::count];
  read_all(interned_op, operands, tensors, views);
  // The scatter of these updates into data laid out like the gradient.
  bool is_new = false;
  const CachedPlan cached = plan_of({attributes,
                                     {views[GradientInput::gradient], views[GradientInput::indices],
                                      views[GradientInput::updates], View{}}},
                                    is_new);
  if (is_new && first_change(operands, views, GradientInput::count) >= 0)
    throw nb::value_error("gatherum: a tensor has changed during the call");
  gatherum_gradients gradients = {};
  TensorResult results[2];
  gradients.gradient = memory_of(views[GradientInput::gradient]);
  gradients.indices = memory_of(views[GradientInput::indices]);
  gradients.updates = memory_of(views[GradientInput::updates]);
  if (views[GradientInput::data].is_present()) gradients.data = memory_of(views[GradientInput::data]);
  if (views[GradientInput::result].is_present()) gradients.result = memory_of(views[GradientInput::result]);
  if (of_data)
    gradients.of_data =
        allocate(results[0], tensors[GradientInput::gradient], views[GradientInput::gradient]);
  if (of_updates)
    gradients.of_updates =
        allocate(results[1], tensors[GradientInput::updates], views[GradientInput::updates]);
  run_without_lock_if_long(cached.plan, *cached.program,
                           [&](const gatherum_poll* poll, gatherum_error* error) {
                             return gatherum_differentiate(cached.program->core(), &gradients, poll, error);
                           });
  return nb::make_tuple(of_data ? results[0].to_tensor(*torch().api) : nb::none(),
                        of_updates ? results[1].to_tensor(*torch().api) : nb::none());
}

}  // namespace

void bind_tensor_gradients(nb::module_& m) {
  m.def("differentiate", &differentiate, nb::arg("op"), nb::arg("gradient"), nb::arg("data").none(),
        nb::arg("indices"), nb::arg("updates"), nb::arg("result").none(), nb::arg("axis"),
        nb::arg("reduction"), nb::arg("include_self"), nb::arg("mode"), nb::arg("negative"),
        nb::arg("of_data"), nb::arg("of_updates"));
}

}  // namespace gatherum
