#include "python/jax/xla_device_run.hpp"

#include <cstring>
#include <mutex>
#include <unordered_map>

namespace gatherum {
namespace {

constexpr const char* kNoCapture =
    "gatherum: a call that waits, sorts or allocates memory cannot be captured";

// Holds the interpreter's lock, in any thread of the runtime.
class GilHold {
 public:
  GilHold() : state_(PyGILState_Ensure()) {}
  ~GilHold() { PyGILState_Release(state_); }
  GilHold(const GilHold&) = delete;
  GilHold& operator=(const GilHold&) = delete;

 private:
  PyGILState_STATE state_;
};

// Everything that the programs of a call depend on.
std::string key_of(const DeviceCall& call, int device) {
  std::string key(call.description);
  key.append(call.words).append(call.fill);
  for (size_t i = 0; i < call.operands.size(); ++i) key.push_back(static_cast<char>(call.alignment(i)));
  key.push_back(call.is_in_place() ? 1 : 0);
  key.append(reinterpret_cast<const char*>(&device), sizeof device);
  return key;
}

class ProgramCache {
 public:
  SharedPrograms find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto at = programs_.find(key);
    return at == programs_.end() ? nullptr : at->second;
  }

  void keep(std::string key, SharedPrograms programs) {
    std::unordered_map<std::string, SharedPrograms> dropped;  // destroyed outside the lock
    const std::lock_guard lock(mutex_);
    if (programs_.size() == kMostPrograms) dropped.swap(programs_);
    programs_.insert_or_assign(std::move(key), std::move(programs));
  }

 private:
  static constexpr size_t kMostPrograms = 4096;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, SharedPrograms> programs_;
};

ProgramCache& program_cache() {
  static auto* programs = new ProgramCache;  // never destroyed: a call may outlast statics
  return *programs;
}

// Sets the device that owns the memory of a call. Returns false if the driver cannot find the device. A call
// without memory is on no device.
bool find_device(const device::Driver& driver, const DeviceCall& call, int& device) {
  device = -1;
  for (const gatherum_buffer& each : call.operands) {
    if (each.start == nullptr || each.bytes_after == 0) continue;
    return driver.attribute(&device, device::kDeviceOrdinal, reinterpret_cast<uintptr_t>(each.start)) == 0;
  }
  return true;
}

// The text of a Python error.
std::string text_of(const nb::python_error& error) {
  const nb::object text = nb::steal(PyObject_Str(error.value().ptr()));
  const char* const characters = text.is_valid() ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
  if (characters != nullptr) return characters;
  PyErr_Clear();
  return "gatherum: the call has failed";
}

std::optional<DeviceProgram> copy_of(const nb::handle program) {
  if (program.is_none()) return {};
  return *nb::inst_ptr<DeviceProgram>(program);
}

// Makes programs in Python. Returns an error message, or "".
std::string make_programs(const DeviceCall& call, int device, SharedPrograms& programs) {
  const GilHold hold;
  try {
    if (!xla_device_functions().make.is_valid()) return "gatherum.jax is not imported";
    const auto bytes = [](std::string_view text) { return nb::bytes(text.data(), text.size()); };
    const nb::tuple made = nb::cast<nb::tuple>(xla_device_functions().make(
        nb::str(call.description.data(), call.description.size()), bytes(call.words), bytes(call.fill),
        device, call.alignment(0), call.alignment(1), call.alignment(2), call.alignment(3),
        call.is_in_place()));
    programs = std::make_shared<const Programs>(
        Programs{copy_of(made[0]), copy_of(made[1]), nb::cast<int32_t>(made[2]), nb::cast<int64_t>(made[3]),
                 nb::cast<int64_t>(made[4]), nb::cast<int64_t>(made[5])});
    return {};
  } catch (const nb::python_error& error) {
    return text_of(error);
  }
}

}  // namespace

XlaDeviceFunctions& xla_device_functions() {
  static auto* kept = new XlaDeviceFunctions;  // never destroyed: a call may outlast statics
  return *kept;
}

bool DeviceRun::prepare(const DeviceCall& call) {
  const device::Driver* const driver = device::open_driver();
  if (driver == nullptr) return fail(XLA_FFI_INTERNAL, "gatherum: this machine has no CUDA driver");
  if (!find_device(*driver, call, device_))
    return fail(XLA_FFI_INTERNAL, "gatherum: the operands are not on a CUDA device");
  if (device_ < 0) return false;
  std::string key = key_of(call, device_);
  programs_ = program_cache().find(key);
  if (!programs_) {
    const std::string fault = make_programs(call, device_, programs_);
    if (!programs_) return fail(XLA_FFI_INTERNAL, fault);
    program_cache().keep(std::move(key), programs_);
  }
  const bool fits = programs_->keys <= call.keys.bytes_after &&
                    programs_->payload <= call.payload.bytes_after &&
                    programs_->indices <= call.operands[1].bytes_after;
  return fits || fail(XLA_FFI_INVALID_ARGUMENT, "the order does not belong to the call");
}

bool DeviceRun::run(const DeviceCall& call, bool& invalid, gatherum_error& error) {
  XLA_FFI_Stream_Get_Args stream{sizeof stream, nullptr, frame_.ctx, nullptr};
  if ((error_ = frame_.api->get_stream(&stream)) != nullptr) return false;
  stream_ = stream_handle(stream.stream);
  invalid = !programs_->main;
  if (programs_->main) {
    device::ReplayOutcome outcome;
    if (!replay(*programs_->main, call, outcome)) return false;
    invalid = outcome.invalid();
  }
  return !invalid || find_first(call, error);
}

void* DeviceRun::allocate(size_t bytes) {
  // XLA raises an error for larger alignments. Kernels load words of up to 16 bytes.
  static constexpr size_t kAlignment = 16;
  XLA_FFI_DeviceMemory_Allocate_Args args{sizeof args, nullptr, frame_.ctx, bytes, kAlignment, nullptr};
  scratch_.reserve(scratch_.size() + 1);
  if (XLA_FFI_Error* const failed = frame_.api->allocate(&args)) {
    destroy(std::exchange(error_, failed));
    return nullptr;
  }
  if (args.data == nullptr) fail(XLA_FFI_RESOURCE_EXHAUSTED, "gatherum: there is no scratch memory");
  if (args.data != nullptr) scratch_.emplace_back(args.data, bytes);
  return args.data;
}

bool DeviceRun::replay(const DeviceProgram& program, const DeviceCall& call, device::ReplayOutcome& outcome) {
  device::Target target = {{}, 0, program.context(), stream_};
  for (size_t i = 0; i < call.operands.size(); ++i)
    target.operands[i] = reinterpret_cast<uintptr_t>(call.operands[i].start);
  const uint64_t keys = reinterpret_cast<uintptr_t>(call.keys.start),
                 payload = reinterpret_cast<uintptr_t>(call.payload.start);
  if (keys != 0) {
    // In a call without data, the order is the result. In a call with data, it replaces the indices.
    target.operands[call.operands[0].start == nullptr ? 3 : 1] = keys;
    target.operands[device::kOperandSlots] = payload;
  }
  const int64_t bytes = program.program().arena;
  const bool fits = given_scratch_.bytes_after >= bytes;
  if (!(fits && !program.program().sorts) && is_capturing(program)) return false;
  if (bytes != 0)
    target.arena =
        reinterpret_cast<uintptr_t>(fits ? given_scratch_.start : allocate(static_cast<size_t>(bytes)));
  if (bytes != 0 && target.arena == 0) return false;
  const device::Sort sort = [&](const device::Step& step, const uint64_t* distances, uint64_t* results) {
    return sort_in_python(target, keys, payload, step, distances, results);
  };
  outcome = device::replay(program.driver(), program.program(), target, true, sort);
  switch (outcome.kind) {
    case device::ReplayOutcome::done:
      return true;
    case device::ReplayOutcome::capturing:
      return fail(XLA_FFI_INTERNAL, kNoCapture);
    case device::ReplayOutcome::not_sorted:
      return false;  // with an error
    case device::ReplayOutcome::failed:
      break;
  }
  return fail(XLA_FFI_INTERNAL, std::string("gatherum.cuda: ") + outcome.function + " failed with status " +
                                    std::to_string(outcome.status));
}

bool DeviceRun::is_capturing(const DeviceProgram& program) {
  int status = 0;
  const device::Current current(program.driver(), program.context());
  if (current.status() != 0 || program.driver().is_capturing(stream_, &status) != 0)
    return !fail(XLA_FFI_INTERNAL, "gatherum.cuda: cuStreamIsCapturing failed");
  return status != 0 && !fail(XLA_FFI_INTERNAL, kNoCapture);
}

bool DeviceRun::sort_in_python(const device::Target& target, uint64_t keys, uint64_t payload,
                               const device::Step& step, const uint64_t* distances, uint64_t* results) {
  const GilHold hold;
  try {
    const nb::object allocate_scratch = nb::cpp_function([this](uint64_t bytes) {
      return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(allocate(static_cast<size_t>(bytes))));
    });
    const nb::object sort = xla_device_functions().sorter(
        allocate_scratch, target.arena, device_, reinterpret_cast<uintptr_t>(stream_), keys, payload);
    if (sort_pairs(sort, step, distances, results)) return true;
    throw nb::python_error();
  } catch (const nb::python_error& error) {
    return fail(XLA_FFI_INTERNAL, text_of(error));
  }
}

bool DeviceRun::find_first(const DeviceCall& call, gatherum_error& error) {
  device::ReplayOutcome outcome;
  if (!programs_->first) return fail(XLA_FFI_INTERNAL, "gatherum: an index is invalid");
  if (!replay(*programs_->first, call, outcome)) return false;
  // The words are those of `Record` in kernels/nest.cuh. If no invalid index is found, the index has
  // changed meanwhile.
  uint64_t record[5] = {};
  std::memcpy(record, outcome.content, sizeof record);
  const auto [count, inverse, is_found, component, value] = record;
  error.position = is_found != 0 ? static_cast<int64_t>(~inverse) : -1;
  error.component = programs_->component + static_cast<int32_t>(component);
  error.value = static_cast<int64_t>(value);
  return true;
}

}  // namespace gatherum
