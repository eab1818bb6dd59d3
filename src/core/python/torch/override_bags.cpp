#include "python/torch/override_bags.hpp"

#include "python/torch/index_reads.hpp"
#include "python/torch/tensor_result.hpp"

namespace gatherum {
namespace {

// The arguments of `_embedding_bag` and of `_embedding_bag_dense_backward`, in their order.
struct OfBags {
  enum { weight, indices, offsets, by_frequency, mode, sparse, scales, last_offset, padding, count };
};
struct OfBagGradient {
  enum { gradient, indices, bags, sizes, maxima, size, by_frequency, mode, scales, padding };
};

constexpr long kSum = 0, kMean = 1, kMax = 2;     // torch's numbers of modes
constexpr int64_t kMostTerms = int64_t{1} << 16;  // torch and the core divide more terms among threads

bool is_float_or_double(const View& view) {
  return view.dtype == static_cast<int>(DType::float32) || view.dtype == static_cast<int>(DType::float64);
}

bool is_omitted(nb::handle argument) { return !argument.is_valid() || argument.is_none(); }

int64_t index_at(const View& vector, npy_intp i) {
  return read_index(vector, vector.address + i * vector.strides[0]);
}

// The bag of each index, and the number of indices in each bag, as tensors of int64.
class Bags {
 public:
  // Returns false if the offsets do not divide the indices into bags, or have another dtype than int64.
  bool read(const View& indices, const View& offsets, bool last_offset, int64_t padding) {
    if (indices.rank != 1 || offsets.rank != 1 || indices.dtype != static_cast<int>(DType::int64) ||
        offsets.dtype != indices.dtype)
      return false;
    const npy_intp edges = indices.shape[0];
    count_ = offsets.shape[0] - (last_offset ? 1 : 0);
    if (edges == 0 || count_ < 1 || index_at(offsets, 0) != 0) return false;
    bags_ = allocate(bags, edges);
    sizes_ = allocate(sizes, count_);
    int64_t begin = 0, end;
    for (npy_intp bag = 0; bag < count_; ++bag, begin = end) {
      // Each offset is read once: another thread may change it.
      end = bag + 1 < offsets.shape[0] ? index_at(offsets, bag + 1) : edges;
      if (end < begin || end > edges || (bag + 1 == count_ && end != edges)) return false;
      std::fill(bags_ + begin, bags_ + end, bag);
      sizes_[bag] = end - begin;
      for (int64_t i = begin; padding >= 0 && i < end; ++i)
        if (index_at(indices, i) == padding) --sizes_[bag];
    }
    return true;
  }

  // Divides each row by the size of its bag.
  template <class T>
  void divide(char* rows, npy_intp width) const {
    auto* row = reinterpret_cast<T*>(rows);
    for (npy_intp bag = 0; bag < count_; ++bag, row += width) {
      const T size = static_cast<T>(static_cast<float>(std::max<int64_t>(sizes_[bag], 1)));
      for (npy_intp i = 0; i < width; ++i) row[i] /= size;
    }
  }

  npy_intp count() const { return count_; }
  int64_t bag_of(npy_intp i) const { return bags_[i]; }
  // Returns torch's four tensors, with the sums or means of the bags.
  nb::object results(const nb::object& output) {
    const nb::object sizes_of = sizes.take(*torch().api);
    return nb::make_tuple(output, bags.take(*torch().api), sizes_of, sizes_of);
  }

  TensorResult bags, sizes;

 private:
  static int64_t* allocate(TensorResult& result, npy_intp items) {
    Shape shape;
    shape.rank = 1;
    shape.extent[0] = items;
    return static_cast<int64_t*>(result.allocate(shape, {0, 64, 1}, sizeof(int64_t)));
  }

  npy_intp count_ = 0;
  int64_t *bags_ = nullptr, *sizes_ = nullptr;
};

// Calls torch's kernel with the mode "sum". Returns the sums.
nb::object torch_sums(const DispatchedArguments& arguments, nb::handle torch_kernel) {
  static PyObject* const sum = PyLong_FromLong(kSum);
  static PyObject* const no_padding = PyLong_FromLong(-1);
  PyObject* const values[] = {nullptr,  nullptr, nullptr,  Py_False,  sum,
                              Py_False, Py_None, Py_False, no_padding};  // by position
  const nb::object call = checked(PyTuple_New(OfBags::count));
  for (int i = 0; i < OfBags::count; ++i) {
    const bool is_given = i != OfBags::mode && arguments[i].is_valid();
    PyTuple_SET_ITEM(call.ptr(), i, Py_NewRef(is_given ? arguments[i].ptr() : values[i]));
  }
  const nb::object results = checked(PyObject_Call(torch_kernel.ptr(), call.ptr(), nullptr));
  return checked(PySequence_GetItem(results.ptr(), 0));
}

int64_t padding_of(nb::handle argument) { return argument.is_valid() ? PyLong_AsLong(argument.ptr()) : -1; }

// Adds the rows of the weight, each multiplied by its scale, to the sums of their bags. Returns false for an
// index out of bounds.
template <class T>
bool add_weighted(const View& weight, const View& indices, const View& scales, const Bags& bags,
                  int64_t padding, void* sums) {
  const npy_intp width = weight.shape[1];
  std::fill_n(static_cast<T*>(sums), bags.count() * width, T{0});
  for (npy_intp i = 0; i < indices.shape[0]; ++i) {
    const int64_t index = index_at(indices, i);
    if (index < 0 || index >= weight.shape[0]) return false;
    if (index == padding) continue;
    T scale;
    std::memcpy(&scale, scales.address + i * scales.strides[0], sizeof scale);
    T* sum = static_cast<T*>(sums) + bags.bag_of(i) * width;
    const char* row = weight.address + index * weight.strides[0];
    for (npy_intp column = 0; column < width; ++column, row += weight.strides[1]) {
      T value;
      std::memcpy(&value, row, sizeof value);
      *sum++ += value * scale;
    }
  }
  return true;
}

template <class T>
bool write_terms(const View& gradient, const View& bags, const View* sizes, const View* scales, char* to) {
  auto* term = reinterpret_cast<T*>(to);
  for (npy_intp i = 0; i < bags.shape[0]; ++i) {
    const int64_t bag = index_at(bags, i);
    if (bag < 0 || bag >= gradient.shape[0]) return false;
    const int64_t count = sizes == nullptr ? 1 : index_at(*sizes, bag);
    const T size = static_cast<T>(static_cast<float>(std::max<int64_t>(count, 1)));
    T scale = 1;
    if (scales != nullptr) std::memcpy(&scale, scales->address + i * scales->strides[0], sizeof scale);
    const char* row = gradient.address + bag * gradient.strides[0];
    for (npy_intp column = 0; column < gradient.shape[1]; ++column, row += gradient.strides[1]) {
      T value;
      std::memcpy(&value, row, sizeof value);
      *term++ = value / size * scale;
    }
  }
  return true;
}

}  // namespace

bool is_in_order(const DispatchedArguments& arguments) {
  TensorView tensor;
  View weight;
  const nb::handle mode = arguments[OfBags::mode];
  const long number = is_omitted(mode) ? kSum : PyLong_AsLong(mode.ptr());
  return number == kMax ||
         (number == kSum && is_omitted(arguments[OfBags::scales]) &&
          read_plain(arguments[OfBags::weight], tensor, weight) && is_float_or_double(weight));
}

nb::object run_mean_bags(const DispatchedArguments& arguments, nb::handle torch_kernel) {
  TensorView tensors[4];
  View weight, indices, offsets, sums;
  const nb::handle mode = arguments[OfBags::mode];
  if (is_omitted(mode) || PyLong_AsLong(mode.ptr()) != kMean || !is_omitted(arguments[OfBags::scales]) ||
      !read_plain(arguments[OfBags::weight], tensors[0], weight) || !is_float_or_double(weight) ||
      weight.rank != 2 || weight.shape[0] * weight.shape[1] == 0 ||
      !read_plain(arguments[OfBags::indices], tensors[1], indices) ||
      !read_plain(arguments[OfBags::offsets], tensors[2], offsets))
    return {};
  Bags bags;
  if (!bags.read(indices, offsets, arguments[OfBags::last_offset].ptr() == Py_True,
                 padding_of(arguments[OfBags::padding])))
    return {};
  nb::object output = torch_sums(arguments, torch_kernel);
  if (!read_plain(output, tensors[3], sums) || !is_contiguous(sums) || sums.rank != 2 ||
      sums.shape[0] != bags.count() || sums.dtype != weight.dtype)
    return {};
  if (sums.dtype == static_cast<int>(DType::float32))
    bags.divide<float>(sums.address, sums.shape[1]);
  else
    bags.divide<double>(sums.address, sums.shape[1]);
  return bags.results(output);
}

nb::object run_weighted_bags(const DispatchedArguments& arguments) {
  TensorView tensors[4];
  View weight, indices, offsets, scales;
  const nb::handle mode = arguments[OfBags::mode];
  if ((!is_omitted(mode) && PyLong_AsLong(mode.ptr()) != kSum) ||
      !read_plain(arguments[OfBags::weight], tensors[0], weight) || !is_float_or_double(weight) ||
      weight.rank != 2 || !read_plain(arguments[OfBags::indices], tensors[1], indices) ||
      !read_plain(arguments[OfBags::offsets], tensors[2], offsets) ||
      !read_plain(arguments[OfBags::scales], tensors[3], scales) || scales.dtype != weight.dtype ||
      scales.rank != 1 || indices.rank != 1 || scales.shape[0] != indices.shape[0] ||
      indices.shape[0] * weight.shape[1] > kMostTerms)
    return {};
  const int64_t padding = padding_of(arguments[OfBags::padding]);
  Bags bags;
  if (!bags.read(indices, offsets, arguments[OfBags::last_offset].ptr() == Py_True, padding)) return {};
  Shape shape;
  shape.rank = 2;
  shape.extent[0] = bags.count();
  shape.extent[1] = weight.shape[1];
  TensorResult output;
  void* const sums = output.allocate(shape, tensors[0].type, weight.item);
  const auto add =
      weight.dtype == static_cast<int>(DType::float32) ? add_weighted<float> : add_weighted<double>;
  if (!add(weight, indices, scales, bags, padding, sums)) return {};
  return bags.results(output.take(*torch().api));
}

std::unique_ptr<char[]> terms_of_bags(const DispatchedArguments& arguments, const View& gradient,
                                      npy_intp indices) {
  TensorView tensors[3];
  View bags, sizes, scales;
  const nb::handle mode = arguments[OfBagGradient::mode], factors = arguments[OfBagGradient::scales];
  const bool is_mean = PyLong_AsLong(mode.ptr()) == kMean, is_scaled = !is_omitted(factors);
  if ((!is_mean && PyLong_AsLong(mode.ptr()) != kSum) || gradient.rank != 2 ||
      !is_float_or_double(gradient) || arguments[OfBagGradient::by_frequency].ptr() != Py_False ||
      !read_plain(arguments[OfBagGradient::bags], tensors[0], bags) || !is_index(bags) || bags.rank != 1 ||
      bags.shape[0] != indices || bags.shape[0] * gradient.shape[1] > kMostTerms || gradient.shape[1] == 0)
    return nullptr;
  if (is_mean && (!read_plain(arguments[OfBagGradient::sizes], tensors[1], sizes) || !is_index(sizes) ||
                  sizes.rank != 1 || sizes.shape[0] != gradient.shape[0]))
    return nullptr;
  if (is_scaled && (!read_plain(factors, tensors[2], scales) || scales.dtype != gradient.dtype ||
                    scales.rank != 1 || scales.shape[0] != bags.shape[0]))
    return nullptr;
  const auto bytes = static_cast<size_t>(bags.shape[0] * gradient.shape[1] * gradient.item);
  std::unique_ptr<char[]> terms(new char[bytes]);
  const auto write =
      gradient.dtype == static_cast<int>(DType::float32) ? write_terms<float> : write_terms<double>;
  const bool fits =
      write(gradient, bags, is_mean ? &sizes : nullptr, is_scaled ? &scales : nullptr, terms.get());
  return fits ? std::move(terms) : nullptr;
}

}  // namespace gatherum
