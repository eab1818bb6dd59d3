// The indices of torch's `x[i, :, j] = y` as the tuples of a scatter.
#pragma once

#include <algorithm>
#include <memory>

#include "python/torch/index_reads.hpp"
#include "python/torch/tensor_view.hpp"

namespace gatherum {

class IndexTuples {
 public:
  // Returns the storage of the index of the next indexed dimension, or null if there are too many. `last`
  // returns its view.
  TensorView* add(int dim) {
    if (count_ == kMost) return nullptr;
    dims_[count_] = dim;
    return &tensors_[count_++];
  }
  View& last() { return views_[count_ - 1]; }

  // Broadcasts the indices. Returns false if they are not integers, do not broadcast, are empty or are many.
  bool broadcast(const View& data) {
    if (dims_[count_ - 1] >= data.rank) return false;
    for (int i = 0; i < count_; ++i) {
      if (!is_index(views_[i])) return false;
      rank_ = std::max(rank_, views_[i].rank);
    }
    if (rank_ >= NPY_MAXDIMS) return false;  // the tuples have one more dimension
    items_ = count_;
    for (int axis = 0; axis < rank_; ++axis) {
      npy_intp& extent = shape_[axis] = 1;
      for (int i = 0; i < count_; ++i) {
        const npy_intp own = extent_of(views_[i], axis, rank_);
        if (own != 1 && extent != 1 && own != extent) return false;
        if (own != 1) extent = own;
      }
      items_ *= extent;
      if (extent == 0 || items_ > kMany) return false;
    }
    return true;
  }

  // Writes the tuples, and makes `view` their view. Their components are in the order of the dimensions.
  std::unique_ptr<int64_t[]> write(TensorView& tensor, View& view) const {
    std::unique_ptr<int64_t[]> tuples(new int64_t[static_cast<size_t>(items_)]);
    for (int i = 0; i < count_; ++i) {
      if (views_[i].dtype == static_cast<int>(DType::int64))
        write_component<int64_t>(i, tuples.get());
      else
        write_component<int32_t>(i, tuples.get());
    }
    std::copy_n(shape_, rank_, tensor.shape);
    tensor.shape[rank_] = count_;
    npy_intp stride = sizeof(int64_t);
    for (int axis = rank_; axis >= 0; stride *= tensor.shape[axis--]) tensor.strides[axis] = stride;
    view = {reinterpret_cast<char*>(tuples.get()), rank_ + 1,      tensor.shape, tensor.strides,
            static_cast<int>(DType::int64),        sizeof(int64_t)};
    return tuples;
  }

  // Moves the indexed dimensions of the data to the front. `data` is the view of `tensor`.
  void move_to_front(TensorView& tensor, const View& data) const {
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    int front = 0, behind = count_;
    for (int dim = 0; dim < data.rank; ++dim) {
      const int to = is_indexed(dim) ? front++ : behind++;
      shape[to] = tensor.shape[dim];
      strides[to] = tensor.strides[dim];
    }
    std::copy_n(shape, data.rank, tensor.shape);
    std::copy_n(strides, data.rank, tensor.strides);
  }

  // Broadcasts the updates, and moves the dimensions of the indices to the front. `data` has its indexed
  // dimensions in front. Returns false if the updates do not broadcast, or are empty.
  bool broadcast_updates(TensorView& tensor, View& updates, const View& data) const {
    const bool adjacent = dims_[count_ - 1] - dims_[0] == count_ - 1;
    const int before = adjacent ? dims_[0] : 0;  // dimensions that torch leaves in front of the indices'
    const int rank = rank_ + data.rank - count_;
    if (rank > NPY_MAXDIMS || updates.rank > rank) return false;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    for (int axis = 0; axis < rank; ++axis) {
      const int to = axis < before ? rank_ + axis : axis < before + rank_ ? axis - before : axis;
      shape[to] = to < rank_ ? shape_[to] : data.shape[count_ + to - rank_];
      const npy_intp own = extent_of(updates, axis, rank);
      if (shape[to] == 0 || (own != 1 && own != shape[to])) return false;
      strides[to] = own == 1 ? 0 : updates.strides[axis - (rank - updates.rank)];
    }
    std::copy_n(shape, rank, tensor.shape);
    std::copy_n(strides, rank, tensor.strides);
    updates.rank = rank;
    return true;
  }

 private:
  static constexpr int kMost = 8;
  static constexpr int64_t kMany = int64_t{1} << 16;  // torch stacks more indices with several threads

  // Returns the size of a view along an axis of a shape to which it is broadcast.
  static npy_intp extent_of(const View& view, int axis, int rank) {
    const int own = axis - (rank - view.rank);
    return own < 0 ? 1 : view.shape[own];
  }

  bool is_indexed(int dim) const { return std::find(dims_, dims_ + count_, dim) != dims_ + count_; }

  // Writes a component of all tuples.
  template <class T>
  void write_component(int component, int64_t* tuples) const {
    const View& view = views_[component];
    const int last = rank_ - 1;
    const npy_intp extent = rank_ == 0 ? 1 : shape_[last];
    npy_intp steps[NPY_MAXDIMS] = {}, point[NPY_MAXDIMS] = {};
    for (int axis = 0; axis < rank_; ++axis)
      if (extent_of(view, axis, rank_) != 1) steps[axis] = view.strides[axis - (rank_ - view.rank)];
    for (int64_t to = component; to < items_;) {
      const char* address = view.address;
      for (int axis = 0; axis < last; ++axis) address += point[axis] * steps[axis];
      for (npy_intp i = 0; i < extent; ++i, to += count_, address += steps[last < 0 ? 0 : last]) {
        T value;
        std::memcpy(&value, address, sizeof value);
        tuples[to] = value;
      }
      for (int axis = last - 1; axis >= 0 && ++point[axis] == shape_[axis]; --axis) point[axis] = 0;
    }
  }

  TensorView tensors_[kMost];
  View views_[kMost];
  int dims_[kMost] = {}, count_ = 0, rank_ = 0;
  npy_intp shape_[NPY_MAXDIMS];
  int64_t items_ = 0;
};

}  // namespace gatherum
