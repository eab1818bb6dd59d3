#include "python/jax/jax_call_cache.hpp"

#include <algorithm>
#include <vector>

#include "platform/system.hpp"
#include "python/bindings/bindings.hpp"
#include "python/guarded.hpp"

namespace gatherum {
namespace {

// The functions that run a call.
struct Runs {
  nb::object type;    // the type of its arrays
  nb::object direct;  // runs it without a message for an invalid index, or None
  nb::object run;
};

// The last call of an operator. Its attributes are kept alive, so that no other object can have their
// address.
struct CachedCall {
  nb::object op;
  Runs runs;
  bool scatters;
  std::array<nb::object, 6> attributes;
};

nb::ft_mutex calls_mutex;

std::vector<CachedCall>& call_cache() {
  static auto* calls = new std::vector<CachedCall>;  // never destroyed: it holds Python objects
  return *calls;
}

// Returns the functions that run a call, or an empty value if it is not cached.
Runs find_runs(const GivenCall& call) {
  const nb::ft_lock_guard lock(calls_mutex);
  for (const CachedCall& entry : call_cache())
    if (entry.op.is(call.op)) {
      const auto is_known = [&entry](nb::handle h) {
        return reinterpret_cast<PyObject*>(Py_TYPE(h.ptr())) == entry.runs.type.ptr();
      };
      const bool same = is_known(call.data) && is_known(call.indices) &&
                        (entry.scatters ? is_known(call.updates) : call.updates.is_none()) &&
                        std::equal(entry.attributes.begin(), entry.attributes.end(), call.attributes.begin(),
                                   [](const nb::object& a, nb::handle b) { return a.is(b); });
      return same ? entry.runs : Runs{};
    }
  return {};
}

// Waits for a result that has the arrays' type. A tracer is returned unchanged. Returns an empty object if
// the call has failed; `run` then fails too and raises the error.
nb::object run_directly(const Runs& runs, PyObject* const* operands, size_t n) {
  static PyObject* const wait = kept_text("block_until_ready");
  nb::object result = nb::steal(PyObject_Vectorcall(runs.direct.ptr(), operands, n, nullptr));
  if (result.is_valid()) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(result.ptr())) != runs.type.ptr()) return result;
    if (nb::steal(PyObject_CallMethodNoArgs(result.ptr(), wait)).is_valid()) return result;
  }
  if (!PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_ValueError))
    nb::raise_python_error();
  PyErr_Clear();
  return {};
}

void remember_call(nb::object op, nb::object type, nb::object direct, nb::object run, bool scatters,
                   const nb::tuple& attributes) {
  CachedCall entry{std::move(op), {std::move(type), std::move(direct), std::move(run)}, scatters, {}};
  if (attributes.size() != entry.attributes.size())
    throw nb::value_error("gatherum: six attributes are kept");
  for (size_t i = 0; i < entry.attributes.size(); ++i) entry.attributes[i] = attributes[i];
  const nb::ft_lock_guard lock(calls_mutex);
  for (CachedCall& cached : call_cache())
    if (cached.op.is(entry.op)) {
      std::swap(cached, entry);  // the old entry is destroyed after the lock is released
      return;
    }
  call_cache().push_back(std::move(entry));
}

// Runs a cached call. For any other call, calls `otherwise` with the same arguments.
PyObject* run_cached(PyObject* otherwise, PyObject* const* a, Py_ssize_t n) {
  if (n != 10) {
    PyErr_Format(PyExc_TypeError, "gatherum: a call has 10 arguments here, got %zd", n);
    return nullptr;
  }
  PyObject* const result =
      guarded([&] { return replay({a[0], a[1], a[2], a[3], {a[4], a[5], a[6], a[7], a[8], a[9]}}); });
  if (result != nullptr || PyErr_Occurred() != nullptr) return result;
  return PyObject_Vectorcall(otherwise, a, static_cast<size_t>(n), nullptr);
}

nb::object cached_call_entry(nb::handle otherwise) {
  static PyMethodDef runs = {"run_cached", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(run_cached)),
                             METH_FASTCALL, nullptr};
  return checked(PyCFunction_New(&runs, otherwise.ptr()));
}

}  // namespace

nb::object replay(const GivenCall& call) {
  const Runs runs = find_runs(call);
  if (!runs.run.is_valid()) return {};
  PyObject* operands[] = {call.data.ptr(), call.indices.ptr(), call.updates.ptr()};
  const size_t n = call.updates.is_none() ? 2 : 3;
  nb::object result = runs.direct.is_none() ? nb::object() : run_directly(runs, operands, n);
  if (result.is_valid()) return result;
  return checked(PyObject_Vectorcall(runs.run.ptr(), operands, n, nullptr));
}

void forget_calls() {
  std::vector<CachedCall> gone;
  const nb::ft_lock_guard lock(calls_mutex);
  gone.swap(call_cache());
}

void bind_jax_call_cache(nb::module_& m) {
  m.def("remember_call", &remember_call, nb::arg("op"), nb::arg("type"), nb::arg("direct").none(),
        nb::arg("run"), nb::arg("scatters"), nb::arg("attributes"));
  m.def("cached_call_entry", &cached_call_entry, nb::arg("otherwise"));
}

}  // namespace gatherum
