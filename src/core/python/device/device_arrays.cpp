#include "python/device/device_arrays.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "python/bindings/bindings.hpp"
#include "python/device/device_calls.hpp"
#include "python/guarded.hpp"
#include "python/memory_calls.hpp"
#include "python/runs.hpp"

namespace gatherum {
namespace {

// The functions and types that Python has passed.
struct DeviceFunctions {
  nb::ft_mutex mutex;
  std::vector<nb::object> types;  // read and changed with the lock
  nb::object make_program;        // see device_program
  nb::object sort;                // (arena, stream, device) -> the sort of DeviceProgram::replay
  nb::object new_array;           // (memory, shape, dtype, stream) -> the result
};

DeviceFunctions& device_functions() {
  static auto* functions = new DeviceFunctions;
  return *functions;
}

// Memory from the driver's pool, freed in stream order. The address is 0 if the allocation has failed. The
// CUDA context must be current when a DeviceMemory is constructed.
class DeviceMemory {
 public:
  DeviceMemory(const DeviceProgram& program, int64_t bytes, void* stream)
      : driver_(program.driver()), context_(program.context()), stream_(stream) {
    const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
    if (driver_.allocate(&address_, size, stream) != 0) address_ = 0;
  }
  ~DeviceMemory() {
    if (address_ == 0) return;
    const device::Current current(driver_, context_);
    driver_.free(address_, stream_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  uint64_t address() const { return address_; }

 private:
  const device::Driver& driver_;
  void* context_;
  void* stream_;
  uint64_t address_ = 0;
};

// Operands that streams may still use: each is kept until its stream has passed an event. Events are reused.
class KeptOperands {
 public:
  void keep(const DeviceProgram& program, void* stream, std::vector<nb::object> objects) {
    const device::Driver& driver = program.driver();
    std::vector<std::vector<nb::object>> done;  // released outside the lock, because that may run Python code
    const nb::ft_lock_guard lock(mutex_);
    Queue& queue = queues_[program.context()];
    void* event = nullptr;
    if (!queue.events.empty()) {
      event = queue.events.back();
      queue.events.pop_back();
    } else if (driver.create_event(&event, device::kDisableTiming) != 0) {
      driver.wait(stream);
      return;
    }
    if (driver.record(event, stream) != 0) driver.wait(stream);
    queue.kept.push_back({event, std::move(objects)});
    while (!queue.kept.empty() && driver.query(queue.kept.front().event) != device::kNotReady) {
      queue.events.push_back(queue.kept.front().event);
      done.push_back(std::move(queue.kept.front().objects));
      queue.kept.pop_front();
    }
  }

 private:
  struct Kept {
    void* event;
    std::vector<nb::object> objects;
  };
  struct Queue {
    std::deque<Kept> kept;
    std::vector<void*> events;
  };

  nb::ft_mutex mutex_;
  std::map<void*, Queue> queues_;  // by context
};

KeptOperands& kept_operands() {
  static auto* kept = new KeptOperands;  // never destroyed: the interpreter may have ended by then
  return *kept;
}

// Returns the number of the NumPy dtype with a type string such as "<f4" in native byte order, or kNoDType if
// there is none.
int dtype_of_typestr(PyObject* typestr) {
  Py_ssize_t n = 0;
  const char* const s = PyUnicode_Check(typestr) ? PyUnicode_AsUTF8AndSize(typestr, &n) : nullptr;
  if (s == nullptr) PyErr_Clear();
  if (s == nullptr || n < 3 || n > 4 || (s[0] != '<' && s[0] != '|')) return kNoDType;
  const int bytes = n == 3 ? s[2] - '0' : (s[2] - '0') * 10 + (s[3] - '0');
  for (const DTypeRow& row : kDTypes)
    if (is_of_numpy(row.dtype) && row.bytes == bytes && letter_of(row.kind) == s[1])
      return static_cast<int>(row.dtype);
  return kNoDType;
}

// An operand with the values of its interface.
struct ArrayView {
  npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
  void* stream = nullptr;  // null: the array names none

  // Returns false for an interface that Python has to read.
  bool read(nb::handle array, View& view) {
    static PyObject* const name = kept_text("__cuda_array_interface__");
    const nb::object interface = checked(PyObject_GetAttr(array.ptr(), name));
    if (!PyDict_CheckExact(interface.ptr())) return false;
    const auto entry = [&](const char* key) { return PyDict_GetItemString(interface.ptr(), key); };
    const auto is_set = [&](const char* key) { return entry(key) != nullptr && entry(key) != Py_None; };
    PyObject *const extents = entry("shape"), *const typestr = entry("typestr"), *const data = entry("data");
    if (is_set("mask") || extents == nullptr || typestr == nullptr || data == nullptr) return false;
    view.dtype = dtype_of_typestr(typestr);
    if (view.dtype == kNoDType || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) != 2) return false;
    view.item = bytes_of(static_cast<DType>(view.dtype));
    view.rank = read_sizes(extents, shape);
    if (view.rank < 0) return false;
    if (is_set("strides")) {
      if (read_sizes(entry("strides"), strides) != view.rank) return false;
    } else {
      fill_strides(view);
    }
    const unsigned long long address = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(data, 0));
    const long long stream_number = is_set("stream") ? PyLong_AsLongLong(entry("stream")) : 0;
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    view.address = reinterpret_cast<char*>(address);
    view.shape = shape;
    view.strides = strides;
    view.writable = true;
    stream = reinterpret_cast<void*>(stream_number);
    return true;
  }

 private:
  // Returns the number of integers in a tuple, or -1 for any other object.
  static int read_sizes(PyObject* tuple, npy_intp* sizes) {
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) > NPY_MAXDIMS) return -1;
    const auto n = static_cast<int>(PyTuple_GET_SIZE(tuple));
    for (int i = 0; i < n; ++i) {
      if (!PyLong_CheckExact(PyTuple_GET_ITEM(tuple, i))) return -1;
      sizes[i] = static_cast<npy_intp>(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
    }
    return n;
  }

  void fill_strides(const View& view) {
    npy_intp stride = static_cast<npy_intp>(view.item);
    for (int i = view.rank - 1; i >= 0; --i) {
      strides[i] = stride;
      stride *= std::max<npy_intp>(shape[i], 1);
    }
  }
};

// The device and the stream of all operands.
struct Placement {
  int device = -1;
  void* stream = nullptr;

  // Returns false if an operand is on another device, or names another stream, for which the call would have
  // to wait.
  bool add(const device::Driver& driver, const ArrayView& array, const View& view) {
    if (view.address != nullptr) {
      int owner = 0;
      const auto address = reinterpret_cast<uintptr_t>(view.address);
      if (driver.attribute(&owner, device::kDeviceOrdinal, address) != 0 || (device >= 0 && owner != device))
        return false;
      device = owner;
    }
    if (array.stream == nullptr) return true;
    const bool same = stream == nullptr || stream == array.stream;
    stream = array.stream;
    return same;
  }
};

bool has_device_type(nb::handle array) {
  const nb::ft_lock_guard lock(device_functions().mutex);
  const std::vector<nb::object>& types = device_functions().types;
  return std::any_of(types.begin(), types.end(),
                     [&](const nb::object& type) { return array.type().is(type); });
}

nb::handle numpy_dtype(int number) {
  for (const Builtin& each : builtins)
    if (each.numpy != nullptr && each.dtype == number) return reinterpret_cast<PyObject*>(each.numpy);
  return {};
}

bool is_capturing(const device::Driver& driver, void* stream) {
  int status = 0;
  return driver.is_capturing(stream, &status) != 0 || status != 0;
}

// Runs a planned call on one stream.
nb::object run_on_stream(const nb::handle* arguments, const Call& call, const CachedPlan& cached,
                         const Placement& placement, const DeviceProgram& replayed) {
  const device::Program& program = replayed.program();
  void* const stream = stream_handle(placement.stream);
  const device::Current current(replayed.driver(), replayed.context());
  const nb::handle dtype = numpy_dtype(call.operands[0].dtype);
  if (current.status() != 0 || !dtype.is_valid() || is_capturing(replayed.driver(), stream)) return {};
  const Shape& shape = cached.program->fields().result;
  const nb::object memory =
      make_bound<DeviceMemory>(replayed, limited_product(call.operands[0].item, shape.items()), stream);
  const nb::object scratch =
      program.arena == 0 ? nb::none() : make_bound<DeviceMemory>(replayed, program.arena, stream);
  const uint64_t out = nb::inst_ptr<DeviceMemory>(memory)->address();
  const uint64_t arena = program.arena == 0 ? 0 : nb::inst_ptr<DeviceMemory>(scratch)->address();
  if (out == 0 || (program.arena != 0 && arena == 0)) return {};
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  nb::object sort;
  if (program.sorts) sort = device_functions().sort(scratch, handle, placement.device);
  device::Addresses operands = {};
  for (size_t i = 0; i < kOperandCount; ++i)
    operands[i] = reinterpret_cast<uintptr_t>(call.operands[i].address);
  operands[kOperandCount - 1] = out;
  const device::ReplayOutcome outcome = replayed.replay(operands, arena, stream, false, sort);
  std::vector<nb::object> used;
  for (int i : {kData, kIndices, kUpdates}) used.push_back(nb::borrow(arguments[i]));
  kept_operands().keep(replayed, stream, std::move(used));
  if (outcome.kind == device::ReplayOutcome::not_sorted) nb::raise_python_error();
  if (outcome.kind != device::ReplayOutcome::done || outcome.invalid()) return {};
  return device_functions().new_array(memory, tuple_of(shape.extent, shape.rank), dtype, handle);
}

}  // namespace

nb::object call_on_device_arrays(const nb::handle* arguments) {
  const size_t n = arguments[kUpdates].is_none() ? 2 : 3;
  if (!device_functions().new_array.is_valid() || !arguments[kOut].is_none() ||
      !fills_with_zeros(arguments[kFill]) ||
      !std::all_of(arguments + kData, arguments + kData + n, has_device_type))
    return {};
  Call call;
  if (!read_attributes(arguments, call.attributes)) return {};
  const device::Driver& driver = *device::open_driver();  // otherwise there would be no types
  ArrayView arrays[3];
  Placement placement;
  for (size_t i = 0; i < n; ++i)
    if (!arrays[i].read(arguments[kData + i], call.operands[i]) ||
        !placement.add(driver, arrays[i], call.operands[i]))
      return {};
  bool made = false;
  const CachedPlan cached = plan_of(call, made);
  placement.device = std::max(placement.device, 0);
  const nb::object program =
      device_program(cached, call.operands, placement.device, nullptr, device_functions().make_program, made);
  if (!program.is_valid()) return {};
  return run_on_stream(arguments, call, cached, placement, *nb::inst_ptr<DeviceProgram>(program));
}

void bind_device_arrays(nb::module_& m) {
  nb::class_<DeviceMemory>(m, "DeviceMemory", nb::type_slots(guarded_slots))
      .def_prop_ro("address", &DeviceMemory::address);
  m.def(
      "set_device_arrays",
      [](nb::handle make_program, nb::handle sort, nb::handle new_array) {
        DeviceFunctions& functions = device_functions();
        functions.make_program = nb::borrow(make_program);
        functions.sort = nb::borrow(sort);
        functions.new_array = nb::borrow(new_array);
      },
      nb::arg("make_program"), nb::arg("sort"), nb::arg("new_array"));
  m.def(
      "add_device_type",
      [](nb::handle type) {
        const nb::ft_lock_guard lock(device_functions().mutex);
        device_functions().types.push_back(nb::borrow(type));
      },
      nb::arg("type"));
}

}  // namespace gatherum
