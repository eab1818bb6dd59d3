// Kernels that replace those of torch inside `reproducible`. torch's dispatcher calls them as Python
// callables. A kernel runs a call on plain tensors without Python code, and passes any other call to the
// Python kernel of the same operator. (A kernel of torch's stable C interface would save 0.5 us more per
// call, but this interface has no scalars, so no `index_add`, and loses the types of errors.)
#include <atomic>

#include "python/bindings/bindings.hpp"
#include "python/guarded.hpp"
#include "python/torch/override_bags.hpp"
#include "python/torch/override_call.hpp"

namespace gatherum {
namespace {

class OverrideKernel {
 public:
  OverrideKernel(OverrideForm form, const nb::dict& words, bool in_place, nb::object python, nb::object torch)
      : op_{form, words, in_place}, python_(std::move(python)), torch_(std::move(torch)) {}

  nb::object call(PyObject* positional, PyObject* named) {
    if (torch().api == nullptr) return by_python(positional, named);
    if (op_.form == OverrideForm::bags) return call_on_bags(positional, named);
    for (int attempt = 0; attempt < 2; ++attempt) {
      DispatchedArguments arguments(positional, named);
      OverrideCall call;
      if (!call.read(op_, arguments))
        return call.is_without_order() ? by_torch(positional, named) : by_python(positional, named);
      nb::object result;
      const OverrideCall::Outcome outcome = call.run(arguments[0], result);
      if (outcome == OverrideCall::Outcome::done) return counted(result);
      if (outcome == OverrideCall::Outcome::declined) break;
    }
    return by_python(positional, named);
  }

  int64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  int64_t passed() const { return passed_.load(std::memory_order_relaxed); }

 private:
  nb::object call_on_bags(PyObject* positional, PyObject* named) {
    const DispatchedArguments arguments(positional, named);
    if (!arguments.all_taken()) return by_python(positional, named);
    if (is_in_order(arguments)) return by_torch(positional, named);
    nb::object result = run_mean_bags(arguments, torch_);
    if (!result.is_valid()) result = run_weighted_bags(arguments);
    return result.is_valid() ? counted(result) : by_python(positional, named);
  }

  nb::object counted(const nb::object& result) {
    runs_.fetch_add(1, std::memory_order_relaxed);
    return result;
  }
  nb::object by_torch(PyObject* positional, PyObject* named) {
    passed_.fetch_add(1, std::memory_order_relaxed);
    return checked(PyObject_Call(torch_.ptr(), positional, named));
  }
  nb::object by_python(PyObject* positional, PyObject* named) {
    return checked(PyObject_Call(python_.ptr(), positional, named));
  }

  Override op_;
  nb::object python_, torch_;
  std::atomic<int64_t> runs_ = 0, passed_ = 0;
};

PyObject* call_kernel(PyObject* self, PyObject* positional, PyObject* named) {
  return guarded([&] { return nb::inst_ptr<OverrideKernel>(self)->call(positional, named); });
}

PyType_Slot kernel_slots[] = {
    guarded_slots[0], {Py_tp_call, reinterpret_cast<void*>(call_kernel)}, {0, nullptr}};

}  // namespace

void bind_override_kernels(nb::module_& m) {
  nb::enum_<OverrideForm>(m, "OverrideForm", "The operands of an operator, in their order.")
      .value("slices", OverrideForm::slices)
      .value("elements", OverrideForm::elements)
      .value("flat", OverrideForm::flat)
      .value("indexed", OverrideForm::indexed)
      .value("embedding", OverrideForm::embedding)
      .value("counts", OverrideForm::counts)
      .value("bags", OverrideForm::bags)
      .value("of_bags", OverrideForm::of_bags);
  nb::class_<OverrideKernel>(m, "OverrideKernel", nb::type_slots(kernel_slots))
      .def(nb::init<OverrideForm, const nb::dict&, bool, nb::object, nb::object>(), nb::arg("form"),
           nb::arg("words"), nb::arg("in_place"), nb::arg("python"), nb::arg("torch"))
      .def_prop_ro("runs", &OverrideKernel::runs)
      .def_prop_ro("passed", &OverrideKernel::passed);
}

}  // namespace gatherum
