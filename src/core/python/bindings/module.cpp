// Defines the Python module `_core` and calls the bindings of the other files.
#define GATHERUM_OWNS_NUMPY_API
#include "platform/system.hpp"
#include "python/bindings/bindings.hpp"
#include "python/call_plans.hpp"
#include "python/callbacks.hpp"
#include "python/dispatch.hpp"
#include "python/numpy/array_calls.hpp"
#include "python/numpy/arrays.hpp"
#include "python/plan_table.hpp"
#include "python/positional.hpp"

namespace gatherum {
namespace {

void* import_numpy() {
  import_array();
  return &PyArray_API;
}

// The contents of the module, from its first execution on. An import after `del sys.modules[...]` executes it
// again, but nanobind creates its types only once.
nb::object& contents() {
  static auto* dict = new nb::object;
  return *dict;
}

// Clears the table of plans. Returns the programs of the plans that the core made.
nb::list clear_plans() {
  nb::list programs;
  for (const CachedPlan& cached : take_plans())
    if (is_call_plan(cached.plan)) programs.append(nb::inst_ptr<CallPlan>(cached.plan)->program());
  return programs;
}

// Sets the callbacks that a dictionary names.
void set_callbacks(const nb::dict& functions) {
  size_t known = 0;
  each_callback(callbacks(), [&](const char* name, nb::object& function) {
    if (!functions.contains(name)) return;
    function = functions[name];
    ++known;
  });
  if (known != functions.size()) throw nb::type_error("gatherum: an unknown callback");
}

}  // namespace
}  // namespace gatherum

NB_MODULE(_core, m) {
  using namespace gatherum;
  using nb::handle;
  if (contents().is_valid()) {
    if (PyDict_Merge(PyModule_GetDict(m.ptr()), contents().ptr(), 0) != 0) nb::raise_python_error();
    return;
  }
  if (import_numpy() == nullptr) nb::raise_python_error();
  find_builtins();
  // A plan may outlive the interpreter without a leaked reference: in the frame of a daemon thread, or in a
  // module that another package's static objects keep alive. Torch's static objects keep every function that
  // was registered with torch, and Python's `typing` keeps all overloads. A warning would then name this
  // package as the cause.
  nb::set_leak_warnings(false);
  m.def("set_leak_warnings", &nb::set_leak_warnings, nb::arg("value"));  // for tests

  bind_programs(m);
  bind_call_plans(m);
  bind_lowering(m);

  m.def("callback_names", [] {
    nb::list names;
    each_callback(callbacks(), [&](const char* name, const nb::object&) { names.append(nb::str(name)); });
    return names;
  });
  m.def("set_callbacks", &set_callbacks, nb::arg("functions"));
  def_positional<kArgumentCount, dispatch_call>(m, "dispatch_call",
                                                "dispatch_call(op, data, indices, updates, axis, reduction, "
                                                "include_self, mode, negative, fill_value, out, /)\n"
                                                "--\n\n");
  def_positional<kArgumentCount, run_normalized>(
      m, "run_normalized",
      "run_normalized(op, data, indices, updates, axis, reduction, "
      "include_self, mode, negative, fill_value, out, /)\n"
      "--\n\n");
  def_positional<6, [](const handle* a) { return run_plan(a[0], {a[1], a[2], a[3], a[4]}, a[5]); }>(
      m, "run_plan", "run_plan(plan, data, indices, updates, out, fill_value, /)\n--\n\n");
  bind_accelerate(m);
  bind_indices(m);
  bind_folds(m);
  bind_neutral(m);
  bind_lists(m);
  bind_files(m);
  bind_row_caches(m);
  bind_memory_tables(m);
  bind_elementary(m);
  bind_quantized(m);
  bind_memory_calls(m);
  bind_group_calls(m);
  m.def("xla_handler",
        [] { return nb::capsule(reinterpret_cast<void*>(gatherum_xla_call), "xla._CUSTOM_CALL_TARGET"); });
  bind_tensors(m);
  bind_tensor_gradients(m);
  bind_tensor_routes(m);
  bind_torch_state(m);
  bind_device_programs(m);
  bind_device_arrays(m);
  bind_device_tensors(m);
  bind_scatter_into_zeros(m);
  bind_override_kernels(m);
  bind_coalesce(m);
  bind_jax_call_cache(m);
  bind_xla_device_calls(m);
  m.def("clear_plans", &clear_plans);
  m.def("release_plans", [] {
    release_plans();
    contents().reset();
  });

  m.def("peak_memory", [] { return peak_memory(); });

  m.def("available_levels", [] { return names_of(gatherum_available_level); });
  m.def("choose_level", [](const char* name) { return gatherum_set_level(name) != 0; }, nb::arg("name"));
  m.def("level", &gatherum_level);
  m.def("usable_processors", &usable_processors);
  m.def("set_threads", &gatherum_set_num_threads, nb::arg("n"));
  m.def("get_threads", &gatherum_get_num_threads);
  m.def("set_cache_limit", &gatherum_set_cache_limit, nb::arg("nbytes"));
  m.def("get_cache_limit", &gatherum_get_cache_limit);
  m.def("cached_bytes", &gatherum_cached_bytes);
  m.def("clear_cache", &gatherum_clear_cache);
  contents() = nb::steal(PyDict_Copy(PyModule_GetDict(m.ptr())));
}
