#include "memory_calls.hpp"

#include <vector>

#include "callbacks.hpp"
#include "guarded.hpp"
#include "runs.hpp"

namespace gatherum {
namespace {

CachedPlan new_plan(const Attributes& attributes, const Views& operands) {
  const Key key(attributes, operands);
  std::array<nb::object, kOperands> specs;
  OperandHandles handles;
  for (size_t i = 0; i < kOperands; ++i) handles[i] = specs[i] = described(operands[i]);
  CachedPlan found = make_plan(attributes, handles);
  keep_plan(key, attributes, operands, found);
  return found;
}

void check_out(nb::handle plan, const Views& operands) {
  callbacks().check_out(plan, array_on(operands[0]), array_on(operands[1]), array_on(operands[2]),
                        array_on(operands[3]));
}

// A view as Python gives it, for tests and for adapters that are written in Python.
struct BoundView {
  std::vector<npy_intp> shape, strides;
  View view;

  BoundView(intptr_t address, const nb::tuple& extents, const nb::tuple& steps, DType dtype, bool writable) {
    if (extents.size() != steps.size() || extents.size() > NPY_MAXDIMS)
      throw nb::value_error("View: not a shape and its strides");
    for (nb::handle n : extents) shape.push_back(nb::cast<npy_intp>(n));
    for (nb::handle n : steps) strides.push_back(nb::cast<npy_intp>(n));
    view.address = reinterpret_cast<char*>(address);
    view.rank = static_cast<int>(shape.size());
    view.shape = shape.data();
    view.strides = strides.data();
    view.dtype = static_cast<int>(dtype);
    view.item = bytes_of(dtype);
    view.writable = writable;
  }
  BoundView(const BoundView&) = delete;
  BoundView& operator=(const BoundView&) = delete;
};

View view_given(nb::handle h) { return h.is_none() ? View{} : nb::cast<const BoundView&>(h).view; }

void call_from_python(nb::str op, nb::handle data, nb::handle indices, nb::handle updates, nb::handle axis,
                      nb::handle reduction, nb::handle include_self, nb::handle mode, nb::handle negative,
                      nb::handle fill, nb::handle out, nb::handle allocate) {
  PyObject* name = op.release().ptr();
  PyUnicode_InternInPlace(&name);
  const nb::object held = nb::steal(name);
  const Views operands = {view_given(data), view_given(indices), view_given(updates), view_given(out)};
  const void* item = nullptr;
  if (!fill.is_none()) {
    const auto bytes = nb::cast<nb::bytes>(fill);
    if (static_cast<int64_t>(bytes.size()) != operands[0].item)
      throw nb::value_error("call_on_views: `fill` is no item of `data`");
    item = bytes.data();
  }
  call_on_views(attributes_of(held, axis, reduction, include_self, mode, negative), operands, item,
                [&](const Shape& shape) {
                  nb::list extents;
                  for (int i = 0; i < shape.rank; ++i) extents.append(shape.extent[i]);
                  return reinterpret_cast<void*>(nb::cast<intptr_t>(allocate(nb::tuple(extents))));
                });
}

nb::object dtype_of_dlpack(int kind, int bits) {
  DType found;
  return find_dtype(kind, bits, found) ? nb::cast(found) : nb::none();
}

}  // namespace

CachedPlan plan_of(const Attributes& attributes, const Views& operands, bool& is_new) {
  CachedPlan found = find_plan(attributes, operands);
  is_new = found.program == nullptr;
  return is_new ? new_plan(attributes, operands) : found;
}

void call_on_views(const Attributes& attributes, const Views& operands, const void* fill,
                   const Allocate& allocate, const Changed& changed) {
  bool is_new = false;
  const CachedPlan found = plan_of(attributes, operands, is_new);
  const BoundProgram& program = *found.program;
  const bool check = must_check_out(program, operands);
  if (check) check_out(found.plan, operands);
  if ((is_new || check) && changed) raise_changed(found.plan, changed());
  void* result = operands[3].given() ? operands[3].address : allocate(program.fields().result);
  gatherum_operands at = operands_of(program, operands, result);
  at.fill = fill;
  run_released(found.plan, program, [&](const gatherum_poll* poll, gatherum_error* error) {
    return gatherum_run(program.core(), &at, poll, error);
  });
}

void bind_memory_calls(nb::module_& m) {
  nb::enum_<DType> dtypes(m, "DType", "The dtypes that plans are keyed by.");
  for (const DTypeRow& row : kDTypes) dtypes.value(row.name, row.dtype);
  m.def("bytes_of", [](DType dtype) { return bytes_of(dtype); }, nb::arg("dtype"));
  m.def("dtype_of_dlpack", &dtype_of_dlpack, nb::arg("kind"), nb::arg("bits"));
  nb::class_<BoundView>(m, "View", nb::type_slots(guarded_slots))
      .def(nb::init<intptr_t, const nb::tuple&, const nb::tuple&, DType, bool>(), nb::arg("address"),
           nb::arg("shape"), nb::arg("strides"), nb::arg("dtype"), nb::arg("writable") = true);
  m.def("call_on_views", &call_from_python, nb::arg("op"), nb::arg("data"), nb::arg("indices"),
        nb::arg("updates").none(), nb::arg("axis"), nb::arg("reduction"), nb::arg("include_self"),
        nb::arg("mode"), nb::arg("negative"), nb::arg("fill").none(), nb::arg("out").none(),
        nb::arg("allocate").none());
}

}  // namespace gatherum
