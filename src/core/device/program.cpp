#include "device/program.hpp"

#include <algorithm>
#include <cstring>

namespace gatherum::device {
namespace {

// One replay: the addresses of all slots, and the outcome so far.
class Replay {
 public:
  Replay(const Driver& driver, const Program& program, const Target& target)
      : driver_(driver), program_(program), target_(target) {
    std::copy(target.operands.begin(), target.operands.end(), addresses_);
    for (const Scratch& each : program.scratch)
      addresses_[each.slot] = target.arena + static_cast<uint64_t>(each.offset);
  }

  ReplayOutcome run(bool check_capture, const Sort& sort) {
    const Current current(driver_, target_.context);
    if (!check("cuCtxPushCurrent", current.status())) return outcome_;
    if (check_capture && program_.waits && is_capturing()) return outcome_;
    for (const Step& step : program_.steps)
      if (!run_step(step, sort)) break;
    return outcome_;
  }

 private:
  bool check(const char* function, Status status) {
    if (status == 0) return true;
    outcome_.kind = ReplayOutcome::failed;
    outcome_.function = function;
    outcome_.status = status;
    return false;
  }

  bool is_capturing() {
    int status = 0;
    if (!check("cuStreamIsCapturing", driver_.is_capturing(target_.stream, &status))) return true;
    if (status != 0) outcome_.kind = ReplayOutcome::capturing;
    return status != 0;
  }

  bool run_step(const Step& step, const Sort& sort) {
    const uint64_t first = addresses_[step.slots[0]];
    const auto bytes = static_cast<size_t>(step.length);
    switch (step.kind) {
      case Step::launch:
        return launch(step);
      case Step::clear:
        return check("cuMemsetD8Async", driver_.clear(first, 0, bytes, target_.stream));
      case Step::read:
        outcome_.read = static_cast<uint32_t>(bytes);
        return check("cuMemcpyDtoHAsync", driver_.copy_out(outcome_.content, first, bytes, target_.stream)) &&
               check("cuStreamSynchronize", driver_.wait(target_.stream));
      case Step::sort:
        break;
    }
    const uint64_t distances[] = {first - target_.arena, addresses_[step.slots[1]] - target_.arena};
    uint64_t results[2] = {};
    if (!sort(step, distances, results)) {
      outcome_.kind = ReplayOutcome::not_sorted;
      return false;
    }
    addresses_[step.slots[2]] = results[0];
    addresses_[step.slots[3]] = results[1];
    return true;
  }

  // The driver copies the struct before it returns.
  bool launch(const Step& step) {
    alignas(16) char content[kMostBytes];
    std::memcpy(content, program_.contents.data() + step.content, step.bytes);
    const Patch* const patches = program_.patches.data() + step.first_patch;
    for (uint32_t i = 0; i < step.patches; ++i) {
      const uint64_t address = addresses_[patches[i].slot] + static_cast<uint64_t>(patches[i].distance);
      std::memcpy(content + patches[i].offset, &address, sizeof address);
    }
    void* parameters[] = {content};
    return check("cuLaunchKernel", driver_.launch(step.kernel, step.grid, 1, 1, step.block, 1, 1, 0,
                                                  target_.stream, parameters, nullptr));
  }

  const Driver& driver_;
  const Program& program_;
  const Target& target_;
  uint64_t addresses_[kMostSlots] = {};
  ReplayOutcome outcome_;
};

}  // namespace

bool ReplayOutcome::invalid() const {
  uint64_t count = 0;
  if (read >= sizeof count) std::memcpy(&count, content, sizeof count);
  return count != 0;
}

ReplayOutcome replay(const Driver& driver, const Program& program, const Target& target, bool check_capture,
                     const Sort& sort) {
  return Replay(driver, program, target).run(check_capture, sort);
}

}  // namespace gatherum::device
