// Memory that is freed at the end of a scope. Large blocks use huge pages (memory.hpp).
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "model/nest.hpp"
#include "platform/processor.hpp"

namespace gatherum {

// A block, with its size.
class OwnedMemory {
 public:
  OwnedMemory() = default;
  explicit OwnedMemory(int64_t bytes);         // throws std::bad_alloc
  OwnedMemory(int64_t bytes, std::nothrow_t);  // null if there is not enough memory
  ~OwnedMemory();
  OwnedMemory(OwnedMemory&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(other.bytes_) {}
  OwnedMemory& operator=(OwnedMemory&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  OwnedMemory(const OwnedMemory&) = delete;
  OwnedMemory& operator=(const OwnedMemory&) = delete;
  char* get() const { return start_; }
  int64_t bytes() const { return start_ == nullptr ? 0 : bytes_; }

 private:
  char* start_ = nullptr;
  int64_t bytes_ = 0;
};

// Scratch memory of `bytes` bytes for each worker, or null if the allocation failed.
class WorkerScratch {
 public:
  WorkerScratch(int64_t bytes, int workers)
      : bytes_per_worker_((bytes + kCacheLine - 1) / kCacheLine * kCacheLine + kCacheLine),
        memory_(limited_product(bytes_per_worker_, workers), std::nothrow) {}
  explicit operator bool() const { return memory_.get() != nullptr; }
  char* memory_of(int worker) const {
    char* const start = memory_.get() + worker * bytes_per_worker_;
    return start + (-reinterpret_cast<uintptr_t>(start) % kCacheLine);
  }

 private:
  int64_t bytes_per_worker_;
  OwnedMemory memory_;
};

}  // namespace gatherum
