// Scatters of plain tensors into zeros. torch_scatter's functions and the gradient of a
// gather use them.
#include "python/torch/scatter_into_zeros.hpp"

#include <optional>

#include "python/bindings/bindings.hpp"
#include "python/call_plans.hpp"
#include "python/positional.hpp"
#include "python/runs.hpp"
#include "python/torch/device_tensors.hpp"
#include "python/torch/index_reads.hpp"
#include "python/torch/tensor_result.hpp"
#include "python/torch/tensor_view.hpp"
#include "python/torch/tensors.hpp"

namespace gatherum {
namespace {

// The arguments, in their order.
struct ZerosArgument {
  enum { op, size, indices, updates, axis, reduction, include_self, mode, negative, pointer };
};

constexpr dlpack::DataType kInt64 = {0, 64, 1};

// Writes the segment of each of `size` positions: -1 before the first segment, and the number of segments
// after the last one. Returns false if the CSR pointer decreases or exceeds `size`.
bool write_segments(const View& pointer, int64_t size, int64_t* numbers) {
  int64_t at = 0;
  const bool ordered = each_index(pointer, [&](npy_intp i, int64_t value) {
    if (value < at || value > size) return false;
    std::fill(numbers + at, numbers + value, int64_t{i} - 1);
    at = value;
    return true;
  });
  std::fill(numbers + at, numbers + size, int64_t{pointer.shape[0]} - 1);
  return ordered;
}

// Reads a tuple of sizes. Returns -1 if the tuple contains anything else.
int read_shape(nb::handle sizes, npy_intp* shape) {
  const Py_ssize_t n = PyTuple_GET_SIZE(sizes.ptr());
  if (n > NPY_MAXDIMS) return -1;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* const size = PyTuple_GET_ITEM(sizes.ptr(), i);
    if (!PyLong_CheckExact(size)) return -1;
    shape[i] = PyLong_AsSsize_t(size);
    if (shape[i] == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  }
  return static_cast<int>(n);
}

// A call of `scatter_into_zeros`, which owns the storage of its views.
class ScatterIntoZeros {
 public:
  // Returns false if it is not a call on plain tensors.
  bool read(const nb::handle* arguments) {
    if (!is_tensor(arguments[ZerosArgument::updates]) || !is_tensor(arguments[ZerosArgument::indices]) ||
        is_watched())
      return false;
    const Torch& t = torch();
    tracks_gradient_ = t.requires_grad(arguments[ZerosArgument::updates]) && t.grad_enabled();
    Arguments attributes = {op_ = interned(arguments[ZerosArgument::op])};
    for (int i = 0; i < 5; ++i)
      attributes[static_cast<size_t>(kAxis + i)] = arguments[ZerosArgument::axis + i];
    if (!read_attributes(attributes.data(), call_.attributes)) return false;
    auto& [data, indices, updates, out] = call_.operands;
    const bool or_cuda = runs_on_cuda();
    if (!updates_.read(arguments[ZerosArgument::updates], updates, or_cuda) ||
        !indices_.read(arguments[ZerosArgument::indices], indices, or_cuda) ||
        !is_same_device(updates_, indices_) || updates_.complex ||
        t.is_neg(arguments[ZerosArgument::updates]))
      return false;
    const nb::handle size = arguments[ZerosArgument::size];
    if (!PyTuple_Check(size.ptr()))
      return read_along_axis(size, arguments[ZerosArgument::pointer].ptr() == Py_True);
    const int rank = read_shape(size, shape_);
    if (call_.attributes.axis < 0) call_.attributes.axis += rank;
    data = zeros_like(updates, rank, shape_);
    return rank >= 0;
  }

  // Returns None if the core does not plan the call, or if an index is invalid.
  nb::object run(const nb::handle* arguments) {
    if (tracks_gradient_ && call_.attributes.reduction != Reduction::add) return nb::none();
    if (segment_numbers_ != nullptr && !write_segments(pointer_, position_count_, segment_numbers_))
      return nb::none();
    nb::object output = is_on_cuda() ? run_on_device(arguments) : run_into_zeros(call_, updates_.type);
    return tracks_gradient_ && !output.is_none() ? record_gradient(arguments, output) : output;
  }

 private:
  bool is_on_cuda() const { return updates_.device.type == dlpack::kCuda; }

  nb::object run_on_device(const nb::handle* arguments) const {
    const nb::handle tensors[] = {nb::handle(Py_None), arguments[ZerosArgument::indices],
                                  arguments[ZerosArgument::updates]};
    nb::object result = run_on_cuda(tensors, call_, updates_.device, nullptr);
    return result.is_valid() ? result : nb::none();
  }

  // Reads the operands of a scatter of slices along one axis, by indices or by the segments of a CSR pointer.
  bool read_along_axis(nb::handle size, bool is_pointer) {
    auto& [data, indices, updates, out] = call_.operands;
    int64_t& axis = call_.attributes.axis;
    if (axis < 0) axis += updates.rank;
    if (axis < 0 || axis >= updates.rank || indices.rank != 1) return false;
    if (is_on_cuda() && (is_pointer || size.is_none())) return false;  // the host cannot read the indices
    std::copy_n(updates.shape, updates.rank, shape_);
    npy_intp& destinations = shape_[axis];
    if (is_pointer) {
      pointer_ = indices;
      position_count_ = destinations;
      if (indices.shape[0] == 0) return false;
      Shape shape;
      shape.rank = 1;
      shape.extent[0] = position_count_;
      segment_numbers_ = static_cast<int64_t*>(segments_.allocate(shape, kInt64, sizeof(int64_t)));
      destinations = indices.shape[0] - 1;
      indices.address = reinterpret_cast<char*>(segment_numbers_);
      indices.shape = &position_count_;
      indices.strides = &number_bytes_;
      indices.item = number_bytes_;
      indices.dtype = static_cast<int>(DType::int64);
    } else if (indices.shape[0] != destinations) {
      return false;
    } else if (size.is_none()) {
      const std::optional<npy_intp> least = least_size(indices);
      if (!least) return false;
      destinations = *least;
    } else {
      if (!PyLong_CheckExact(size.ptr())) return false;
      destinations = PyLong_AsSsize_t(size.ptr());
      if (destinations == -1 && PyErr_Occurred() != nullptr) PyErr_Clear();  // overflow, rejected below
      if (destinations < 0) return false;
    }
    data = zeros_like(updates, updates.rank, shape_);
    return true;
  }

  // Returns the result after Python has attached the gradient. Python keeps the indices for the gradient.
  nb::object record_gradient(const nb::handle* arguments, const nb::object& output) {
    const nb::object indices = segment_numbers_ != nullptr ? segments_.to_tensor(*torch().api)
                                                           : nb::borrow(arguments[ZerosArgument::indices]);
    const nb::object axis = checked(PyLong_FromLongLong(call_.attributes.axis));
    PyObject* operands[] = {output.ptr(),
                            arguments[ZerosArgument::updates].ptr(),
                            indices.ptr(),
                            op_.ptr(),
                            axis.ptr(),
                            arguments[ZerosArgument::mode].ptr(),
                            arguments[ZerosArgument::negative].ptr()};
    return checked(PyObject_Vectorcall(torch().record_total.ptr(), operands, std::size(operands), nullptr));
  }

  Call call_;
  nb::object op_;
  TensorView updates_, indices_;
  npy_intp shape_[NPY_MAXDIMS], position_count_ = 0, number_bytes_ = sizeof(int64_t);
  View pointer_;
  TensorResult segments_;
  int64_t* segment_numbers_ = nullptr;
  bool tracks_gradient_ = false;
};

nb::object scatter_into_zeros(const nb::handle* arguments) {
  if (torch().api == nullptr) return nb::none();
  ScatterIntoZeros scatter;
  return scatter.read(arguments) ? scatter.run(arguments) : nb::none();
}

}  // namespace

nb::object run_into_zeros(const Call& call, dlpack::DataType type) {
  const CachedPlan cached = find_or_plan_in_core(call);
  if (cached.program == nullptr) return nb::none();
  const BoundProgram& program = *cached.program;
  TensorResult result;
  void* const memory = result.allocate(program.fields().result, type, call.operands[0].item);
  const gatherum_operands operands = operands_of(program, call.operands, memory);
  gatherum_error error;
  const gatherum_status status = run_without_lock_if_long(
      gatherum_program_is_long(program.core()) != 0, error,
      [&](const gatherum_poll* poll) { return gatherum_run(program.core(), &operands, poll, &error); });
  return status == GATHERUM_OK ? result.to_tensor(*torch().api) : nb::none();
}

void bind_scatter_into_zeros(nb::module_& m) {
  constexpr size_t count = ZerosArgument::pointer + 1;
  def_positional<count, scatter_into_zeros>(m, "scatter_into_zeros",
                                            "scatter_into_zeros(op, size, indices, updates, axis, reduction, "
                                            "include_self, mode, negative, pointer, "
                                            "/)\n--\n\n");
}

}  // namespace gatherum
