// Remembered calls to torch's `_embedding_bag`.
#include "python/torch/override_operands.hpp"
#include "python/torch/tensor_result.hpp"

namespace gatherum {
namespace {

// The fields of `overrides/embeddings.py: Bags`, and the arguments of `_embedding_bag`, in their order.
struct BagsField {
  enum { weight, indices, offsets, scales, mean, last_offset, padding, count };
};
struct TorchArgument {
  enum { weight, indices, offsets, by_frequency, mode, sparse, scales, last_offset, padding, count };
};

void* allocate_sized(TensorResult& result, dlpack::DataType type, std::initializer_list<npy_intp> sizes) {
  Shape shape;
  shape.rank = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), shape.extent);
  return result.allocate(shape, type, type.bits / 8);
}

// Adds the rows of the weight, each multiplied by its scale, to the sums of their bags. Returns false for an
// index out of bounds.
template <class T>
bool add_weighted(const View& weight, const View& indices, const View& scales, const int64_t* bags,
                  int64_t padding, T* sums) {
  const npy_intp width = weight.shape[1];
  return each_index(indices, [&](npy_intp i, int64_t index) {
    if (index < 0 || index >= weight.shape[0]) return false;
    if (index == padding) return true;
    T scale, value;
    std::memcpy(&scale, scales.address + i * scales.strides[0], sizeof scale);
    T* sum = sums + bags[i] * width;
    const char* row = weight.address + index * weight.strides[0];
    for (npy_intp column = 0; column < width; ++column, row += weight.strides[1]) {
      std::memcpy(&value, row, sizeof value);
      *sum++ += value * scale;
    }
    return true;
  });
}

// Divides each row by the size of its bag.
template <class T>
void divide(T* rows, npy_intp width, const int64_t* sizes, npy_intp bags) {
  for (npy_intp bag = 0; bag < bags; ++bag, rows += width) {
    const T size = static_cast<T>(static_cast<float>(std::max<int64_t>(sizes[bag], 1)));
    for (npy_intp i = 0; i < width; ++i) rows[i] /= size;
  }
}

// Sums with scales, and means, of float32 or float64 bags. For means without scales, torch's kernel computes
// the sums, because it adds in order.
class RememberedBags final : public RememberedCall {
 public:
  bool read(const OverrideKey& call, const CallFields& fields) {
    const nb::handle scales = fields[BagsField::scales];
    is_mean_ = fields[BagsField::mean].ptr() == Py_True;
    has_last_offset_ = fields[BagsField::last_offset].ptr() == Py_True;
    padding_ = fields.number(BagsField::padding);
    if (!weight_.find(fields[BagsField::weight], call) || !indices_.find(fields[BagsField::indices], call) ||
        !offsets_.find(fields[BagsField::offsets], call) || !(scales.is_none() || scales_.find(scales, call)))
      return false;
    const View& indices = indices_.layout();
    const npy_intp terms = indices.shape[0] * weight_.layout().shape[1];
    return is_floating(weight_.type()) && weight_.layout().item >= 4 &&
           indices.dtype == static_cast<int>(DType::int64) && scales_.is_present() != is_mean_ &&
           is_contiguous(indices) && is_contiguous(offsets_.layout()) &&
           (is_mean_ || (terms <= kMostItems && scales_.layout().rank == 1 &&
                         scales_.layout().shape[0] == indices.shape[0]));
  }

  nb::object run(const OverrideKey& call, nb::handle torch_kernel) const override {
    return weight_.layout().item == 4 ? run_as<float>(call, torch_kernel)
                                      : run_as<double>(call, torch_kernel);
  }

 private:
  template <class T>
  nb::object run_as(const OverrideKey& call, nb::handle torch_kernel) const {
    const View weight = weight_.view(call), indices = indices_.view(call), offsets = offsets_.view(call);
    const npy_intp edges = indices.shape[0], count = offsets.shape[0] - (has_last_offset_ ? 1 : 0);
    TensorResult bags, sizes, output;
    auto* const bag_numbers = static_cast<int64_t*>(allocate_sized(bags, indices_.type(), {edges}));
    auto* const bag_sizes = static_cast<int64_t*>(allocate_sized(sizes, indices_.type(), {count}));
    if (!expand_segments(has_last_offset_ ? Segments::offsets : Segments::starts, offsets, edges,
                         bag_numbers))
      return {};
    std::fill_n(bag_sizes, count, 0);
    each_index(indices, [&](npy_intp i, int64_t index) {
      if (index != padding_ || padding_ < 0) ++bag_sizes[bag_numbers[i]];
      return true;
    });
    nb::object sums;
    if (is_mean_) {
      TensorView tensor;
      View view;
      sums = torch_sums(call, torch_kernel);
      if (!tensor.read(sums, view) || !is_contiguous(view) || view.rank != 2 || view.shape[0] != count ||
          view.dtype != weight.dtype)
        return {};
      divide(reinterpret_cast<T*>(view.address), view.shape[1], bag_sizes, count);
    } else {
      const npy_intp width = weight.shape[1];
      auto* const memory = static_cast<T*>(allocate_sized(output, weight_.type(), {count, width}));
      std::fill_n(memory, count * width, T{0});
      if (!add_weighted(weight, indices, scales_.view(call), bag_numbers, padding_, memory)) return {};
      sums = output.to_tensor(*torch().api);
    }
    const nb::object counts = sizes.to_tensor(*torch().api);
    return nb::make_tuple(sums, bags.to_tensor(*torch().api), counts, counts);
  }

  // Calls torch's kernel with the mode "sum". Returns the sums.
  static nb::object torch_sums(const OverrideKey& call, nb::handle torch_kernel) {
    static PyObject* const sum = PyLong_FromLong(0);
    static PyObject* const no_padding = PyLong_FromLong(-1);
    PyObject* const defaults[] = {nullptr,  nullptr, nullptr,  Py_False,  sum,
                                  Py_False, Py_None, Py_False, no_padding};  // by position
    PyObject* const given = call.positional().ptr();
    const nb::object arguments = checked(PyTuple_New(TorchArgument::count));
    for (Py_ssize_t i = 0; i < TorchArgument::count; ++i) {
      const bool is_given = i != TorchArgument::mode && i < PyTuple_GET_SIZE(given);
      PyTuple_SET_ITEM(arguments.ptr(), i, Py_NewRef(is_given ? PyTuple_GET_ITEM(given, i) : defaults[i]));
    }
    const nb::object results = checked(PyObject_Call(torch_kernel.ptr(), arguments.ptr(), nullptr));
    return checked(PySequence_GetItem(results.ptr(), 0));
  }

  OperandSource weight_, indices_, offsets_, scales_;
  bool is_mean_ = false, has_last_offset_ = false;
  int64_t padding_ = -1;
};

}  // namespace

Remembered remember_bags(const OverrideKey& call, const CallFields& fields) {
  fields.check_count(BagsField::count);
  const auto bags = std::make_shared<RememberedBags>();
  return bags->read(call, fields) ? bags : nullptr;
}

}  // namespace gatherum
