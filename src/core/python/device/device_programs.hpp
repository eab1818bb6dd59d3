// Device programs as Python objects, and the programs of each plan.
#pragma once

#include <vector>

#include "device/program.hpp"
#include "python/numpy/arrays.hpp"

namespace gatherum {

// A program whose kernels are loaded on one device.
class DeviceProgram {
 public:
  // See `nvidia.loaded_program`, which makes them.
  DeviceProgram(uint64_t context, const nb::tuple& steps, const nb::tuple& scratch, uint32_t slots,
                int64_t arena);

  const device::Program& program() const { return program_; }
  const device::Driver& driver() const { return *driver_; }
  void* context() const { return context_; }
  // Replays the program without the interpreter's lock. A step that sorts calls sort(keys, payload, length,
  // key width, payload width, bits) with the distances of keys and payload from the start of the arena.
  // `sort` returns the addresses of the results. If it raises, a Python error is set.
  device::ReplayOutcome replay(const device::Addresses& operands, uint64_t arena, void* stream,
                               bool check_capture, nb::handle sort) const;

 private:
  void add(const nb::tuple& step);
  uint32_t slot(nb::handle slot_number) const;

  const device::Driver* driver_;
  void* context_;
  device::Program program_;
};

// Sorts a step's pairs with `sort(keys, payload, length, key width, payload width, bits)`, which returns the
// addresses of the results. Returns false if it has raised.
bool sort_pairs(nb::handle sort, const device::Step& step, const uint64_t* distances, uint64_t* results);

// The stream as a handle of the driver: 0 is the legacy default stream.
inline void* stream_handle(void* stream) { return stream == nullptr ? reinterpret_cast<void*>(1) : stream; }

// The programs of one plan that calls without `out` and fill value have used, by device and by the alignments
// of their operands.
class DevicePrograms {
 public:
  nb::object find(int device, uint32_t alignments) const;
  void keep(int device, uint32_t alignments, nb::object program);

 private:
  struct Entry {
    int device;
    uint32_t alignments;
    nb::object program;  // a DeviceProgram
  };
  static constexpr size_t kMostEntries = 16;

  mutable nb::ft_mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace gatherum
