// Device programs: the launches of a call on a CUDA device, recorded by Python (cuda/programs.py) and
// replayed here without Python. A program never changes, so any number of threads may replay it together.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "device/driver.hpp"

namespace gatherum::device {

inline constexpr uint32_t kOperandSlots = 4;  // data, indices, updates, out
// If the updates are sorted already, the operands are data, keys, updates, out and payload. If they are
// weighted rows, the row and the weight of each update follow.
inline constexpr uint32_t kMostOperands = 7;
inline constexpr uint32_t kMostSlots = 32;
inline constexpr uint32_t kMostBytes = 32764;  // of a kernel's struct
inline constexpr uint32_t kMostRead = 64;

// A field of a kernel's struct. Each replay stores the address of a slot plus a distance in this field.
struct Patch {
  uint32_t offset, slot;  // of the field in bytes; of the address
  int64_t distance;
};

// One step. A launch uses a range of the program's `contents` and a range of its `patches`.
struct Step {
  enum Kind : uint8_t { launch, clear, sort, read };
  Kind kind = launch;
  void* kernel = nullptr;
  uint32_t grid = 0, block = 0;
  uint32_t content = 0, bytes = 0;  // the struct
  uint32_t first_patch = 0, patches = 0;
  uint32_t slots[4] = {};  // the slot to clear or to read; of a sort: keys, payload and their results
  int64_t length = 0;      // pairs to sort; bytes to clear or to read
  int32_t widths[3] = {};  // of a sort, see device.py
};

struct Scratch {
  uint32_t slot;
  int64_t offset;  // in the arena
};

struct Program {
  std::vector<Step> steps;
  std::vector<char> contents;
  std::vector<Patch> patches;
  std::vector<Scratch> scratch;
  uint32_t slots = kOperandSlots;
  int64_t arena = 0;  // bytes of all scratch memory
  bool waits = false, sorts = false;
};

using Addresses = std::array<uint64_t, kMostOperands>;  // of operands; 0 for a missing one

// The addresses and handles of one replay.
struct Target {
  Addresses operands;
  uint64_t arena;
  void* context;
  void* stream;
};

// Sorts the pairs of a step, and writes the addresses of the results to `results`. `distances` contains the
// offsets of the pairs' arrays from the start of the arena, in bytes. Returns false if it has failed.
using Sort = std::function<bool(const Step&, const uint64_t* distances, uint64_t* results)>;

struct ReplayOutcome {
  enum Kind : uint8_t { done, capturing, not_sorted, failed };
  Kind kind = done;
  const char* function = "";  // the driver's function that has failed
  Status status = 0;
  uint32_t read = 0;  // bytes that the program has read
  char content[kMostRead] = {};

  // True if a record that was read contains an invalid index.
  bool invalid() const;
};

// Runs the steps of a program. If `check_capture` is true and the program waits for the stream, this function
// first checks that the stream is not capturing a graph. A wait would invalidate the captured graph.
ReplayOutcome replay(const Driver& driver, const Program& program, const Target& target, bool check_capture,
                     const Sort& sort);

}  // namespace gatherum::device
