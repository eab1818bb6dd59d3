#include "python/torch/tensors.hpp"

#include <algorithm>

#include "include/gatherum.h"
#include "python/bindings/bindings.hpp"
#include "python/positional.hpp"
#include "python/runs.hpp"
#include "python/torch/device_tensors.hpp"
#include "python/torch/memory_calls.hpp"
#include "python/torch/tensor_result.hpp"
#include "python/torch/tensor_view.hpp"

namespace gatherum {
namespace {

nb::object run(const nb::handle* a, const Call& call, dlpack::DataType type) {
  TensorResult result;
  const OperandHandles operands = operands_of(a);
  find_plan_and_run_on_views(
      call, a[kFill], [&](const Shape& shape) { return result.allocate(shape, type, call.operands[0].item); },
      [&] { return first_change(operands.data(), call.operands.data(), kOperands); });
  return a[kOut].is_none() ? result.take(*torch().api) : nb::borrow(a[kOut]);
}

// Runs the same call through a function of autograd for plain tensors, without torch's dispatcher: the
// dispatcher has nothing to dispatch to, and takes ten times as long. The function's `forward` calls the core
// again, which reads the tensors' memory a second time: torch passes tensors to `forward`, not views, and may
// run Python code before it.
nb::object recorded(const nb::handle* a) {
  PyObject* arguments[kFill];
  std::transform(a, a + kFill, arguments, [](nb::handle h) { return h.ptr(); });
  return checked(PyObject_Vectorcall(torch().record.ptr(), arguments, kFill, nullptr));
}

// Lets Python raise the error for a tensor that cannot be read.
[[noreturn]] void refuse(nb::handle op, const char* operand, nb::handle tensor) {
  torch().refuse(op, operand, tensor);
  throw nb::type_error("gatherum: a tensor without memory of its own, or of another dtype");
}

}  // namespace

int first_change(const nb::handle* operands, const View* before, int n, bool or_cuda) {
  for (int i = 0; i < n; ++i) {
    if (!before[i].given()) continue;
    TensorView now;
    View view;
    if (!now.read(operands[i], view, or_cuda) || !is_same_place(view, before[i])) return i;
  }
  return -1;
}

bool is_tensor(nb::handle object) {
  const Torch& t = torch();
  if (t.api == nullptr) return false;
  const auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  return type == t.tensor.ptr() || type == t.parameter.ptr();
}

namespace {

// The reason why the core declines a call on tensors. torch's dispatcher then runs the call.
enum class Declined : uint8_t { no, type, watched, memory, complex, negated, tracked };

struct DeclinedRow {
  Declined declined;
  const char* reason;  // `explain` prints it; torch/routes.py inserts the operand's name and type
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

// How a call on tensors runs: in the core, recorded by autograd or not, or declined because of an operand.
struct Route {
  Declined declined = Declined::no;
  uint8_t operand = 0;
  bool recorded = false;
};

// Returns the route by the operands' types and torch's state.
Route route_of_types(const nb::handle* operands, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (!is_tensor(operands[i])) return {Declined::type, static_cast<uint8_t>(i)};
  if (is_watched()) return {Declined::watched};
  const Torch& t = torch();
  const bool tracked = t.requires_grad(operands[0]) || (n > 2 && t.requires_grad(operands[2]));
  return {.recorded = tracked && t.grad_enabled()};
}

// Reads the operands' memory, and returns the route that it allows. `recorded`: autograd records the call.
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

// See call_on_plain_tensors, and scatter_ordered.
nb::object run_plain(const nb::handle* a, const Order* order) {
  const nb::handle* const operands = a + kData;
  const size_t n = a[kUpdates].is_none() ? 2 : 3;
  if (!a[kOut].is_none()) return {};
  const Route route = route_of_types(operands, n);
  Call call;
  if (route.declined != Declined::no || !read_attributes(a, call.attributes)) return {};
  TensorView tensors[3];
  if (route_of_memory(operands, n, route.recorded, tensors, call.operands.data()).declined != Declined::no)
    return {};
  if (tensors[0].device.type == dlpack::kCuda) return run_on_cuda(a, call, tensors[0], order);
  if (order != nullptr) return {};
  return route.recorded ? recorded(a) : run(a, call, tensors[0].type);
}

}  // namespace

nb::object call_on_plain_tensors(const nb::handle* a) { return run_plain(a, nullptr); }

nb::object scatter_ordered(const nb::handle* arguments) {
  Arguments a;
  std::copy_n(arguments, kFill, a.begin());
  const nb::object op = interned(a[kOp]);
  a[kOp] = op;
  a[kFill] = a[kOut] = nb::handle(Py_None);
  unsigned long long stream = 0, keys = 0, payload = 0;
  if (PyArg_ParseTuple(arguments[kFill].ptr(), "KKK", &stream, &keys, &payload) == 0)
    nb::raise_python_error();
  const Order order = {stream, keys, payload};
  nb::object result = run_plain(a.data(), &order);
  return result.is_valid() ? result : nb::none();
}

nb::object call_on_tensors(const nb::handle* a) {
  if (torch().api == nullptr) throw nb::type_error("gatherum: operands must be views or tensors");
  const OperandHandles operands = operands_of(a);
  const char* const names[] = {"data", "indices", "updates", "out"};
  Call call{plain_attributes(a), {}};
  TensorView tensors[kOperands];
  for (size_t i = 0; i < kOperands; ++i)
    if (!operands[i].is_none() && !tensors[i].read(operands[i], call.operands[i]))
      refuse(a[kOp], names[i], operands[i]);
  return run(a, call, tensors[0].type);
}

namespace {

void set_torch(nb::handle exchange, nb::handle tensor, nb::handle parameter, nb::handle int8,
               nb::handle uint8, const nb::list& watchers, nb::handle grad_enabled, nb::handle requires_grad,
               nb::handle is_neg, nb::handle record, nb::handle record_total, nb::handle forward_mode,
               nb::handle refuse) {
  const auto* api =
      static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(exchange.ptr(), dlpack::kCapsule));
  if (api == nullptr) nb::raise_python_error();
  if (api->version.major != dlpack::kMajor || api->view == nullptr)
    throw nb::value_error("gatherum: this torch exchanges tensors in another version of DLPack");
  Torch& t = torch();
  t = {api,
       nb::borrow(tensor),
       nb::borrow(parameter),
       nb::borrow(int8),
       nb::borrow(uint8),
       {},
       TorchQuery(grad_enabled),
       TorchQuery(requires_grad),
       TorchQuery(is_neg),
       nb::borrow(record),
       nb::borrow(record_total),
       nb::borrow(forward_mode),
       nb::borrow(refuse)};
  for (nb::handle watcher : watchers) t.watchers.emplace_back(watcher);
}

// Returns the number of the first operand that is a tensor and reaches past the end of its storage, -1 for
// none. Other checks reject tensors without a plain storage.
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
    if (!tensors[i].read(operands[i], views[i])) refuse(op, names[i], operands[i]);
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
  if (views[GradientInput::data].given()) gradients.data = memory_of(views[GradientInput::data]);
  if (views[GradientInput::result].given()) gradients.result = memory_of(views[GradientInput::result]);
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
  return nb::make_tuple(of_data ? results[0].take(*torch().api) : nb::none(),
                        of_updates ? results[1].take(*torch().api) : nb::none());
}

}  // namespace

void bind_tensors(nb::module_& m) {
  m.def("differentiate", &differentiate, nb::arg("op"), nb::arg("gradient"), nb::arg("data").none(),
        nb::arg("indices"), nb::arg("updates"), nb::arg("result").none(), nb::arg("axis"),
        nb::arg("reduction"), nb::arg("include_self"), nb::arg("mode"), nb::arg("negative"),
        nb::arg("of_data"), nb::arg("of_updates"));
  m.def("set_torch", &set_torch, nb::arg("exchange"), nb::arg("tensor"), nb::arg("parameter"),
        nb::arg("int8"), nb::arg("uint8"), nb::arg("watchers"), nb::arg("grad_enabled"),
        nb::arg("requires_grad"), nb::arg("is_neg"), nb::arg("record"), nb::arg("record_total"),
        nb::arg("forward_mode"), nb::arg("refuse"));
  m.def(
      "set_torch_storage",
      [](intptr_t size, intptr_t offset, nb::handle example, intptr_t handle, nb::handle measure) {
        torch_storage().find(size, offset, example, handle, measure);
      },
      nb::arg("size"), nb::arg("offset"), nb::arg("example"), nb::arg("handle"), nb::arg("measure"));
  def_positional<kFill + 1, scatter_ordered>(
      m, "scatter_ordered",
      "scatter_ordered(op, data, indices, updates, axis, reduction, include_self, mode, negative, order, /)\n"
      "--\n\n");
  m.def("tensor_route", &tensor_route, nb::arg("data"), nb::arg("indices"), nb::arg("updates").none());
  m.def("first_outside_storage", &first_outside_storage, nb::arg("operands"));
}

}  // namespace gatherum
