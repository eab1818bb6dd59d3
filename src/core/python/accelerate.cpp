// Python functions whose calls the core runs without executing their bodies.
#include <array>
#include <atomic>
#include <memory>

#include "python/bindings/bindings.hpp"
#include "python/dispatch.hpp"
#include "python/guarded.hpp"
#include "python/numpy/array_calls.hpp"

namespace gatherum {
namespace {

#if PY_VERSION_HEX >= 0x030C0000 && !defined(PYPY_VERSION)

constexpr std::array kPlanArguments = {kOp, kData, kIndices, kUpdates, kOut, kFill};  // kOp: the plan

// The default arguments for parameters that an operator's signature does not have.
Arguments default_arguments(nb::handle op) {
  static PyObject* const none = kept_text("none");
  static PyObject* const zero = PyLong_FromLong(0);
  return {op, {}, {}, Py_None, {}, none, Py_True, {}, {}, zero, {}};
}

// The parameter names of operators and of Plan.run; `self` is a plan.
struct Parameter {
  const char* name;
  Argument argument;
};
constexpr Parameter kParameters[] = {
    {"self", kOp},   {"data", kData},         {"indices", kIndices},     {"updates", kUpdates},
    {"axis", kAxis}, {"batch_dims", kAxis},   {"reduction", kReduction}, {"include_self", kIncludeSelf},
    {"mode", kMode}, {"negative", kNegative}, {"fill_value", kFill},     {"out", kOut}};

// A Python function whose calls the core runs.
struct Accelerated {
  PyObject* function;            // borrowed: only its address is used
  vectorcallfunc run_in_python;  // runs the Python body
  bool runs_plan = false;
  size_t parameter_count = 0;
  size_t positional_count = 0;                         // the number of positional parameters, which are first
  unsigned required_bits = 0;                          // a bit for each parameter without default
  std::array<nb::handle, kArgumentCount> names;        // of the parameters, interned
  std::array<Argument, kArgumentCount> argument_of{};  // the argument that each parameter binds
  Arguments defaults;
  const Accelerated* next = nullptr;
};

// The nodes whose function addresses have the same hash. They are never removed. The newest node is first. If
// a function is freed and another function gets its address, the search finds the node of the live function.
using Nodes = std::atomic<const Accelerated*>;

Nodes& nodes_of(const PyObject* function) {
  static std::array<Nodes, 64> nodes;  // a search in a single list would take a few of the 200 ns of a call
  return nodes[(reinterpret_cast<uintptr_t>(function) >> 4) * 0x9E3779B97F4A7C15u >> 58];
}

// Binds the arguments of a call. Returns false if they do not match the parameters.
bool bind_arguments(const Accelerated& function, PyObject* const* values, size_t n, PyObject* keywords,
                    Arguments& arguments) {
  if (n > function.positional_count) return false;
  for (size_t i = 0; i < n; ++i) arguments[function.argument_of[i]] = values[i];
  unsigned bound = (1u << n) - 1;
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t k = 0; k < named; ++k) {
    size_t i = 0;
    while (i < function.parameter_count && function.names[i].ptr() != PyTuple_GET_ITEM(keywords, k)) ++i;
    if (i == function.parameter_count || (bound >> i & 1) != 0) return false;
    arguments[function.argument_of[i]] = values[n + static_cast<size_t>(k)];
    bound |= 1u << i;
  }
  return (bound & function.required_bits) == function.required_bits;
}

// The vectorcall of every accelerated function.
PyObject* call_accelerated(PyObject* self, PyObject* const* values, size_t flags, PyObject* keywords) {
  const Accelerated* function = nodes_of(self).load(std::memory_order_acquire);
  while (function->function != self) function = function->next;
  Arguments arguments = function->defaults;
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(flags));
  if (!bind_arguments(*function, values, n, keywords, arguments))
    return function->run_in_python(self, values, flags, keywords);
  return guarded([&] {
    return function->runs_plan ? run_plan(arguments[kOp], operands_of(arguments.data()), arguments[kFill])
                               : dispatch_call(arguments.data());
  });
}

const Parameter* find_parameter(nb::handle name) {
  for (const Parameter& parameter : kParameters)
    if (PyUnicode_CompareWithASCIIString(name.ptr(), parameter.name) == 0) return &parameter;
  return nullptr;
}

// Returns true if the parameters, with a bit for each argument, include all arguments that a call needs.
bool is_complete(const Accelerated& function, unsigned present) {
  unsigned needed = 0;
  if (function.runs_plan) {
    for (const Argument argument : kPlanArguments) needed |= 1u << argument;
    return present == needed;
  }
  for (size_t i = 0; i < kArgumentCount; ++i)
    if (!function.defaults[i].is_valid()) needed |= 1u << i;
  return (present & needed) == needed;
}

// Reads the parameters of a function. Returns false if they are not the parameters of an operator or of
// Plan.run.
bool read_parameters(nb::handle function, Accelerated& accelerated) {
  const auto& code = *reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.ptr()));
  constexpr int kOtherFlags = CO_VARARGS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  accelerated.positional_count = static_cast<size_t>(code.co_argcount);
  accelerated.parameter_count = accelerated.positional_count + static_cast<size_t>(code.co_kwonlyargcount);
  if ((code.co_flags & kOtherFlags) != 0 || code.co_posonlyargcount != 0 ||
      accelerated.parameter_count > kArgumentCount)
    return false;
  const nb::object names = function.attr("__code__").attr("co_varnames");
  const nb::handle defaults = PyFunction_GET_DEFAULTS(function.ptr());
  const nb::handle named = PyFunction_GET_KW_DEFAULTS(function.ptr());
  const size_t first = accelerated.positional_count - (defaults.is_valid() ? nb::len(defaults) : 0);
  unsigned present = 0;
  for (size_t i = 0; i < accelerated.parameter_count; ++i) {
    accelerated.names[i] = PyTuple_GET_ITEM(names.ptr(), i);
    const Parameter* parameter = find_parameter(accelerated.names[i]);
    if (parameter == nullptr || (present >> parameter->argument & 1) != 0) return false;
    present |= 1u << parameter->argument;
    accelerated.argument_of[i] = parameter->argument;
    nb::handle value;
    if (i >= first && i < accelerated.positional_count)
      value = PyTuple_GET_ITEM(defaults.ptr(), i - first);
    else if (named.is_valid())
      value = PyDict_GetItemWithError(named.ptr(), accelerated.names[i].ptr());
    if (!value.is_valid()) accelerated.required_bits |= 1u << i;
    accelerated.defaults[parameter->argument] = value;
  }
  accelerated.runs_plan = (present >> kOp & 1) != 0;
  return is_complete(accelerated, present);
}

// Lets the core run the calls to a Python function, from CPython 3.12 on. The function must only pass its
// parameters to `dispatch_call` or `run_plan`. Binding the arguments in Python takes longer than a small
// gather (60 ns of 250). The parameter names identify the arguments, and `self` is a plan. The function is
// otherwise unchanged. Its body still runs when torch.compile traces the function. It also runs for arguments
// that do not match, so that Python raises the error. Other objects are left unchanged.
void accelerate(nb::handle function) {
  auto* python = reinterpret_cast<PyFunctionObject*>(function.ptr());
  if (!PyFunction_Check(function.ptr()) || python->vectorcall == call_accelerated) return;
  auto accelerated = std::make_unique<Accelerated>();
  accelerated->function = function.ptr();
  accelerated->run_in_python = python->vectorcall;
  const nb::object op = interned(function.attr("__name__"));
  accelerated->defaults = default_arguments(op);
  if (!read_parameters(function, *accelerated)) return;
  for (const nb::handle name : accelerated->names) name.inc_ref();
  for (const nb::handle value : accelerated->defaults) value.inc_ref();
  Nodes& nodes = nodes_of(function.ptr());
  while (!nodes.compare_exchange_weak(accelerated->next, accelerated.get())) {
  }
  accelerated.release();
  PyFunction_SetVectorcall(python, call_accelerated);
}

#else

void accelerate(nb::handle) {}

#endif

}  // namespace

void bind_accelerate(nb::module_& m) { m.def("accelerate", &accelerate, nb::arg("function").none()); }

}  // namespace gatherum
