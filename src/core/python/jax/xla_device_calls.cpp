// Runs XLA custom calls on CUDA devices: replays device programs on XLA's stream, with scratch memory from
// XLA. Python makes the programs (jax/device_programs.py).
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/bindings/bindings.hpp"
#include "python/device/device_calls.hpp"
#include "python/device/device_programs.hpp"
#include "xla/xla_calls.hpp"

namespace gatherum {
namespace {

// The Python functions that make programs and sort, see `set_xla_device_calls`.
struct PythonFunctions {
  nb::object make, sorter;
};

PythonFunctions& functions() {
  static auto* kept = new PythonFunctions;  // never destroyed: a call may outlast statics
  return *kept;
}

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

// The programs of a call on operands with certain alignments. `first` finds the first invalid index again,
// for the message; its components are relative to `component`. A call without `main` has no valid index.
struct Programs {
  std::optional<DeviceProgram> main, first;
  int32_t component = 0;
  // With an order: the sizes in bytes of the indices, of the sorted keys and of their payload.
  int64_t indices = 0, keys = 0, payload = 0;
};
using SharedPrograms = std::shared_ptr<const Programs>;

// A call that is ready for a device.
struct DeviceCall {
  std::string_view description;  // as Python wrote it
  std::string_view words, fill;
  std::array<gatherum_buffer, device::kOperandSlots> operands;  // data, indices, updates, out
  bool scatters = false;
  // The sorted keys and their payload. A call without data computes them; a call with data uses them.
  gatherum_buffer keys = {}, payload = {};

  bool is_in_place() const { return scatters && operands[0].start == operands[3].start; }
  int64_t alignment(size_t i) const { return device_alignment(static_cast<const char*>(operands[i].start)); }
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
    if (!functions().make.is_valid()) return "gatherum.jax is not imported";
    const auto bytes = [](std::string_view text) { return nb::bytes(text.data(), text.size()); };
    const nb::tuple made = nb::cast<nb::tuple>(
        functions().make(nb::str(call.description.data(), call.description.size()), bytes(call.words),
                         bytes(call.fill), device, call.alignment(0), call.alignment(1), call.alignment(2),
                         call.alignment(3), call.is_in_place()));
    programs = std::make_shared<const Programs>(
        Programs{copy_of(made[0]), copy_of(made[1]), nb::cast<int32_t>(made[2]), nb::cast<int64_t>(made[3]),
                 nb::cast<int64_t>(made[4]), nb::cast<int64_t>(made[5])});
    return {};
  } catch (const nb::python_error& error) {
    return text_of(error);
  }
}

// One call of the runtime.
class DeviceRun {
 public:
  // `scratch` is a buffer for the programs' scratch memory. It may be too small or missing.
  explicit DeviceRun(const XLA_FFI_CallFrame& frame, const gatherum_buffer& scratch = {})
      : frame_(frame), given_scratch_(scratch) {}
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;
  ~DeviceRun() {
    for (const auto& [memory, bytes] : scratch_) {
      XLA_FFI_DeviceMemory_Free_Args args{sizeof args, nullptr, frame_.ctx, bytes, memory};
      destroy(frame_.api->free(&args));
    }
    destroy(error_);
  }

  // Finds the programs of a call. Returns false after an error, or if the call has no memory.
  bool prepare(const DeviceCall& call) {
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

  // Runs a prepared call. Sets `invalid` if an index is invalid, and its error.
  bool run(const DeviceCall& call, bool& invalid, gatherum_error& error) {
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

  // The error of the call, which the runtime then owns.
  XLA_FFI_Error* take_error() { return std::exchange(error_, nullptr); }

 private:
  bool fail(XLA_FFI_Error_Code code, const std::string& message) {
    if (error_ == nullptr) error_ = xla::fail(frame_, code, message.c_str());
    return false;
  }

  void destroy(XLA_FFI_Error* error) {
    if (error == nullptr) return;
    XLA_FFI_Error_Destroy_Args args{sizeof args, nullptr, error};
    frame_.api->destroy_error(&args);
  }

  // Scratch memory until the end of the call: work that the call has queued on the stream precedes later
  // uses. Returns null after an error.
  void* allocate(size_t bytes) {
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

  bool replay(const DeviceProgram& program, const DeviceCall& call, device::ReplayOutcome& outcome) {
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

  // Memory that a call allocates is freed before a captured call is replayed.
  bool is_capturing(const DeviceProgram& program) {
    int status = 0;
    const device::Current current(program.driver(), program.context());
    if (current.status() != 0 || program.driver().is_capturing(stream_, &status) != 0)
      return !fail(XLA_FFI_INTERNAL, "gatherum.cuda: cuStreamIsCapturing failed");
    return status != 0 && !fail(XLA_FFI_INTERNAL, kNoCapture);
  }

  // The results are at `keys` and `payload`, or in scratch memory if these are 0.
  bool sort_in_python(const device::Target& target, uint64_t keys, uint64_t payload, const device::Step& step,
                      const uint64_t* distances, uint64_t* results) {
    const GilHold hold;
    try {
      const nb::object allocate_scratch = nb::cpp_function([this](uint64_t bytes) {
        return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(allocate(static_cast<size_t>(bytes))));
      });
      const nb::object sort = functions().sorter(allocate_scratch, target.arena, device_,
                                                 reinterpret_cast<uintptr_t>(stream_), keys, payload);
      if (sort_pairs(sort, step, distances, results)) return true;
      throw nb::python_error();
    } catch (const nb::python_error& error) {
      return fail(XLA_FFI_INTERNAL, text_of(error));
    }
  }

  // Sets the error to the first invalid index in row-major order.
  bool find_first(const DeviceCall& call, gatherum_error& error) {
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

  static constexpr const char* kNoCapture =
      "gatherum: a call that waits, sorts or allocates memory cannot be captured";

  const XLA_FFI_CallFrame& frame_;
  gatherum_buffer given_scratch_;
  std::vector<std::pair<void*, size_t>> scratch_;
  XLA_FFI_Error* error_ = nullptr;
  SharedPrograms programs_;
  void* stream_ = nullptr;
  int device_ = -1;
};

// Prepares a call, and runs it in the stage of execution. Returns the error of the call, or null if there is
// none.
XLA_FFI_Error* prepare_and_run(const XLA_FFI_CallFrame& frame, const gatherum_buffer& scratch,
                               const xla::XlaCall& call, const xla::KnownProgram& known,
                               const DeviceCall& on_device) {
  DeviceRun run(frame, scratch);
  bool invalid = false;
  gatherum_error error = {};
  if (!run.prepare(on_device) || frame.stage != kExecutionStage || !run.run(on_device, invalid, error))
    return run.take_error();
  return invalid ? xla::fail(frame, XLA_FFI_OUT_OF_RANGE, xla::message(call, known, error).c_str()) : nullptr;
}

// Checks indices and sorts updates. The operand is the indices, the results are the sorted keys and their
// payload.
XLA_FFI_Error* compute_order(const XLA_FFI_CallFrame& frame, const XLA_FFI_ByteSpan& text) {
  xla::XlaCall call = {};
  xla::SharedProgram known;
  call.indices = xla::argument(frame.args, 0);
  const XLA_FFI_Buffer* const keys = xla::result(frame.rets, 0);
  const XLA_FFI_Buffer* const payload = xla::result(frame.rets, 1);
  const char* fault = xla::read_attributes(frame, call);
  if (fault == nullptr) fault = xla::find_program(call.program, known);
  if (fault == nullptr && (call.indices == nullptr || keys == nullptr || payload == nullptr ||
                           !xla::holds_indices(*call.indices, *known)))
    fault = "an order has one operand, indices of the program's type, and two results";
  if (fault != nullptr) return xla::fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
  DeviceCall on_device = {{text.ptr, text.len},
                          {reinterpret_cast<const char*>(call.program.start), call.program.count()},
                          {},
                          {gatherum_buffer{}, xla::memory_of(*call.indices), {}, {}},
                          false,
                          xla::memory_of(*keys),
                          xla::memory_of(*payload)};
  return prepare_and_run(frame, {}, call, *known, on_device);
}

// Runs a call. A second result is scratch memory. If there are five operands, the last two are an order of
// the updates.
XLA_FFI_Error* run_device_call(const XLA_FFI_CallFrame& frame) {
  xla::XlaCall call = {};
  xla::SharedProgram known;
  XLA_FFI_CallFrame form = frame;
  const XLA_FFI_Buffer* scratch = nullptr;
  if (frame.args.size < 4 && frame.rets.size == 2) {
    scratch = xla::result(frame.rets, 1);
    form.rets.size = 1;
  }
  const XLA_FFI_Buffer* const keys = xla::argument(frame.args, 3);
  const XLA_FFI_Buffer* const payload = xla::argument(frame.args, 4);
  if (payload != nullptr) form.args.size = 3;
  if (const char* fault = xla::read(form, call)) return xla::fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
  const auto* text =
      static_cast<const XLA_FFI_ByteSpan*>(xla::attribute(frame.attrs, "call", kStringAttribute));
  if (text == nullptr || call.gradient != nullptr)
    return xla::fail(frame, XLA_FFI_INVALID_ARGUMENT, "the call has no description for devices");
  if (const char* fault = xla::find_program(call.program, known))
    return xla::fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
  const gatherum_operands operands = xla::operands_of(call);
  const bool executes = frame.stage == kExecutionStage;
  const char* const fault = xla::find_unfit(call, *known, operands);
  if (fault != nullptr && executes) return xla::fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
  if (fault != nullptr) return nullptr;
  DeviceCall on_device = {{text->ptr, text->len},
                          {reinterpret_cast<const char*>(call.program.start), call.program.count()},
                          {static_cast<const char*>(call.fill), static_cast<size_t>(known->item)},
                          {operands.data, operands.indices, operands.updates, operands.out},
                          known->scatter};
  if (payload != nullptr && keys != nullptr) {
    on_device.keys = xla::memory_of(*keys);
    on_device.payload = xla::memory_of(*payload);
  }
  const gatherum_buffer memory = scratch == nullptr ? gatherum_buffer{} : xla::memory_of(*scratch);
  return prepare_and_run(frame, memory, call, *known, on_device);
}

// Computes exp or log of each item of a buffer.
XLA_FFI_Error* map_on_device(const XLA_FFI_CallFrame& frame, const XLA_FFI_ByteSpan& function) {
  xla::MapCall call = {};
  if (const char* fault = xla::read(frame, function, call))
    return xla::fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
  if (call.items == 0) return nullptr;
  const std::string text = call.function + " " + call.type + " " + std::to_string(call.items);
  DeviceCall on_device = {
      text, {}, {}, {xla::memory_of(*call.from), {}, {}, xla::memory_of(*call.to)}, false};
  DeviceRun run(frame);
  bool invalid = false;
  gatherum_error error = {};
  if (run.prepare(on_device) && frame.stage == kExecutionStage) run.run(on_device, invalid, error);
  return run.take_error();
}

template <uint32_t kTraits>
XLA_FFI_Error* device_call(XLA_FFI_CallFrame* frame) noexcept {
  if (xla::answer_metadata_query(*frame, kTraits)) return nullptr;
  if (frame->stage != kExecutionStage && frame->stage != kInitializationStage) return nullptr;
  const auto* function = xla::attribute(frame->attrs, "function", kStringAttribute);
  const auto* order = xla::attribute(frame->attrs, "order", kStringAttribute);
  try {
    if (order != nullptr) return compute_order(*frame, *static_cast<const XLA_FFI_ByteSpan*>(order));
    if (function != nullptr) return map_on_device(*frame, *static_cast<const XLA_FFI_ByteSpan*>(function));
    return run_device_call(*frame);
  } catch (const std::bad_alloc&) {
    return xla::fail(*frame, XLA_FFI_RESOURCE_EXHAUSTED, "there is no working memory");
  } catch (const std::exception& error) {
    return xla::fail(*frame, XLA_FFI_INTERNAL, error.what());
  }
}

}  // namespace

void bind_xla_device_calls(nb::module_& m) {
  m.def(
      "xla_device_handler",
      [](bool recordable) {
        auto* const handler = recordable ? &device_call<kRecordable> : &device_call<0>;
        return nb::capsule(reinterpret_cast<void*>(handler), "xla._CUSTOM_CALL_TARGET");
      },
      nb::arg("recordable"));
  m.def(
      "set_xla_device_calls",
      [](nb::handle make, nb::handle sorter) {
        functions().make = nb::borrow(make);
        functions().sorter = nb::borrow(sorter);
      },
      nb::arg("make"), nb::arg("sorter"));
}

}  // namespace gatherum
