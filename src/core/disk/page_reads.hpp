// Reads whole pages into aligned memory, for a file that was opened with O_DIRECT.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "platform/system.hpp"

namespace gatherum {

constexpr int64_t kPage = 4096;
constexpr int64_t kLongestPageRead = int64_t{1} << 20;

class PageReads {
 public:
  // Allocates memory for the pages that contain the bytes [begin, end) of a file, but at most
  // kLongestPageRead bytes. Returns false if the allocation fails.
  bool reserve(int64_t begin, int64_t end) {
    const int64_t wanted = std::min(pages_of(begin, end), kLongestPageRead);
    if (capacity_ >= wanted) return true;
    capacity_ = 0;
    memory_.reset(new (std::nothrow) char[static_cast<size_t>(wanted + kPage)]);
    if (memory_ == nullptr) return false;
    const auto beyond = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory_.get()) % kPage);
    first_ = memory_.get() + (kPage - beyond) % kPage;
    capacity_ = wanted;
    return true;
  }

  // Reads up to `bytes` bytes; like read_at, it may read fewer. Returns the number of bytes copied to `to`, 0
  // at the end of the file, or a negative number with an error.
  int64_t read(int file, char* to, int64_t bytes, int64_t offset, int& error) {
    const int64_t begin = offset / kPage * kPage, end = offset + bytes;
    const int64_t got = read_at(file, first_, std::min(pages_of(offset, end), capacity_), begin, error);
    if (got < 0) return got;
    bytes_read_ += got;
    const int64_t copied = std::min(begin + got, end) - offset;
    if (copied <= 0) return 0;
    std::memcpy(to, first_ + (offset - begin), static_cast<size_t>(copied));
    return copied;
  }

  // Returns the number of bytes read since the last call.
  int64_t take_bytes_read() { return std::exchange(bytes_read_, 0); }

 private:
  static int64_t pages_of(int64_t begin, int64_t end) {
    return ((end + kPage - 1) / kPage - begin / kPage) * kPage;
  }

  std::unique_ptr<char[]> memory_;
  char* first_ = nullptr;  // aligned to a page
  int64_t capacity_ = 0, bytes_read_ = 0;
};

}  // namespace gatherum
