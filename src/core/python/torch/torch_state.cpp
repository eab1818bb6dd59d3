#include "python/torch/torch_state.hpp"

#include "python/bindings/bindings.hpp"

namespace gatherum {

bool is_tensor(nb::handle object) {
  const Torch& t = torch();
  if (t.api == nullptr) return false;
  const auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  return type == t.tensor.ptr() || type == t.parameter.ptr();
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

}  // namespace

void bind_torch_state(nb::module_& m) {
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
}

}  // namespace gatherum
