// Runs a call of XLA on a CUDA device: replays its device program on XLA's stream, with scratch memory from
// XLA. Python makes the program (jax/device_programs.py).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/device/device_calls.hpp"
#include "python/device/device_programs.hpp"
#include "xla/xla_calls.hpp"

namespace gatherum {

// The Python functions that make programs and sort, see `set_xla_device_calls`.
struct XlaDeviceFunctions {
  nb::object make, sorter;
};
XlaDeviceFunctions& xla_device_functions();

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
  bool prepare(const DeviceCall& call);
  // Runs a prepared call. Sets `invalid` if an index is invalid, and its error.
  bool run(const DeviceCall& call, bool& invalid, gatherum_error& error);
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
  void* allocate(size_t bytes);
  bool replay(const DeviceProgram& program, const DeviceCall& call, device::ReplayOutcome& outcome);
  // Memory that a call allocates is freed before a captured call is replayed.
  bool is_capturing(const DeviceProgram& program);
  // The results are at `keys` and `payload`, or in scratch memory if these are 0.
  bool sort_in_python(const device::Target& target, uint64_t keys, uint64_t payload, const device::Step& step,
                      const uint64_t* distances, uint64_t* results);
  // Sets the error to the first invalid index in row-major order.
  bool find_first(const DeviceCall& call, gatherum_error& error);

  const XLA_FFI_CallFrame& frame_;
  gatherum_buffer given_scratch_;
  std::vector<std::pair<void*, size_t>> scratch_;
  XLA_FFI_Error* error_ = nullptr;
  SharedPrograms programs_;
  void* stream_ = nullptr;
  int device_ = -1;
};

}  // namespace gatherum
