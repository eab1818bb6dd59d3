#include "python/torch/device_tensors.hpp"

#include "python/bindings/bindings.hpp"
#include "python/memory_calls.hpp"
#include "python/runs.hpp"
#include "python/torch/tensors.hpp"

namespace gatherum {
namespace {

// The functions that torch's adapter has passed.
struct CudaFunctions {
  // (plan, device, is ordered, alignments of data, indices, updates and out) -> DeviceProgram, or None
  nb::object make_program;
  // (arena, stream, then the arguments of a sort of DeviceProgram::replay) -> (address, address, memory)
  nb::object sort;
  // (device) -> address of kWidestBlock zero bytes on the device, or 0
  nb::object zeros;
};

CudaFunctions& cuda_functions() {
  static auto* functions = new CudaFunctions;
  return *functions;
}

// Memory for all scratch of a program, from torch's allocator: freed in stream order.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    if (managed_ != nullptr) managed_->deleter(managed_);
  }

  // Returns false if the allocator fails.
  bool allocate(int64_t bytes, const dlpack::Device& device) {
    dlpack::Tensor like = {nullptr, device,  1, {static_cast<uint8_t>(DLPack::unsigned_integer), 8, 1},
                           &bytes,  nullptr, 0};
    const auto ignore = [](void*, const char*, const char*) {};
    if (torch().api->allocate(&like, &managed_, nullptr, ignore) == 0) return true;
    PyErr_Clear();
    managed_ = nullptr;
    return false;
  }

  uint64_t address() const {
    if (managed_ == nullptr) return 0;
    const dlpack::Tensor& t = managed_->tensor;
    return reinterpret_cast<uintptr_t>(t.data) + t.byte_offset;
  }

  // Returns a tensor that owns the memory.
  nb::object release() {
    void* object = nullptr;
    dlpack::ManagedTensor* const managed = managed_;
    managed_ = nullptr;
    if (torch().api->to_object(managed, &object) != 0) nb::raise_python_error();
    return nb::steal(static_cast<PyObject*>(object));
  }

 private:
  dlpack::ManagedTensor* managed_ = nullptr;
};

// A new tensor with the dtype and device of another tensor. Torch allocates the memory. If the tensor came
// from DLPack, torch's allocator would not have a record of its memory, and Tensor.record_stream would do
// nothing.
nb::object new_tensor(nb::handle like, const Shape& shape) {
  static PyObject* const name = kept_text("new_empty");
  const nb::object sizes = tuple_of(shape.extent, shape.rank);
  PyObject* const arguments[] = {like.ptr(), sizes.ptr()};
  return checked(PyObject_VectorcallMethod(name, arguments, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

uint64_t handle_of(void* stream) { return reinterpret_cast<uintptr_t>(stream_handle(stream)); }

// Returns 0 if the device's zeros cannot be made now.
uint64_t zeros_on(int device) {
  const nb::object address = cuda_functions().zeros(device);
  return PyLong_AsUnsignedLongLong(address.ptr());
}

uint64_t address_of(const View& view) { return reinterpret_cast<uintptr_t>(view.address); }

}  // namespace

bool runs_on_cuda() { return cuda_functions().make_program.is_valid(); }

nb::object run_on_cuda(const nb::handle* tensors, const Call& call, dlpack::Device device,
                       const Order* order) {
  const auto& [data, indices, updates, none] = call.operands;
  const int first = tensors[0].is_none() ? 1 : 0;  // the first operand that is a tensor
  const uint64_t data_address = first == 0 ? address_of(data) : zeros_on(device.id);
  if (data_address == 0 && first == 1) return {};
  bool made = false;
  const CachedPlan cached = plan_of(call, made);
  const nb::object kept =
      device_program(cached, call.operands, device.id, order, cuda_functions().make_program, made);
  // Python code may have changed the tensors.
  if (!kept.is_valid() ||
      (made && first_change(tensors + first, call.operands.data() + first, 3 - first, true) >= 0))
    return {};
  const DeviceProgram& replayed = *nb::inst_ptr<DeviceProgram>(kept);
  const device::Program& program = replayed.program();
  nb::object result = new_tensor(tensors[first == 0 ? 0 : 2], cached.program->fields().result);
  TensorView tensor;
  View out;
  void* stream = nullptr;
  Arena arena;
  const bool ready = tensor.read(result, out, true) &&
                     device_alignment(out.address) == device_alignment(nullptr) &&
                     torch().api->stream(device.type, device.id, &stream) == 0 &&
                     (order == nullptr || order->stream == handle_of(stream)) &&
                     (program.arena == 0 || arena.allocate(program.arena, device));
  if (!ready) {
    PyErr_Clear();
    return {};
  }
  device::Addresses operands = {data_address, address_of(indices), address_of(updates), address_of(out)};
  if (order != nullptr) operands[1] = order->keys;
  if (order != nullptr) operands[device::kOperandSlots] = order->payload;
  const uint64_t scratch = arena.address();
  nb::object sort;
  if (program.sorts) sort = cuda_functions().sort(arena.release(), handle_of(stream), device.id);
  const device::ReplayOutcome outcome = replayed.replay(operands, scratch, stream, true, sort);
  if (outcome.kind == device::ReplayOutcome::not_sorted) nb::raise_python_error();
  if (outcome.kind != device::ReplayOutcome::done || outcome.invalid()) return {};
  return result;
}

void bind_device_tensors(nb::module_& m) {
  m.def(
      "set_torch_cuda",
      [](nb::handle make_program, nb::handle sort, nb::handle zeros) {
        cuda_functions() = {nb::borrow(make_program), nb::borrow(sort), nb::borrow(zeros)};
      },
      nb::arg("make_program"), nb::arg("sort"), nb::arg("zeros"));
}

}  // namespace gatherum
