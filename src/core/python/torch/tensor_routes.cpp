#include "python/torch/tensor_routes.hpp"

#include "python/bindings/bindings.hpp"
#include "python/torch/device_tensors.hpp"
#include "python/torch/tensors.hpp"

namespace gatherum {
namespace {

struct DeclinedRow {
  Declined declined;
  const char* reason;  // `explain` prints it; torch/strategies.py inserts the operand's name and type
};

constexpr DeclinedRow kDeclined[] = {
    {Declined::no, ""},
    {Declined::type, "`{name}` is of type {type}"},
    {Declined::watched, "a mode, transform or level of forward-mode differentiation is active"},
    {Declined::memory, "`{name}` is not in CPU or CUDA memory, or its dtype is not supported by the core"},
    {Declined::complex, "`{name}` is complex, and may be a lazy conjugate"},
    {Declined::negated, "`{name}` is a lazy negation"},
    {Declined::tracked, "the tensors are on a device, and autograd records the call"},
};
static_assert(is_in_order(kDeclined, &DeclinedRow::declined, Declined::tracked));

}  // namespace

Route route_of_types(const nb::handle* operands, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (!is_tensor(operands[i])) return {Declined::type, static_cast<uint8_t>(i)};
  if (is_watched()) return {Declined::watched};
  const Torch& t = torch();
  const bool tracked = t.requires_grad(operands[0]) || (n > 2 && t.requires_grad(operands[2]));
  return {.recorded = tracked && t.grad_enabled()};
}

Route route_of_memory(const nb::handle* operands, size_t n, bool recorded, TensorView* tensors, View* views) {
  const bool or_cuda = runs_on_cuda();
  for (size_t i = 0; i < n; ++i) {
    const auto operand = static_cast<uint8_t>(i);
    const bool is_read = tensors[i].read(operands[i], views[i], or_cuda);
    if (!is_read || !is_same_device(tensors[i], tensors[0])) return {Declined::memory, operand};
    if (tensors[i].complex) return {Declined::complex, operand};
    if (torch().is_neg(operands[i])) return {Declined::negated, operand};
  }
  if (recorded && tensors[0].device.type == dlpack::kCuda) return {Declined::tracked};
  return {};
}

namespace {

// Returns the route of a call without `out` and fill value: the reason why the core declines it or an empty
// string, the number of the operand that the reason names, and whether autograd records the call.
nb::tuple tensor_route(nb::handle data, nb::handle indices, nb::handle updates) {
  const nb::handle operands[] = {data, indices, updates};
  const size_t n = updates.is_none() ? 2 : 3;
  Route route = route_of_types(operands, n);
  if (route.declined == Declined::no) {
    TensorView tensors[3];
    View views[3];
    const Route by_memory = route_of_memory(operands, n, route.recorded, tensors, views);
    route.declined = by_memory.declined;
    route.operand = by_memory.operand;
  }
  return nb::make_tuple(kDeclined[static_cast<int>(route.declined)].reason, route.operand, route.recorded);
}

}  // namespace

void bind_tensor_routes(nb::module_& m) {
  m.def("tensor_route", &tensor_route, nb::arg("data"), nb::arg("indices"), nb::arg("updates").none());
}

}  // namespace gatherum
