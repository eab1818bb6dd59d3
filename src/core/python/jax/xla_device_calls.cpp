// XLA custom calls on CUDA devices: reads the calls of the runtime, and runs them (xla_device_run.hpp).
#include <new>
#include <string>

#include "python/bindings/bindings.hpp"
#include "python/jax/xla_device_run.hpp"
#include "xla/xla_calls.hpp"

namespace gatherum {
namespace {

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
        xla_device_functions().make = nb::borrow(make);
        xla_device_functions().sorter = nb::borrow(sorter);
      },
      nb::arg("make"), nb::arg("sorter"));
}

}  // namespace gatherum
