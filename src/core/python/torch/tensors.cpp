#include "python/torch/tensors.hpp"

#include <algorithm>

#include "include/gatherum.h"
#include "python/bindings/bindings.hpp"
#include "python/memory_calls.hpp"
#include "python/positional.hpp"
#include "python/runs.hpp"
#include "python/torch/device_tensors.hpp"
#include "python/torch/tensor_result.hpp"
#include "python/torch/tensor_routes.hpp"

namespace gatherum {
namespace {

nb::object run(const nb::handle* arguments, const Call& call, dlpack::DataType type) {
  TensorResult result;
  const OperandHandles operands = operands_of(arguments);
  find_plan_and_run_on_views(
      call, arguments[kFill],
      [&](const Shape& shape) { return result.allocate(shape, type, call.operands[0].item); },
      [&] { return first_change(operands.data(), call.operands.data(), kOperandCount); });
  return arguments[kOut].is_none() ? result.to_tensor(*torch().api) : nb::borrow(arguments[kOut]);
}

// Runs the same call through an autograd function for plain tensors, without torch's dispatcher: the
// dispatcher has nothing to dispatch to, and takes ten times as long. The function's `forward` calls the core
// again, which reads the tensors' memory a second time: torch passes tensors to `forward`, not views, and may
// run Python code before it.
nb::object run_recorded(const nb::handle* arguments) {
  PyObject* objects[kFill];
  std::transform(arguments, arguments + kFill, objects, [](nb::handle h) { return h.ptr(); });
  return checked(PyObject_Vectorcall(torch().record.ptr(), objects, kFill, nullptr));
}

}  // namespace

void refuse_tensor(nb::handle op, const char* operand, nb::handle tensor) {
  torch().refuse(op, operand, tensor);
  throw nb::type_error("gatherum: a tensor without memory of its own, or of another dtype");
}

int first_change(const nb::handle* operands, const View* before, int n, bool or_cuda) {
  for (int i = 0; i < n; ++i) {
    if (!before[i].is_present()) continue;
    TensorView tensor;
    View view;
    if (!tensor.read(operands[i], view, or_cuda) || !is_same_place(view, before[i])) return i;
  }
  return -1;
}

namespace {

// See call_on_plain_tensors, and scatter_ordered.
nb::object run_plain(const nb::handle* arguments, const Order* order) {
  const nb::handle* const operands = arguments + kData;
  const size_t n = arguments[kUpdates].is_none() ? 2 : 3;
  if (!arguments[kOut].is_none()) return {};
  const Route route = route_of_types(operands, n);
  Call call;
  if (route.declined != Declined::no || !read_attributes(arguments, call.attributes)) return {};
  TensorView tensors[3];
  if (route_of_memory(operands, n, route.recorded, tensors, call.operands.data()).declined != Declined::no)
    return {};
  if (tensors[0].device.type == dlpack::kCuda) return run_on_cuda(operands, call, tensors[0].device, order);
  if (order != nullptr) return {};
  return route.recorded ? run_recorded(arguments) : run(arguments, call, tensors[0].type);
}

}  // namespace

nb::object call_on_plain_tensors(const nb::handle* arguments) { return run_plain(arguments, nullptr); }

nb::object scatter_ordered(const nb::handle* arguments) {
  const NamedArguments named(arguments, kFill);
  unsigned long long stream = 0, keys = 0, payload = 0;
  if (PyArg_ParseTuple(arguments[kFill].ptr(), "KKK", &stream, &keys, &payload) == 0)
    nb::raise_python_error();
  const Order order = {stream, keys, payload};
  nb::object result = run_plain(named.arguments(), &order);
  return result.is_valid() ? result : nb::none();
}

namespace {

nb::object run_if_plain(const nb::handle* arguments) {
  nb::object result = call_on_plain_tensors(NamedArguments(arguments, kArgumentCount).arguments());
  return result.is_valid() ? result : nb::none();
}

// Runs a call on tensors that are known to be plain, as in a kernel of torch's dispatcher.
nb::object run_on_tensors(const nb::handle* all_arguments) {
  const NamedArguments named(all_arguments, kArgumentCount);
  const nb::handle* const arguments = named.arguments();
  if (torch().api == nullptr) throw nb::type_error("gatherum: operands must be tensors");
  const OperandHandles operands = operands_of(arguments);
  const char* const names[] = {"data", "indices", "updates", "out"};
  Call call{plain_attributes(arguments), {}};
  TensorView tensors[kOperandCount];
  for (size_t i = 0; i < kOperandCount; ++i)
    if (!operands[i].is_none() && !tensors[i].read(operands[i], call.operands[i]))
      refuse_tensor(arguments[kOp], names[i], operands[i]);
  return run(arguments, call, tensors[0].type);
}

// Returns the number of the first operand that is a tensor and reaches past the end of its storage, or -1 if
// there is none. Other checks reject tensors without a plain storage.
int first_outside_storage(const nb::tuple& operands) {
  int number = 0;
  for (nb::handle operand : operands) {
    dlpack::Tensor t;
    if (is_tensor(operand)) {
      if (torch().api->view(operand.ptr(), &t) != 0)
        PyErr_Clear();
      else if (!torch_storage().holds(operand, t))
        return number;
    }
    ++number;
  }
  return -1;
}

}  // namespace

void bind_tensors(nb::module_& m) {
  def_positional<kArgumentCount, run_on_tensors>(
      m, "run_on_tensors",
      "run_on_tensors(op, data, indices, updates, axis, reduction, include_self, mode, negative, fill, out, "
      "/)\n--\n\n");
  def_positional<kArgumentCount, run_if_plain>(
      m, "run_if_plain",
      "run_if_plain(op, data, indices, updates, axis, reduction, include_self, mode, negative, fill, out, "
      "/)\n--\n\n");
  def_positional<kFill + 1, scatter_ordered>(
      m, "scatter_ordered",
      "scatter_ordered(op, data, indices, updates, axis, reduction, include_self, mode, negative, order, /)\n"
      "--\n\n");
  m.def("first_outside_storage", &first_outside_storage, nb::arg("operands"));
}

}  // namespace gatherum
