// Allocates the memory of large results in huge pages, and keeps freed blocks in a bounded cache. The first
// access to fresh pages takes several times as long as a gather into them. Cached pages are offered to the
// system, which reclaims them if it needs memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gatherum {

// Results of at least this many bytes are allocated here. NumPy's allocator is used for smaller results.
inline constexpr int64_t kLargeResult = int64_t{2} << 20;

// NumPy calls the next three functions from C, so they must not throw. A block that cannot be registered is
// not allocated, or not cached.
void* allocate_large(size_t bytes) noexcept;
// Returns false if `p` was not allocated here.
bool free_large(void* p) noexcept;
// Makes the first `bytes` bytes at `p` usable if the block is large enough. Returns the size of the block, or
// 0 if `p` was not allocated here.
size_t resize_large(void* p, size_t bytes) noexcept;

void set_cache_limit(size_t bytes);
size_t get_cache_limit();
size_t cached_bytes();
void clear_cache();

}  // namespace gatherum
