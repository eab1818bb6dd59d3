#include "python/numpy/array_calls.hpp"

#include <algorithm>
#include <optional>

#include "python/call_plans.hpp"
#include "python/callbacks.hpp"
#include "python/gil_release.hpp"
#include "python/runs.hpp"

namespace gatherum {

bool is_ndarray_or_memmap(PyObject* o) {
  if (PyArray_CheckExact(o)) return true;
  if (!PyArray_Check(o)) return false;
  static const nb::handle memmap = nb::object(nb::module_::import_("numpy").attr("memmap")).release();
  return reinterpret_cast<PyObject*>(Py_TYPE(o)) == memmap.ptr();
}

namespace {

// Returns true if all operands are arrays. Optional operands may also be None. `out` may be of a subclass
// once Python has checked it.
bool are_arrays(const OperandHandles& operands, bool normalized) {
  for (size_t i = 0; i < operands.size(); ++i) {
    PyObject* o = operands[i].ptr();
    if (!(is_ndarray_or_memmap(o) || (i >= 2 && o == Py_None) || (normalized && i == 3 && PyArray_Check(o))))
      return false;
  }
  return true;
}

// Runs a call with the plan `cached`. If `cached` is empty, first makes and stores the plan.
nb::object plan_if_missing_and_run(CachedPlan cached, const Attributes& attributes,
                                   const OperandHandles& operands, nb::handle fill_value) {
  const OperandSnapshot before(operands);
  if (cached.program == nullptr) {
    cached = make_and_keep_plan(
        {attributes, views_of(operands)}, [&] { return plan_in_python(attributes, operands); },
        [&](nb::handle plan) {
          raise_changed(plan, before.first_change(operands));
          return Call{attributes, views_of(operands)};
        });
  }
  return run_any_plan(cached, operands, fill_value, before);
}

// Raises ValueError if a plan has the program of another call, which is possible with `dataclasses.replace`.
void refuse_other_program(const BoundProgram& program, const Views& operands) {
  const auto& [data, indices, updates, out] = operands;
  const int64_t bytes = limited_product(data.item, program.fields().result.items());
  gatherum_operands buffers = {};  // `&buffers` represents a result that is not allocated yet
  buffers.data = memory_of(data);
  buffers.indices = memory_of(indices);
  if (updates.is_present()) buffers.updates = memory_of(updates);
  buffers.out = out.is_present() ? memory_of(out) : gatherum_memory(&buffers, bytes);
  if (program.fields().item != data.item || program.fields().scatter != updates.is_present())
    throw nb::value_error("gatherum: not a plan of these operands");
  refuse_too_small(program, buffers);
}

// Runs a plan on operands on which it has not run before. The callback checks these operands first.
nb::object check_and_run_plan(const CachedPlan& cached, const OperandHandles& operands,
                              nb::handle fill_value) {
  const auto [data, indices, updates, out] = operands;
  std::optional<OperandSnapshot> before;
  if (std::all_of(operands.begin(), operands.end(),
                  [](nb::handle h) { return h.is_none() || PyArray_Check(h.ptr()); }))
    before.emplace(operands);
  const bool arrays = are_arrays(operands, true);
  Key key;
  if (arrays) key.add(views_of(operands));
  callbacks().check_operands(cached.plan, data, indices, updates, out);
  if (!before) throw nb::type_error("gatherum: the callback for operands must reject non-arrays");
  refuse_other_program(*cached.program, views_of(operands));
  if (arrays && key.is_lasting()) cached.program->note_run_on(key.words(), key.size());
  return run_any_plan(cached, operands, fill_value, *before);
}

}  // namespace

nb::object run_plan(nb::handle plan, const OperandHandles& operands, nb::handle fill_value) {
  const CachedPlan cached{nb::borrow(plan), &program_of(plan)};
  if (!are_arrays(operands, true)) return check_and_run_plan(cached, operands, fill_value);
  const Views views = views_of(operands);
  const bool known = cached.program->was_run_on([&](const std::vector<int64_t>& words) {
    if (words.size() != static_cast<size_t>(words_of(views))) return false;
    Comparison comparison(words.data());
    comparison.add(views);
    return comparison.is_equal();
  });
  if (!known) return check_and_run_plan(cached, operands, fill_value);
  if (operands[3].is_none() && cached.program->runs_without_python())
    return run_plan_without_python(*cached.program, plan, views);
  return run_any_plan(cached, operands, fill_value, OperandSnapshot(operands));
}

namespace {

// Runs a call on arrays with its plan from the table of plans. Makes the plan first if it is not in the
// table.
nb::object find_plan_and_run(const Attributes& attributes, const OperandHandles& operands,
                             nb::handle fill_value) {
  const Call call{attributes, views_of(operands)};
  CachedPlan cached = find_plan(call);
  if (cached.program != nullptr && operands[3].is_none() && cached.program->runs_without_python())
    return run_plan_without_python(*cached.program, cached.plan, call.operands);
  return plan_if_missing_and_run(std::move(cached), attributes, operands, fill_value);
}

}  // namespace

nb::object call_on_arrays(const nb::handle* arguments) {
  const OperandHandles operands = operands_of(arguments);
  Attributes attributes;
  if (!read_attributes(arguments, attributes) || !are_arrays(operands, false)) return {};
  return find_plan_and_run(attributes, operands, arguments[kFill]);
}

nb::object run_normalized(const nb::handle* arguments) {
  const OperandHandles operands = operands_of(arguments);
  Attributes attributes;
  if (!read_attributes(arguments, attributes) || !are_arrays(operands, true))
    throw nb::value_error("gatherum: arguments were not normalized");
  return find_plan_and_run(attributes, operands, arguments[kFill]);
}

}  // namespace gatherum
