#include "accelerate.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <span>

#include "calls.hpp"
#include "guarded.hpp"

namespace gatherum {
namespace {

// The arguments of an operator, in the order of its signature.
using Order = std::span<const Argument>;
constexpr std::array kGatherOrder = {kData, kIndices, kAxis, kMode, kNegative, kFill, kOut};
constexpr std::array kScatterOrder = {kData,        kIndices, kUpdates,  kAxis, kReduction,
                                      kIncludeSelf, kMode,    kNegative, kOut};
constexpr std::array kRunOrder = {kOp, kData, kIndices, kUpdates, kOut, kFill};  // kOp: the plan

Order order_of(bool scatters) {
  if (scatters) return kScatterOrder;
  return kGatherOrder;
}

bool has_arguments(PyObject* op, Py_ssize_t given, size_t n) {
  if (given == static_cast<Py_ssize_t>(n)) return true;
  PyErr_Format(PyExc_TypeError, "gatherum: %U takes %zd arguments here", op, static_cast<Py_ssize_t>(n));
  return false;
}

using Arguments = std::array<nb::handle, kArguments>;

// What an operator is given whose signature does not have all arguments.
Arguments without_arguments(nb::handle op) {
  static PyObject* const none = kept_text("none");
  static PyObject* const zero = PyLong_FromLong(0);
  return {op, {}, {}, Py_None, {}, none, Py_True, {}, {}, zero, {}};
}

template <bool Scatters>
PyObject* call_operator(PyObject* op, PyObject* const* given, Py_ssize_t n) {
  const Order order = order_of(Scatters);
  if (!has_arguments(op, n, order.size())) return nullptr;
  return guarded([&] {
    Arguments a = without_arguments(op);
    for (size_t i = 0; i < order.size(); ++i) a[order[i]] = given[i];
    return call(a.data());
  });
}

nb::object run(const Arguments& a) {
  return run_plan(a[kOp], a[kData], a[kIndices], a[kUpdates], a[kFill], a[kOut]);
}

PyObject* call_plan(PyObject* name, PyObject* const* given, Py_ssize_t n) {
  if (!has_arguments(name, n, kRunOrder.size())) return nullptr;
  Arguments a;
  for (size_t i = 0; i < kRunOrder.size(); ++i) a[kRunOrder[i]] = given[i];
  return guarded([&] { return run(a); });
}

nb::object interned(nb::str name) {
  PyObject* one = name.release().ptr();
  PyUnicode_InternInPlace(&one);
  return nb::steal(one);
}

}  // namespace

nb::object entry_of(nb::str name, bool scatters) {
  const auto method = [](auto* function) {
    const auto address = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
    return PyMethodDef{"call", address, METH_FASTCALL, nullptr};
  };
  static PyMethodDef gathers = method(call_operator<false>), scatterers = method(call_operator<true>);
  return checked(PyCFunction_New(scatters ? &scatterers : &gathers, interned(name).ptr()));
}

nb::object entry_of_plans() {
  static PyMethodDef runs = {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_plan)),
                             METH_FASTCALL, nullptr};
  return checked(PyCFunction_New(&runs, kept_text("run")));
}

#if PY_VERSION_HEX >= 0x030C0000 && !defined(PYPY_VERSION)

namespace {

// The names of the parameters that operators and Plan.run have; `self` is a plan.
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
  PyObject* function;        // borrowed: only its address is used
  vectorcallfunc by_python;  // runs its body
  bool runs_plan = false;
  size_t parameters = 0;
  size_t positional = 0;                           // the first of the parameters
  unsigned required = 0;                           // a bit for each parameter without default
  std::array<nb::handle, kArguments> names;        // of the parameters, interned
  std::array<Argument, kArguments> argument_of{};  // the argument that each parameter is
  Arguments defaults;
  const Accelerated* next = nullptr;
};

// The nodes whose functions have addresses of one hash. They are never removed. The latest comes first: when
// a function is freed and another one gets its address, the search finds the node of the living one.
using Nodes = std::atomic<const Accelerated*>;

Nodes& nodes_of(const PyObject* function) {
  static std::array<Nodes, 64> nodes;  // one list of all takes a few ns of a call of 200
  return nodes[(reinterpret_cast<uintptr_t>(function) >> 4) * 0x9E3779B97F4A7C15u >> 58];
}

// Puts the arguments of a call into `a`; false if they do not fit the parameters.
bool bind(const Accelerated& function, PyObject* const* given, size_t n, PyObject* keywords, Arguments& a) {
  if (n > function.positional) return false;
  for (size_t i = 0; i < n; ++i) a[function.argument_of[i]] = given[i];
  unsigned bound = (1u << n) - 1;
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t k = 0; k < named; ++k) {
    size_t i = 0;
    while (i < function.parameters && function.names[i].ptr() != PyTuple_GET_ITEM(keywords, k)) ++i;
    if (i == function.parameters || (bound >> i & 1) != 0) return false;
    a[function.argument_of[i]] = given[n + static_cast<size_t>(k)];
    bound |= 1u << i;
  }
  return (bound & function.required) == function.required;
}

// The vectorcall of every accelerated function.
PyObject* call_accelerated(PyObject* self, PyObject* const* given, size_t flags, PyObject* keywords) {
  const Accelerated* function = nodes_of(self).load(std::memory_order_acquire);
  while (function->function != self) function = function->next;
  Arguments a = function->defaults;
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(flags));
  if (!bind(*function, given, n, keywords, a)) return function->by_python(self, given, flags, keywords);
  return guarded([&] { return function->runs_plan ? run(a) : call(a.data()); });
}

const Parameter* find_parameter(nb::handle name) {
  for (const Parameter& parameter : kParameters)
    if (PyUnicode_CompareWithASCIIString(name.ptr(), parameter.name) == 0) return &parameter;
  return nullptr;
}

// Whether parameters, a bit for each argument, are all that a call needs.
bool is_complete(const Accelerated& function, unsigned present) {
  unsigned needed = 0;
  if (function.runs_plan) {
    for (const Argument argument : kRunOrder) needed |= 1u << argument;
    return present == needed;
  }
  for (size_t i = 0; i < kArguments; ++i)
    if (!function.defaults[i].is_valid()) needed |= 1u << i;
  return (present & needed) == needed;
}

// Reads the parameters of a function; false if they are not those of an operator or of Plan.run.
bool read_parameters(nb::handle function, Accelerated& made) {
  const auto& code = *reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.ptr()));
  constexpr int kOther = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  made.positional = static_cast<size_t>(code.co_argcount);
  made.parameters = made.positional + static_cast<size_t>(code.co_kwonlyargcount);
  if ((code.co_flags & kOther) != 0 || code.co_posonlyargcount != 0 || made.parameters > kArguments)
    return false;
  const nb::object names = function.attr("__code__").attr("co_varnames");
  const nb::handle defaults = PyFunction_GET_DEFAULTS(function.ptr());
  const nb::handle named = PyFunction_GET_KW_DEFAULTS(function.ptr());
  const size_t first = made.positional - (defaults.is_valid() ? nb::len(defaults) : 0);
  unsigned present = 0;
  for (size_t i = 0; i < made.parameters; ++i) {
    made.names[i] = PyTuple_GET_ITEM(names.ptr(), i);
    const Parameter* parameter = find_parameter(made.names[i]);
    if (parameter == nullptr || (present >> parameter->argument & 1) != 0) return false;
    present |= 1u << parameter->argument;
    made.argument_of[i] = parameter->argument;
    nb::handle value;
    if (i >= first && i < made.positional)
      value = PyTuple_GET_ITEM(defaults.ptr(), i - first);
    else if (named.is_valid())
      value = PyDict_GetItemWithError(named.ptr(), made.names[i].ptr());
    if (!value.is_valid()) made.required |= 1u << i;
    made.defaults[parameter->argument] = value;
  }
  made.runs_plan = (present >> kOp & 1) != 0;
  return is_complete(made, present);
}

}  // namespace

void accelerate(nb::handle function) {
  auto* python = reinterpret_cast<PyFunctionObject*>(function.ptr());
  if (!PyFunction_Check(function.ptr()) || python->vectorcall == call_accelerated) return;
  auto made = std::make_unique<Accelerated>();
  made->function = function.ptr();
  made->by_python = python->vectorcall;
  const nb::object op = interned(nb::str(function.attr("__name__")));
  made->defaults = without_arguments(op);
  if (!read_parameters(function, *made)) return;
  for (const nb::handle name : made->names) name.inc_ref();
  for (const nb::handle value : made->defaults) value.inc_ref();
  Nodes& nodes = nodes_of(function.ptr());
  while (!nodes.compare_exchange_weak(made->next, made.get())) {
  }
  made.release();
  PyFunction_SetVectorcall(python, call_accelerated);
}

#else

void accelerate(nb::handle) {}

#endif

}  // namespace gatherum
