#include "engine/owned_memory.hpp"

#include <algorithm>
#include <cstdlib>

#include "engine/memory.hpp"

namespace gatherum {

OwnedMemory::OwnedMemory(int64_t bytes, std::nothrow_t)
    : start_(static_cast<char*>(bytes >= kLargeResult
                                    ? allocate_large(static_cast<size_t>(bytes))
                                    : std::malloc(static_cast<size_t>(std::max<int64_t>(bytes, 1))))),
      bytes_(bytes) {}

OwnedMemory::OwnedMemory(int64_t bytes) : OwnedMemory(bytes, std::nothrow) {
  if (start_ == nullptr) throw std::bad_alloc();
}

OwnedMemory::~OwnedMemory() {
  if (start_ != nullptr && !(bytes_ >= kLargeResult && free_large(start_))) std::free(start_);
}

}  // namespace gatherum
