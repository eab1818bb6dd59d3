#include "python/memory_calls.hpp"

#include <vector>

#include "python/bindings/bindings.hpp"
#include "python/call_plans.hpp"
#include "python/positional.hpp"
#include "python/runs.hpp"

namespace gatherum {
namespace {

// Calls Python to make the plan of a call on views, with the specs of the views as operands.
CachedPlan plan_views_in_python(const Call& call) {
  std::array<nb::object, kOperandCount> specs;
  OperandHandles handles;
  for (size_t i = 0; i < kOperandCount; ++i) {
    const View& view = call.operands[i];
    handles[i] = specs[i] = view.is_present() ? description_of(spec_of(view)) : nb::none();
  }
  return plan_in_python(call.attributes, handles);
}

// A view that Python creates, for tests and for adapters that are written in Python.
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

View view_or_empty(nb::handle h) { return h.is_none() ? View{} : nb::cast<const BoundView&>(h).view; }

// Runs a call on views. After the arguments of every call follows `allocate`, which returns the address of
// memory for a result of a shape.
nb::object run_on_views(const nb::handle* arguments) {
  const nb::handle allocate = arguments[kArgumentCount];
  const NamedArguments named(arguments, kArgumentCount);
  const nb::handle* const a = named.arguments();
  const Views operands = {view_or_empty(a[kData]), view_or_empty(a[kIndices]), view_or_empty(a[kUpdates]),
                          view_or_empty(a[kOut])};
  find_plan_and_run_on_views({plain_attributes(a), operands}, a[kFill], [&](const Shape& shape) {
    return reinterpret_cast<void*>(nb::cast<intptr_t>(allocate(tuple_of(shape.extent, shape.rank))));
  });
  return nb::none();
}

const void* item_of(nb::handle fill, int64_t item) {
  if (!PyBytes_Check(fill.ptr())) return nullptr;
  if (PyBytes_GET_SIZE(fill.ptr()) != item)
    throw nb::value_error("gatherum: `fill` is not an item of `data`");
  return PyBytes_AS_STRING(fill.ptr());
}

nb::object dtype_of_dlpack(int code, int bits) {
  DType dtype;
  return find_dtype(code, bits, dtype) ? nb::cast(dtype) : nb::none();
}

// The rows of kDTypes for Python, which names their fields (dtype_rows.py).
nb::list dtype_rows() {
  nb::list rows;
  const auto or_none = [](int number, bool known) {
    return known ? nb::object(nb::int_(number)) : nb::none();
  };
  for (const DTypeRow& row : kDTypes) {
    const FloatFormat format = row.format;
    const char letter = letter_of(row.kind);
    nb::object fields = nb::none();
    if (format.nan != kNoFormat.nan)
      fields =
          nb::make_tuple(format.fraction, format.least, format.largest,
                         or_none(format.infinity, format.infinity != kNoInfinity), format.nan, format.first);
    rows.append(nb::make_tuple(row.dtype, row.name, row.bytes, row.bits, nb::str(&letter, 1),
                               is_of_numpy(row.dtype),
                               or_none(static_cast<int>(row.dlpack), row.dlpack != DLPack::none),
                               or_none(row.xla, row.xla != 0), row.value, fields));
  }
  return rows;
}

}  // namespace

View view_of_operand(nb::handle h) {
  return PyArray_Check(h.ptr()) ? view_of(as_array(h)) : view_or_empty(h);
}

CachedPlan plan_of(const Call& call, bool& is_new) {
  CachedPlan cached = find_plan(call);
  is_new = cached.program == nullptr;
  if (!is_new) return cached;
  return make_and_keep_plan(
      call, [&] { return plan_views_in_python(call); }, [&](nb::handle) { return call; });
}

void find_plan_and_run_on_views(const Call& call, nb::handle fill, const Allocate& allocate,
                                const Changed& changed) {
  const Views& operands = call.operands;
  const void* const item = item_of(fill, operands[0].item);
  bool is_new = false;
  const CachedPlan cached = plan_of(call, is_new);
  const BoundProgram& program = *cached.program;
  check_out_memory(cached.plan, operands);
  if (is_new && changed) raise_changed(cached.plan, changed());
  void* result = operands[3].is_present() ? operands[3].address : allocate(program.fields().result);
  gatherum_operands buffers = operands_of(program, operands, result);
  buffers.fill = item;
  run_without_lock_if_long(cached.plan, program, [&](const gatherum_poll* poll, gatherum_error* error) {
    return gatherum_run(program.core(), &buffers, poll, error);
  });
}

void bind_memory_calls(nb::module_& m) {
  nb::enum_<DType> dtypes(m, "DType", "The dtypes that plans are keyed by.");
  for (const DTypeRow& row : kDTypes) dtypes.value(row.name, row.dtype);
  m.def("dtype_rows", &dtype_rows);
  m.def("dtype_of_dlpack", &dtype_of_dlpack, nb::arg("code"), nb::arg("bits"));
  nb::class_<BoundView>(m, "View", nb::type_slots(guarded_slots))
      .def(nb::init<intptr_t, const nb::tuple&, const nb::tuple&, DType, bool>(), nb::arg("address"),
           nb::arg("shape"), nb::arg("strides"), nb::arg("dtype"), nb::arg("writable") = true);
  def_positional<kArgumentCount + 1, run_on_views>(
      m, "run_on_views",
      "run_on_views(op, data, indices, updates, axis, reduction, include_self, mode, negative, fill, out, "
      "allocate, /)\n--\n\n");
}

}  // namespace gatherum
