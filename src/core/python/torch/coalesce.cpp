// Sums the elements of a sparse tensor that have the same place, if there are few elements. Torch takes
// longer to call the operators of these steps than to add the elements.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "python/bindings/bindings.hpp"
#include "python/positional.hpp"
#include "python/torch/override_operands.hpp"
#include "python/torch/scatter_into_zeros.hpp"
#include "python/torch/tensor_result.hpp"
#include "python/torch/tensors.hpp"

namespace gatherum {
namespace {

int64_t component_at(const View& indices, npy_intp axis, npy_intp column) {
  return read_index(indices, indices.address + axis * indices.strides[0] + column * indices.strides[1]);
}

// Returns the position of each column in a tensor of these sizes, in row-major order. Positions of invalid
// indices wrap around, as in torch.
std::vector<int64_t> positions_of(const View& indices, const nb::tuple& sizes) {
  std::vector<int64_t> positions(static_cast<size_t>(indices.shape[1]));
  for (npy_intp column = 0; column < indices.shape[1]; ++column) {
    uint64_t position = 0;
    for (npy_intp axis = 0; axis < indices.shape[0]; ++axis)
      position = position * nb::cast<uint64_t>(sizes[static_cast<size_t>(axis)]) +
                 static_cast<uint64_t>(component_at(indices, axis, column));
    positions[static_cast<size_t>(column)] = static_cast<int64_t>(position);
  }
  return positions;
}

// Returns the columns sorted by their positions. Sorts by one byte at a time, the lowest byte first.
std::vector<size_t> sorted_columns(const std::vector<int64_t>& positions) {
  const auto [lowest, highest] = std::minmax_element(positions.begin(), positions.end());
  const auto low = static_cast<uint64_t>(*lowest), range = static_cast<uint64_t>(*highest) - low;
  std::vector<size_t> columns(positions.size()), sorted(positions.size());
  std::iota(columns.begin(), columns.end(), size_t{0});
  for (int shift = 0; shift < 64 && range >> shift != 0; shift += 8) {
    const auto byte = [&](size_t column) {
      return ((static_cast<uint64_t>(positions[column]) - low) >> shift) & 0xff;
    };
    std::array<size_t, 257> starts = {};
    for (const size_t column : columns) ++starts[byte(column) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    for (const size_t column : columns) sorted[starts[byte(column)]++] = column;
    columns.swap(sorted);
  }
  return columns;
}

// Returns, for each column, the number of its place. Places have numbers in the order of their positions.
std::vector<int64_t> number_places(const std::vector<int64_t>& positions, const std::vector<size_t>& sorted) {
  std::vector<int64_t> numbers(positions.size());
  for (size_t i = 1; i < sorted.size(); ++i)
    numbers[sorted[i]] = numbers[sorted[i - 1]] + (positions[sorted[i]] != positions[sorted[i - 1]] ? 1 : 0);
  return numbers;
}

// Returns the last column of each place.
nb::object columns_of_places(const View& indices, const std::vector<int64_t>& numbers, npy_intp places,
                             dlpack::DataType type) {
  TensorResult result;
  Shape shape;
  shape.rank = 2;
  shape.extent[0] = indices.shape[0];
  shape.extent[1] = places;
  auto* const components = static_cast<int64_t*>(result.allocate(shape, type, sizeof(int64_t)));
  for (npy_intp axis = 0; axis < indices.shape[0]; ++axis)
    for (size_t column = 0; column < numbers.size(); ++column)
      components[axis * places + numbers[column]] =
          component_at(indices, axis, static_cast<npy_intp>(column));
  return result.to_tensor(*torch().api);
}

// Adds the values whose numbers are equal.
nb::object sums_of_places(const TensorView& tensor, const View& values, std::vector<int64_t>& numbers,
                          npy_intp places) {
  static PyObject* const op = kept_text("scatter_slices");
  const auto count = static_cast<npy_intp>(numbers.size());
  constexpr npy_intp step = sizeof(int64_t);
  npy_intp shape[NPY_MAXDIMS];
  std::copy_n(values.shape, values.rank, shape);
  shape[0] = places;
  Call call;
  call.attributes.op = op;
  call.attributes.reduction = Reduction::add;
  call.attributes.negative = false;
  call.operands = {
      zeros_like(values, values.rank, shape),
      View{reinterpret_cast<char*>(numbers.data()), 1, &count, &step, static_cast<int>(DType::int64), step},
      values, View{}};
  return run_into_zeros(call, tensor.type);
}

// torch has no kernels for these dtypes.
bool is_wide_unsigned(dlpack::DataType type) {
  return type.code == static_cast<uint8_t>(DLPack::unsigned_integer) && type.bits > 8;
}

// Returns the columns of the places that have an element, and the sum of the values of each place. Returns
// None for tensors that are not plain, and for many indices, which torch sorts on several threads.
nb::object coalesce(const nb::handle* arguments) {
  TensorView index_tensor, value_tensor;
  View indices, values;
  if (!is_tensor(arguments[0]) || !is_tensor(arguments[1]) || !index_tensor.read(arguments[0], indices) ||
      !value_tensor.read(arguments[1], values) || indices.rank != 2 || values.rank < 1 ||
      indices.dtype != static_cast<int>(DType::int64) || indices.shape[1] != values.shape[0] ||
      indices.shape[0] == 0 || indices.shape[1] < 2 || items_of(values) == 0 ||
      is_wide_unsigned(value_tensor.type) || items_of(indices) > kMostItems || value_tensor.complex ||
      torch().is_neg(arguments[1]))
    return nb::none();
  const std::vector<int64_t> positions = positions_of(indices, nb::borrow<nb::tuple>(arguments[2]));
  const std::vector<size_t> sorted = sorted_columns(positions);
  std::vector<int64_t> numbers = number_places(positions, sorted);
  const npy_intp places = numbers[sorted.back()] + 1;
  const nb::object columns = columns_of_places(indices, numbers, places, index_tensor.type);
  const nb::object sums = sums_of_places(value_tensor, values, numbers, places);
  return sums.is_none() ? sums : nb::make_tuple(columns, sums);
}

}  // namespace

void bind_coalesce(nb::module_& m) {
  def_positional<3, coalesce>(m, "coalesce", "coalesce(indices, values, sizes, /)\n--\n\n");
}

}  // namespace gatherum
