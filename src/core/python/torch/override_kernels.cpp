// Kernels that override torch's kernels inside `reproducible`. torch's dispatcher calls them as Python
// callables. A kernel passes the first call of each form to Python, which describes it and lets the kernel
// remember the description. It runs later calls of this form without Python. (A kernel of torch's stable C
// interface would save 0.5 us more per call, but this interface does not support scalars, and therefore not
// `index_add`, and it loses the types of errors.)
#include <atomic>
#include <unordered_map>

#include "python/bindings/bindings.hpp"
#include "python/guarded.hpp"
#include "python/torch/override_key.hpp"

namespace gatherum {
namespace {

// The calls that a kernel remembers by their keys. It removes all of them when there are too many.
class RememberedCalls {
 public:
  struct Entry {
    std::vector<int64_t> words;
    Remembered call;  // null: torch's kernel runs the call
  };

  // Sets `call`. Returns false for an unknown call.
  bool find(const OverrideKey& key, Remembered& call) const {
    const nb::ft_lock_guard lock(mutex_);
    const auto at = entries_.find(key.hash());
    if (at == entries_.end() || static_cast<size_t>(key.size()) != at->second.words.size() ||
        !std::equal(key.words(), key.words() + key.size(), at->second.words.begin()))
      return false;
    call = at->second.call;
    return true;
  }

  void add(const OverrideKey& key, Remembered call) {
    std::unordered_map<uint64_t, Entry> forgotten;  // freed after the lock
    Entry entry{{key.words(), key.words() + key.size()}, std::move(call)};
    const nb::ft_lock_guard lock(mutex_);
    if (entries_.size() >= kMostEntries) forgotten.swap(entries_);
    std::swap(entries_[key.hash()], entry);
  }

 private:
  static constexpr size_t kMostEntries = 1024;

  mutable nb::ft_mutex mutex_;
  std::unordered_map<uint64_t, Entry> entries_;
};

// A call that writes nothing to its first tensor, and returns it.
class RememberedUnchanged final : public RememberedCall {
 public:
  nb::object run(const OverrideKey& call, nb::handle) const override {
    return nb::borrow(call.tensor(0).object);
  }
};

class OverrideKernel {
 public:
  void use(nb::object python, nb::object torch) {
    python_ = std::move(python);
    torch_ = std::move(torch);
  }

  nb::object call(PyObject* positional, PyObject* named) {
    OverrideKey key;
    Remembered remembered;
    if (torch().api != nullptr && key.read(positional, named) && calls_.find(key, remembered)) {
      if (remembered == nullptr) {
        passed_.fetch_add(1, std::memory_order_relaxed);
        return checked(PyObject_Call(torch_.ptr(), positional, named));
      }
      const nb::object result = run(*remembered, key);
      if (result.is_valid()) {
        runs_.fetch_add(1, std::memory_order_relaxed);
        return result;
      }
    }
    return checked(PyObject_Call(python_.ptr(), positional, named));
  }

  void remember_torch(const nb::tuple& positional, const nb::dict& named) {
    OverrideKey key;
    if (key.read(positional.ptr(), named.ptr())) calls_.add(key, nullptr);
  }
  void remember_unchanged(const nb::tuple& positional, const nb::dict& named) {
    remember(positional, named, [](const OverrideKey&) { return std::make_shared<RememberedUnchanged>(); });
  }
  void remember_scatter(const nb::tuple& positional, const nb::dict& named, const nb::tuple& fields,
                        nb::handle target) {
    remember(positional, named, [&](const OverrideKey& key) {
      return gatherum::remember_scatter(key, CallFields(fields), target);
    });
  }
  void remember_bags(const nb::tuple& positional, const nb::dict& named, const nb::tuple& fields) {
    remember(positional, named,
             [&](const OverrideKey& key) { return gatherum::remember_bags(key, CallFields(fields)); });
  }

  int64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  int64_t passed() const { return passed_.load(std::memory_order_relaxed); }

 private:
  template <class Read>
  void remember(const nb::tuple& positional, const nb::dict& named, const Read& read) {
    OverrideKey key;
    if (!key.read(positional.ptr(), named.ptr())) return;
    if (Remembered call = read(key)) calls_.add(key, std::move(call));
  }

  // If the result cannot be allocated, Python runs the call, so that torch raises its error.
  nb::object run(const RememberedCall& call, const OverrideKey& key) const {
    try {
      return call.run(key, torch_);
    } catch (const std::bad_alloc&) {
      return {};
    }
  }

  nb::object python_, torch_;
  RememberedCalls calls_;
  std::atomic<int64_t> runs_ = 0, passed_ = 0;
};

PyObject* call_kernel(PyObject* self, PyObject* positional, PyObject* named) {
  return guarded([&] { return nb::inst_ptr<OverrideKernel>(self)->call(positional, named); });
}

PyType_Slot kernel_slots[] = {
    guarded_slots[0], {Py_tp_call, reinterpret_cast<void*>(call_kernel)}, {0, nullptr}};

}  // namespace

void bind_override_kernels(nb::module_& m) {
  nb::class_<OverrideKernel>(m, "OverrideKernel", nb::type_slots(kernel_slots))
      .def(nb::init<>())
      .def("use", &OverrideKernel::use, nb::arg("python"), nb::arg("torch"))
      .def("remember_torch", &OverrideKernel::remember_torch, nb::arg("args"), nb::arg("options"))
      .def("remember_unchanged", &OverrideKernel::remember_unchanged, nb::arg("args"), nb::arg("options"))
      .def("remember_scatter", &OverrideKernel::remember_scatter, nb::arg("args"), nb::arg("options"),
           nb::arg("fields"), nb::arg("target").none())
      .def("remember_bags", &OverrideKernel::remember_bags, nb::arg("args"), nb::arg("options"),
           nb::arg("fields"))
      .def_prop_ro("runs", &OverrideKernel::runs)
      .def_prop_ro("passed", &OverrideKernel::passed);
}

}  // namespace gatherum
