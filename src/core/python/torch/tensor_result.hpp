// Results of calls on tensors, in memory that the core allocates.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <new>

#include "include/gatherum.h"
#include "python/numpy/arrays.hpp"
#include "python/programs.hpp"
#include "python/torch/dlpack.hpp"

namespace gatherum {

// A tensor in memory that the core allocates. The memory is freed when the last tensor that uses it is freed,
// on any thread. The sizes and strides of the dimensions follow the structure, and then the elements; large
// results have separate huge pages. (Torch's allocator would create two tensors, and take 0.4 us more per
// call.)
struct OwnResult {
  dlpack::ManagedTensor managed;
  bool large;
};

inline void release_own(dlpack::ManagedTensor* managed) {
  auto* result = static_cast<OwnResult*>(managed->context);
  if (result->large) gatherum_free(managed->tensor.data);
  std::free(result);
}

class TensorResult {
 public:
  TensorResult() = default;
  TensorResult(const TensorResult&) = delete;
  TensorResult& operator=(const TensorResult&) = delete;
  ~TensorResult() {
    if (managed_ != nullptr) managed_->deleter(managed_);
  }

  void* allocate(const Shape& of, dlpack::DataType type, int64_t item) {
    int64_t bytes = item;
    for (int i = 0; i < of.rank; ++i) bytes *= of.extent[i];
    const bool large = bytes >= kLargeResult;
    const size_t sizes = 2 * static_cast<size_t>(of.rank) * sizeof(int64_t);
    const size_t elements = large ? 0 : static_cast<size_t>(bytes) + kCacheLine;
    auto* const memory = static_cast<char*>(std::malloc(sizeof(OwnResult) + sizes + elements));
    if (memory == nullptr) throw std::bad_alloc();
    auto* const shape = reinterpret_cast<int64_t*>(memory + sizeof(OwnResult));
    int64_t stride = 1;
    for (int i = of.rank - 1; i >= 0; --i) {
      shape[i] = of.extent[i];
      shape[of.rank + i] = stride;
      stride *= std::max<int64_t>(of.extent[i], 1);  // as torch
    }
    char* const behind = memory + sizeof(OwnResult) + sizes;
    void* at = behind + (-reinterpret_cast<uintptr_t>(behind) % kCacheLine);
    if (large) at = gatherum_allocate(static_cast<size_t>(bytes));
    if (at == nullptr) {
      std::free(memory);
      throw std::bad_alloc();
    }
    const dlpack::Tensor tensor = {at, {dlpack::kCpu, 0}, of.rank, type, shape, shape + of.rank, 0};
    auto* const result = new (memory) OwnResult{{}, large};
    result->managed = {{dlpack::kMajor, 0}, result, release_own, 0, tensor};
    managed_ = &result->managed;
    return at;
  }

  nb::object to_tensor(const dlpack::ExchangeApi& api) {
    void* object = nullptr;
    dlpack::ManagedTensor* managed = managed_;
    managed_ = nullptr;
    if (api.to_object(managed, &object) != 0) nb::raise_python_error();
    return nb::steal(static_cast<PyObject*>(object));
  }

 private:
  dlpack::ManagedTensor* managed_ = nullptr;
};

}  // namespace gatherum
