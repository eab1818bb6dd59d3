// Runs programs as XLA custom calls. The handler for XLA's typed foreign function interface uses the C
// interface. The call contains the bytes of its program, so an executable compiled by XLA also runs in
// another process.
#include <algorithm>

#include "platform/system.hpp"
#include "xla/xla_calls.hpp"

namespace gatherum::xla {
namespace {

gatherum_status execute(const XlaCall& call, const KnownProgram& known, const gatherum_operands& operands,
                        gatherum_error& error) {
  if (call.gradient == nullptr) return gatherum_run(known.program, &operands, nullptr, &error);
  gatherum_gradients of = {};
  of.data = operands.data;
  of.indices = operands.indices;
  of.updates = operands.updates;
  of.gradient = memory_of(*call.gradient);
  of.of_data = operands.out;
  of.of_updates = memory_of(*call.of_updates);
  return gatherum_differentiate(known.program, &of, nullptr, &error);
}

XLA_FFI_Error* run_call(const XLA_FFI_CallFrame& frame) {
  XlaCall call = {};
  SharedProgram known;
  if (const char* fault = read(frame, call)) return fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
  if (const char* fault = find_program(call.program, known))
    return fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
  const gatherum_operands operands = operands_of(call);
  if (const char* fault = find_unfit(call, *known, operands))
    return fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
  if (operands.out.start != operands.data.start)
    prefer_huge(operands.out.start, static_cast<size_t>(operands.out.bytes_after));
  gatherum_error error;
  switch (execute(call, *known, operands, error)) {
    case GATHERUM_OK:
      return nullptr;
    case GATHERUM_INVALID_INDEX:
      return fail(frame, XLA_FFI_OUT_OF_RANGE, message(call, *known, error).c_str());
    case GATHERUM_INVALID_PROGRAM:
    case GATHERUM_INVALID_CALL:
    case GATHERUM_TOO_SMALL:
      return fail(frame, XLA_FFI_INVALID_ARGUMENT, error.message);
    case GATHERUM_NO_MEMORY:
      return fail(frame, XLA_FFI_RESOURCE_EXHAUSTED, error.message);
    default:
      return fail(frame, XLA_FFI_INTERNAL, error.message);
  }
}

// Computes exp or log of each item of a buffer.
XLA_FFI_Error* map_items(const XLA_FFI_CallFrame& frame, const XLA_FFI_ByteSpan& function) {
  MapCall call = {};
  if (const char* fault = read(frame, function, call)) return fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
  const gatherum_status status =
      gatherum_map(call.function.c_str(), call.type, call.from->data, call.to->data, call.items, nullptr);
  if (status == GATHERUM_OK) return nullptr;
  const char* fault = status == GATHERUM_INVALID_CALL
                          ? "the result must be the operand or share no memory with it"
                          : kNoFunction;
  return fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
}

// Computes a cumulative function of the values of groups.
XLA_FFI_Error* cumulate(const XLA_FFI_CallFrame& frame, const XLA_FFI_ByteSpan& function) {
  CumulativeCall call = {};
  if (const char* fault = read(frame, function, call)) return fail(frame, XLA_FFI_INVALID_ARGUMENT, fault);
  switch (gatherum_cumulate(&call.of, call.to, call.items, nullptr)) {
    case GATHERUM_OK:
      return nullptr;
    case GATHERUM_NO_MEMORY:
      return fail(frame, XLA_FFI_RESOURCE_EXHAUSTED, "there is no working memory");
    default:
      return fail(frame, XLA_FFI_INVALID_ARGUMENT, kNotCumulative);
  }
}

}  // namespace
}  // namespace gatherum::xla

XLA_FFI_Error* gatherum_xla_call(XLA_FFI_CallFrame* frame) noexcept {
  if (gatherum::xla::answer_metadata_query(*frame)) return nullptr;
  if (frame->stage != kExecutionStage) return nullptr;
  const auto* function = gatherum::xla::attribute(frame->attrs, "function", kStringAttribute);
  try {
    if (function != nullptr) {
      const auto& name = *static_cast<const XLA_FFI_ByteSpan*>(function);
      return gatherum::xla::takes_groups(*frame) ? gatherum::xla::cumulate(*frame, name)
                                                 : gatherum::xla::map_items(*frame, name);
    }
    return gatherum::xla::run_call(*frame);
  } catch (const std::bad_alloc&) {
    return gatherum::xla::fail(*frame, XLA_FFI_RESOURCE_EXHAUSTED, "there is no working memory");
  }
}
