#include "calls.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "hooks.hpp"
#include "known_calls.hpp"
#include "released.hpp"
#include "runs.hpp"
#include "tensors.hpp"

namespace gatherum {
namespace {

enum Argument {
  kOp,
  kData,
  kIndices,
  kUpdates,
  kAxis,
  kReduction,
  kIncludeSelf,
  kMode,
  kNegative,
  kFill,
  kOut
};

// Whether operands are arrays, or None where there may be none. `out` may be of a subclass once Python has
// looked at it.
bool are_arrays(const OperandHandles& operands, bool normalised) {
  for (size_t i = 0; i < operands.size(); ++i) {
    PyObject* o = operands[i].ptr();
    if (!(PyArray_CheckExact(o) || (i >= 2 && o == Py_None) || (normalised && i == 3 && PyArray_Check(o))))
      return false;
  }
  return true;
}

bool read_attributes(const nb::handle* a, Attributes& attributes) {
  return read_attributes(a[kOp], a[kAxis], a[kReduction], a[kIncludeSelf], a[kMode], a[kNegative],
                         attributes);
}

// A list of Python integers, or of such lists of one length, as an array of int64; nothing where it is
// anything else, which Python then looks at.
nb::object array_of_integers(nb::handle list) {
  if (!PyList_CheckExact(list.ptr()) || PyList_GET_SIZE(list.ptr()) == 0) return {};
  const bool nested = PyList_CheckExact(PyList_GET_ITEM(list.ptr(), 0));
  const npy_intp shape[] = {PyList_GET_SIZE(list.ptr()),
                            nested ? PyList_GET_SIZE(PyList_GET_ITEM(list.ptr(), 0)) : 1};
  nb::object array = nb::steal(PyArray_SimpleNew(nested ? 2 : 1, shape, NPY_INT64));
  if (!array.is_valid()) nb::raise_python_error();
  auto* to = reinterpret_cast<int64_t*>(PyArray_BYTES(as_array(array)));
  const auto read = [&to](PyObject* item) {
    int overflow = 0;
    if (!PyLong_CheckExact(item)) return false;
    *to++ = PyLong_AsLongLongAndOverflow(item, &overflow);
    return overflow == 0;
  };
  for (npy_intp i = 0; i < shape[0]; ++i) {
    PyObject* row = PyList_GET_ITEM(list.ptr(), i);
    if (nested && (!PyList_CheckExact(row) || PyList_GET_SIZE(row) != shape[1])) return {};
    for (npy_intp j = 0; j < shape[1]; ++j)
      if (!read(nested ? PyList_GET_ITEM(row, j) : row)) return {};
  }
  return array;
}

}  // namespace

Hooks& hooks() {
  static auto* h = new Hooks;
  return *h;
}

namespace {

// Runs a call by its plan, which Python makes where none was found.
nb::object run_found(Found found, const Attributes& attributes, const OperandHandles& operands,
                     nb::handle fill_value) {
  const Looks before(operands);
  if (found.program == nullptr) {
    const Key key(attributes, views_of(operands));
    found = make_plan(attributes, operands);
    raise_changed(found.plan, before.first_change(operands));
    keep_plan(key, attributes, views_of(operands), found);
  }
  return run_on_arrays(found, operands, fill_value, before);
}

// Runs a plan on operands that the hook has yet to look at.
nb::object run_checked(const Found& found, const OperandHandles& operands, nb::handle fill_value) {
  const auto [data, indices, updates, out] = operands;
  std::optional<Looks> before;
  if (std::all_of(operands.begin(), operands.end(),
                  [](nb::handle h) { return h.is_none() || PyArray_Check(h.ptr()); }))
    before.emplace(operands);
  const bool arrays = are_arrays(operands, true);
  Key key;
  if (arrays) key.add(views_of(operands));
  hooks().check_operands(found.plan, data, indices, updates, out);
  if (!before) throw nb::type_error("gatherum: the hook for operands must refuse what is no array");
  if (arrays && key.lasting()) found.program->note_run_on(key.words(), key.size());
  return run_on_arrays(found, operands, fill_value, *before);
}

nb::object run(nb::handle plan, nb::handle data, nb::handle indices, nb::handle updates,
               nb::handle fill_value, nb::handle out) {
  const OperandHandles operands = {data, indices, updates, out};
  const Found found{nb::borrow(plan), &program_of(plan)};
  if (!are_arrays(operands, true)) return run_checked(found, operands, fill_value);
  const Views views = views_of(operands);
  const bool known = found.program->was_run_on([&](const std::vector<int64_t>& words) {
    Comparison comparison(words);
    comparison.add(views);
    return comparison.same();
  });
  if (!known) return run_checked(found, operands, fill_value);
  if (out.is_none() && found.program->is_quiet()) return run_quietly(*found.program, plan, views);
  return run_on_arrays(found, operands, fill_value, Looks(operands));
}

// A gather that fills with anything but zeros has an item to be made of it.
bool fills_with_zeros(nb::handle fill) {
  return PyLong_CheckExact(fill.ptr()) && nb::cast<nb::int_>(fill).equal(nb::int_(0));
}

nb::object call_on_tensors_of(const nb::handle* a) {
  if (!fills_with_zeros(a[kFill])) return {};
  return call_on_plain_tensors({a[kOp], a[kData], a[kIndices], a[kUpdates], a[kAxis], a[kReduction],
                                a[kIncludeSelf], a[kMode], a[kNegative], nb::none(), a[kOut]});
}

nb::object call_as_before(const nb::handle* a) {
  if (PyArray_CheckExact(a[kData].ptr()) || !a[kOut].is_none()) return {};
  return run_as_before({a[kOp],
                        a[kData],
                        a[kIndices],
                        a[kUpdates],
                        {a[kAxis], a[kReduction], a[kIncludeSelf], a[kMode], a[kNegative], a[kFill]}});
}

}  // namespace

nb::object call(nb::handle* a) {
  if (is_tensor(a[kData]))
    if (nb::object result = call_on_tensors_of(a); result.is_valid()) return result;
  if (nb::object result = call_as_before(a); result.is_valid()) return result;
  nb::object normalised;
  nb::handle plain[kArguments];
  const nb::object listed = array_of_integers(a[kIndices]);
  if (listed.is_valid()) a[kIndices] = listed;
  OperandHandles operands = {a[kData], a[kIndices], a[kUpdates], a[kOut]};
  Attributes attributes;
  if (!read_attributes(a, attributes) || !are_arrays(operands, false)) {
    normalised = hooks().normalise(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
    if (!PyTuple_CheckExact(normalised.ptr())) return normalised;
    for (int i = 0; i < kArguments; ++i) plain[i] = PyTuple_GET_ITEM(normalised.ptr(), i);
    a = plain;
    operands = {a[kData], a[kIndices], a[kUpdates], a[kOut]};
    if (!read_attributes(a, attributes) || !are_arrays(operands, true))
      throw nb::value_error("gatherum: arguments were not normalised");
  }
  const Views views = views_of(operands);
  Found found = find_plan(attributes, views);
  if (found.program != nullptr && a[kOut].is_none() && found.program->is_quiet())
    return run_quietly(*found.program, found.plan, views);
  return run_found(found, attributes, operands, a[kFill]);
}

void leave() {
  clear_plans();
  forget_calls();
  // What a daemon thread that is still in a call keeps alive is no leak to warn of.
  if (Released::count() > 0) nb::set_leak_warnings(false);
}

namespace {

// What an entry of an operator passes on: its positional arguments, in the order of its signature.
constexpr std::array kGatherOrder = {kData, kIndices, kAxis, kMode, kNegative, kFill, kOut};
constexpr std::array kScatterOrder = {kData,        kIndices, kUpdates,  kAxis, kReduction,
                                      kIncludeSelf, kMode,    kNegative, kOut};

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

template <size_t N>
PyObject* call_with(PyObject* op, PyObject* const* given, Py_ssize_t n,
                    const std::array<Argument, N>& order) {
  static PyObject* const none = PyUnicode_InternFromString("none");
  static PyObject* const zero = PyLong_FromLong(0);
  if (!has_arguments(op, n, N)) return nullptr;
  nb::handle a[kArguments] = {op, {}, {}, Py_None, {}, none, Py_True, {}, {}, zero, {}};
  for (size_t i = 0; i < N; ++i) a[order[i]] = given[i];
  return guarded([&] { return call(a); });
}

PyObject* call_gather(PyObject* op, PyObject* const* given, Py_ssize_t n) {
  return call_with(op, given, n, kGatherOrder);
}

PyObject* call_scatter(PyObject* op, PyObject* const* given, Py_ssize_t n) {
  return call_with(op, given, n, kScatterOrder);
}

PyObject* call_plan(PyObject* name, PyObject* const* a, Py_ssize_t n) {
  if (!has_arguments(name, n, 6)) return nullptr;
  return guarded([&] { return run(a[0], a[1], a[2], a[3], a[4], a[5]); });
}

}  // namespace

// Python's own kind of function: a call of nanobind's, with as many arguments, takes twice as long.

nb::object entry_of_plans() {
  static PyMethodDef runs = {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_plan)),
                             METH_FASTCALL, nullptr};
  return nb::steal(PyCFunction_New(&runs, nb::str("run").ptr()));
}

nb::object entry_of(nb::str name, bool scatters) {
  static PyMethodDef gathers = {"gather", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_gather)),
                                METH_FASTCALL, nullptr};
  static PyMethodDef scatters_def = {"scatter",
                                     reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_scatter)),
                                     METH_FASTCALL, nullptr};
  PyObject* op = name.inc_ref().ptr();
  PyUnicode_InternInPlace(&op);
  return nb::steal(PyCFunction_New(scatters ? &scatters_def : &gathers, nb::steal(op).ptr()));
}

}  // namespace gatherum
