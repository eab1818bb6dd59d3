#include "entries.hpp"

#include <array>
#include <span>
#include <utility>

#include "calls.hpp"

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

// What body() returns, or null with Python's exception set.
template <class Body>
PyObject* guarded(const Body& body) {
  try {
    return body().release().ptr();
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError,
                    e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

bool has_arguments(PyObject* op, Py_ssize_t given, size_t n) {
  if (given == static_cast<Py_ssize_t>(n)) return true;
  PyErr_Format(PyExc_TypeError, "gatherum: %U takes %zd arguments here", op, static_cast<Py_ssize_t>(n));
  return false;
}

using Arguments = std::array<nb::handle, kArguments>;

// What an operator is given whose signature does not have all arguments.
Arguments without_arguments(nb::handle op) {
  static PyObject* const none = PyUnicode_InternFromString("none");
  static PyObject* const zero = PyLong_FromLong(0);
  return {op, {}, {}, Py_None, {}, none, Py_True, {}, {}, zero, {}};
}

template <bool Scatters>
PyObject* call_operator(PyObject* op, PyObject* const* given, Py_ssize_t n) {
  const Order order = order_of(Scatters);
  if (!has_arguments(op, n, order.size())) return nullptr;
  Arguments a = without_arguments(op);
  for (size_t i = 0; i < order.size(); ++i) a[order[i]] = given[i];
  return guarded([&] { return call(a.data()); });
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

// A Python function that the core answers.
struct Answered {
  Order order;
  bool runs_plan = false;
  std::array<PyObject*, kArguments> names{};  // of its parameters, interned
  Arguments arguments;                        // with its defaults
  size_t positional = 0;
  unsigned required = 0;               // a bit for each parameter without default
  vectorcallfunc by_python = nullptr;  // runs its body
};
std::array<Answered, 7> answered;
[[maybe_unused]] size_t answered_count = 0;

// Puts what a call was given into `a`. False: it is no such call.
bool bind(const Answered& function, PyObject* const* given, size_t n, PyObject* keywords, Arguments& a) {
  if (n > function.positional) return false;
  const Order order = function.order;
  for (size_t i = 0; i < n; ++i) a[order[i]] = given[i];
  unsigned bound = (1u << n) - 1;
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t k = 0; k < named; ++k) {
    size_t i = 0;
    while (i < order.size() && function.names[i] != PyTuple_GET_ITEM(keywords, k)) ++i;
    if (i == order.size() || (bound >> i & 1) != 0) return false;
    a[order[i]] = given[n + static_cast<size_t>(k)];
    bound |= 1u << i;
  }
  return (bound & function.required) == function.required;
}

// Stands for the vectorcall of a Python function.
template <size_t Number>
PyObject* answer(PyObject* self, PyObject* const* given, size_t flags, PyObject* keywords) {
  const Answered& function = answered[Number];
  Arguments a = function.arguments;
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(flags));
  if (!bind(function, given, n, keywords, a)) return function.by_python(self, given, flags, keywords);
  return guarded([&] { return function.runs_plan ? run(a) : call(a.data()); });
}

[[maybe_unused]] constexpr auto kAnswers = []<size_t... I>(std::index_sequence<I...>) {
  return std::array{answer<I>...};
}(std::make_index_sequence<answered.size()>{});

}  // namespace

nb::object entry_of(nb::str name, bool scatters) {
  const auto method = [](auto* function) {
    const auto address = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
    return PyMethodDef{"call", address, METH_FASTCALL, nullptr};
  };
  static PyMethodDef gathers = method(call_operator<false>), scatterers = method(call_operator<true>);
  return nb::steal(PyCFunction_New(scatters ? &scatterers : &gathers, interned(name).ptr()));
}

nb::object entry_of_plans() {
  static PyMethodDef runs = {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_plan)),
                             METH_FASTCALL, nullptr};
  return nb::steal(PyCFunction_New(&runs, nb::str("run").ptr()));
}

namespace {

#if PY_VERSION_HEX >= 0x030C0000 && !defined(PYPY_VERSION)

void answer_with(nb::handle function, Answered made) {
  if (!PyFunction_Check(function.ptr()) || answered_count == answered.size())
    throw nb::type_error("gatherum: not a function that the core answers");
  const nb::object code = function.attr("__code__"), names = code.attr("co_varnames");
  const auto defaults = nb::cast<nb::tuple>(function.attr("__defaults__"));
  const auto named = nb::cast<nb::dict>(function.attr("__kwdefaults__"));
  made.positional = nb::cast<size_t>(code.attr("co_argcount"));
  for (size_t i = 0; i < made.order.size(); ++i) {
    const nb::object name = names[i];
    made.names[i] = name.inc_ref().ptr();
    nb::handle& value = made.arguments[made.order[i]];
    if (const size_t first = made.positional - defaults.size(); i >= first && i < made.positional)
      value = nb::object(defaults[i - first]).release();
    else if (named.contains(name))
      value = nb::object(named[name]).release();
    else
      made.required |= 1u << i;
  }
  auto* python = reinterpret_cast<PyFunctionObject*>(function.ptr());
  made.by_python = python->vectorcall;
  answered[answered_count] = made;
  PyFunction_SetVectorcall(python, kAnswers[answered_count++]);
}

#else

void answer_with(nb::handle, const Answered&) {}

#endif

}  // namespace

void answer_calls_of(nb::handle function, bool scatters) {
  Answered made;
  made.order = order_of(scatters);
  made.arguments = without_arguments(interned(nb::str(function.attr("__name__"))).release());
  answer_with(function, made);
}

void answer_runs_of(nb::handle function) {
  Answered made;
  made.order = kRunOrder;
  made.runs_plan = true;
  answer_with(function, made);
}

}  // namespace gatherum
