#include "python/torch/override_operands.hpp"

#include <numeric>

#include "python/torch/tensors.hpp"

namespace gatherum {
namespace {

// Calls `take(address)` for the first element of each row. A row is a view along the last axis.
template <class Take>
void each_row(const View& view, const Take& take) {
  npy_intp point[NPY_MAXDIMS] = {};
  char* row = view.address;
  for (int axis = 0; axis >= 0;) {
    take(row);
    for (axis = view.rank - 2; axis >= 0; --axis) {
      row += view.strides[axis];
      if (++point[axis] < view.shape[axis]) break;
      row -= view.shape[axis] * view.strides[axis];
      point[axis] = 0;
    }
  }
}

npy_intp width_of(const View& view) { return view.rank == 0 ? 1 : view.shape[view.rank - 1]; }
npy_intp step_of(const View& view) { return view.rank == 0 ? 0 : view.strides[view.rank - 1]; }

template <class T>
T read_as(const char* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

template <class T>
bool write_terms_of(const Terms& terms, T* term) {
  const View& rows = terms.rows;
  const npy_intp width = width_of(rows), step = step_of(rows);
  npy_intp count = 0;
  const auto add = [&](const char* row, T divisor) {
    const char* const factor_address =
        terms.factors.address + (terms.factors.is_present() ? count * terms.factors.strides[0] : 0);
    const T factor = terms.factors.is_present() ? read_as<T>(factor_address) : static_cast<T>(terms.factor);
    for (npy_intp i = 0; i < width; ++i, row += step) *term++ = read_as<T>(row) / divisor * factor;
    ++count;
  };
  if (!terms.update_rows.is_present()) {
    each_row(rows, [&](const char* row) { add(row, 1); });
    return true;
  }
  return each_index(terms.update_rows, [&](npy_intp, int64_t number) {
    if (number < 0 || number >= rows.shape[0]) return false;
    int64_t size = 1;
    if (terms.divisors.is_present())
      size = read_index(terms.divisors, terms.divisors.address + number * terms.divisors.strides[0]);
    add(rows.address + number * rows.strides[0],
        static_cast<T>(static_cast<float>(std::max<int64_t>(size, 1))));
    return true;
  });
}

}  // namespace

int64_t items_of(const View& view) {
  return std::accumulate(view.shape, view.shape + view.rank, int64_t{1}, std::multiplies<int64_t>());
}

bool OperandSource::read(nb::handle object) {
  TensorView tensor;
  if (!is_tensor(object) || !tensor.read(object, layout_)) return false;
  extents_.assign(tensor.shape, tensor.shape + layout_.rank);
  extents_.insert(extents_.end(), tensor.strides, tensor.strides + layout_.rank);
  layout_.shape = extents_.data();
  layout_.strides = extents_.data() + layout_.rank;
  first_ = layout_.address;
  type_ = tensor.type;
  return items_of(layout_) > 0;
}

bool OperandSource::find_tensor(const OverrideKey& call) {
  tensor_ = call.tensor_at(first_, layout_.dtype);
  return tensor_ >= 0;
}

bool OperandSource::find_or_copy(nb::handle operand, const OverrideKey& call) {
  if (!PyTuple_Check(operand.ptr())) return find(operand, call);
  if (!read(PyTuple_GET_ITEM(operand.ptr(), 0)) || layout_.item > kWidestBlock) return false;
  std::memcpy(constant_, first_, static_cast<size_t>(layout_.item));
  return std::all_of(layout_.strides, layout_.strides + layout_.rank,
                     [](npy_intp stride) { return stride == 0; });
}

View OperandSource::view(const OverrideKey& call) const {
  View view = layout_;
  if (is_present()) view.address = tensor_ >= 0 ? call.tensor(tensor_).address : const_cast<char*>(constant_);
  return view;
}

View ComputedOperand::allocate(int rank, int dtype, int64_t item) {
  npy_intp bytes = static_cast<npy_intp>(item);
  for (int axis = rank - 1; axis >= 0; bytes *= shape[axis--]) strides[axis] = bytes;
  memory.reset(new char[static_cast<size_t>(bytes)]);
  return {memory.get(), rank, shape, strides, dtype, item};
}

View tuples_of(const std::vector<View>& components, ComputedOperand& tuples) {
  const View& first = components.front();
  const auto count = static_cast<npy_intp>(components.size());
  std::copy_n(first.shape, first.rank, tuples.shape);
  tuples.shape[first.rank] = count;
  const View view = tuples.allocate(first.rank + 1, static_cast<int>(DType::int64), sizeof(int64_t));
  for (npy_intp i = 0; i < count; ++i) {
    const View& component = components[static_cast<size_t>(i)];
    auto* to = reinterpret_cast<int64_t*>(view.address) + i;
    each_row(component, [&](const char* row) {
      for (npy_intp at = 0; at < width_of(component); ++at, row += step_of(component), to += count)
        *to = read_index(component, row);
    });
  }
  return view;
}

bool expand_segments(Segments segments, const View& bounds, npy_intp items, int64_t* numbers) {
  int64_t number = 0, end = 0;
  const auto end_segment_at = [&](int64_t next) {  // the end of a segment
    if (next < end || next > items) return false;
    std::fill(numbers + end, numbers + next, number++);
    end = next;
    return true;
  };
  const bool is_read = each_index(bounds, [&](npy_intp i, int64_t bound) {
    if (segments == Segments::lengths) return bound <= items && end_segment_at(end + bound);
    return i == 0 ? bound == 0 : end_segment_at(bound);
  });
  if (is_read && segments == Segments::starts && bounds.shape[0] > 0) return end_segment_at(items);
  return is_read && end == items;
}

bool write_terms(const Terms& terms, char* to) {
  return terms.rows.dtype == static_cast<int>(DType::float32)
             ? write_terms_of(terms, reinterpret_cast<float*>(to))
             : write_terms_of(terms, reinterpret_cast<double*>(to));
}

}  // namespace gatherum
