#include "python/device/device_programs.hpp"

#include <string>
#include <utility>

#include "python/bindings/bindings.hpp"
#include "python/gil_release.hpp"
#include "python/guarded.hpp"

namespace gatherum {
namespace {

[[noreturn]] void refuse() { throw nb::value_error("gatherum: not a device program"); }

// Replays a program for Python. Returns the bytes that the program reads, or the function that failed and its
// status.
nb::object replay_from_python(const DeviceProgram& program, const nb::tuple& operands, uint64_t arena,
                              uint64_t stream, nb::handle sort) {
  if (operands.size() > device::kMostOperands) refuse();
  device::Addresses addresses = {};
  for (size_t i = 0; i < operands.size(); ++i) addresses[i] = nb::cast<uint64_t>(operands[i]);
  const device::ReplayOutcome outcome =
      program.replay(addresses, arena, reinterpret_cast<void*>(stream), false, sort);
  if (outcome.kind == device::ReplayOutcome::not_sorted) nb::raise_python_error();
  if (outcome.kind == device::ReplayOutcome::failed) return nb::make_tuple(outcome.function, outcome.status);
  return nb::bytes(outcome.content, outcome.read);
}

}  // namespace

bool sort_pairs(nb::handle sort, const device::Step& step, const uint64_t* distances, uint64_t* results) {
  const nb::object sorted = nb::steal(PyObject_CallFunction(
      sort.ptr(), "KKLiii", static_cast<unsigned long long>(distances[0]),
      static_cast<unsigned long long>(distances[1]), static_cast<long long>(step.length), step.widths[0],
      step.widths[1], step.widths[2]));
  if (!sorted.is_valid()) return false;
  unsigned long long keys = 0, payload = 0;
  if (!PyTuple_Check(sorted.ptr()) || PyArg_ParseTuple(sorted.ptr(), "KK", &keys, &payload) == 0) {
    if (PyErr_Occurred() == nullptr)
      PyErr_SetString(PyExc_TypeError, "gatherum: a sort returns two addresses");
    return false;
  }
  results[0] = keys;
  results[1] = payload;
  return true;
}

DeviceProgram::DeviceProgram(uint64_t context, const nb::tuple& steps, const nb::tuple& scratch,
                             uint32_t slots, int64_t arena)
    : driver_(device::open_driver()), context_(reinterpret_cast<void*>(context)) {
  if (driver_ == nullptr || slots > device::kMostSlots) refuse();
  program_.slots = slots;
  program_.arena = arena;
  for (nb::handle each : scratch) {
    unsigned slot_number = 0;
    long long offset = 0;
    if (PyArg_ParseTuple(each.ptr(), "IL", &slot_number, &offset) == 0) nb::raise_python_error();
    if (slot_number >= slots) refuse();
    program_.scratch.push_back({slot_number, int64_t{offset}});
  }
  for (nb::handle step : steps) add(nb::cast<nb::tuple>(step));
}

uint32_t DeviceProgram::slot(nb::handle slot_number) const {
  const auto slot = nb::cast<uint32_t>(slot_number);
  if (slot >= program_.slots) refuse();
  return slot;
}

// Adds ("launch", kernel, grid, block, content, patches), ("clear", slot, bytes), ("read", slot, bytes) or
// ("sort", the slots of keys, payload and their results, length, widths).
void DeviceProgram::add(const nb::tuple& step) {
  const std::string name = nb::cast<nb::str>(step[0]).c_str();
  device::Step added;
  if (name == "launch") {
    const auto content = nb::cast<nb::bytes>(step[4]);
    if (content.size() > device::kMostBytes) refuse();
    added.kernel = reinterpret_cast<void*>(nb::cast<uint64_t>(step[1]));
    added.grid = nb::cast<uint32_t>(step[2]);
    added.block = nb::cast<uint32_t>(step[3]);
    added.content = static_cast<uint32_t>(program_.contents.size());
    added.bytes = static_cast<uint32_t>(content.size());
    added.first_patch = static_cast<uint32_t>(program_.patches.size());
    program_.contents.insert(program_.contents.end(), content.c_str(), content.c_str() + content.size());
    for (nb::handle each : nb::cast<nb::tuple>(step[5])) {
      unsigned offset = 0, slot_number = 0;
      long long distance = 0;
      if (PyArg_ParseTuple(each.ptr(), "IIL", &offset, &slot_number, &distance) == 0)
        nb::raise_python_error();
      if (slot_number >= program_.slots || uint64_t{offset} + sizeof(uint64_t) > added.bytes) refuse();
      program_.patches.push_back({offset, slot_number, int64_t{distance}});
      ++added.patches;
    }
    // Otherwise the first launch loads the kernel, which may wait for the device.
    void* function = nullptr;
    driver_->load(&function, added.kernel);
  } else if (name == "sort") {
    added.kind = device::Step::sort;
    for (int i = 0; i < 4; ++i) added.slots[i] = slot(step[static_cast<size_t>(i) + 1]);
    added.length = nb::cast<int64_t>(step[5]);
    for (int i = 0; i < 3; ++i) added.widths[i] = nb::cast<int32_t>(step[static_cast<size_t>(i) + 6]);
    program_.sorts = true;
  } else {
    added.kind = name == "clear" ? device::Step::clear : device::Step::read;
    added.slots[0] = slot(step[1]);
    added.length = nb::cast<int64_t>(step[2]);
    if (added.kind == device::Step::read && added.length > device::kMostRead) refuse();
    program_.waits = program_.waits || added.kind == device::Step::read;
  }
  program_.steps.push_back(added);
}

device::ReplayOutcome DeviceProgram::replay(const device::Addresses& operands, uint64_t arena, void* stream,
                                            bool check_capture, nb::handle sort) const {
  const device::Target target = {operands, arena, context_, stream_handle(stream)};
  // A launch waits while the device's queue is full, even if the queue waits for host functions that need the
  // lock.
  GilRelease released;
  const device::Sort with_lock = [&](const device::Step& step, const uint64_t* distances, uint64_t* results) {
    return released.run_with_lock([&] { return sort_pairs(sort, step, distances, results); });
  };
  return device::replay(*driver_, program_, target, check_capture, with_lock);
}

nb::object DevicePrograms::find(int device, uint32_t alignments) const {
  const nb::ft_lock_guard lock(mutex_);
  for (const Entry& each : entries_)
    if (each.device == device && each.alignments == alignments) return each.program;
  return {};
}

void DevicePrograms::keep(int device, uint32_t alignments, nb::object program) {
  Entry dropped;  // destroyed outside the lock
  const nb::ft_lock_guard lock(mutex_);
  if (entries_.size() == kMostEntries) {
    dropped = std::move(entries_.front());
    entries_.erase(entries_.begin());
  }
  entries_.push_back({device, alignments, std::move(program)});
}

void bind_device_programs(nb::module_& m) {
  nb::class_<DeviceProgram>(m, "DeviceProgram", nb::type_slots(guarded_slots))
      .def(nb::init<uint64_t, const nb::tuple&, const nb::tuple&, uint32_t, int64_t>(), nb::arg("context"),
           nb::arg("steps"), nb::arg("scratch"), nb::arg("slots"), nb::arg("arena"))
      .def("replay", &replay_from_python, nb::arg("operands"), nb::arg("arena"), nb::arg("stream"),
           nb::arg("sort").none());
  m.def("has_cuda_driver", [] { return device::open_driver() != nullptr; });
}

}  // namespace gatherum
