#include "python/device/device_calls.hpp"

#include "python/call_plans.hpp"

namespace gatherum {

int64_t device_alignment(uint64_t address) {
  static constexpr uint64_t kWidest = 16;
  const uint64_t bits = address | kWidest;
  return static_cast<int64_t>(bits & (~bits + 1));
}

nb::object device_program(const CachedPlan& cached, const Views& operands, int device, const Order* order,
                          const nb::object& make_program, bool& made) {
  int64_t alignments[kOperandCount];
  uint32_t packed = order == nullptr ? 0 : 1;  // and five bits for each
  for (size_t i = 0; i < kOperandCount; ++i) {
    const bool is_keys = order != nullptr && i == kIndices - kData;
    alignments[i] = is_keys ? device_alignment(order->keys) : device_alignment(operands[i].address);
    packed = packed << 5 | static_cast<uint32_t>(alignments[i]);
  }
  DevicePrograms& programs = cached.program->device_programs();
  nb::object program = programs.find(device, packed);
  if (program.is_valid()) return program;
  program = make_program(plan_object(cached.plan), device, order != nullptr, alignments[0], alignments[1],
                         alignments[2], alignments[3]);
  if (program.is_none()) return {};
  programs.keep(device, packed, program);
  made = true;
  return program;
}

}  // namespace gatherum
