// Memory of large results: huge pages, and a bounded cache of freed blocks, because the first touch
// of fresh pages costs several times what a gather into them does. Cached pages are offered to the system,
// which takes them where it wants memory.
#pragma once

#include <cstddef>

namespace gatherum {

// Results of at least this many bytes come from here; smaller ones from NumPy's own allocator.
inline constexpr size_t kLargeResult = size_t{2} << 20;

// NumPy calls these three from C, where no exception may go: what cannot be noted is not had, or not kept.
void* allocate_large(size_t bytes) noexcept;
// Returns false when `p` was not allocated here.
bool free_large(void* p) noexcept;
// Makes the first `bytes` at `p` usable if there are so many. Returns how many there are at the most, 0
// when `p` was not allocated here.
size_t resize_large(void* p, size_t bytes) noexcept;

void set_cache_limit(size_t bytes);
size_t get_cache_limit();
size_t cached_bytes();
void clear_cache();

}  // namespace gatherum
