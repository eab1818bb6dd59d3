#include "engine/memory.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "platform/system.hpp"

namespace gatherum {
namespace {

struct MemoryBlock {
  void* start;
  size_t bytes;
};

struct Memory {
  std::mutex mutex;
  std::unordered_map<void*, size_t> used;
  std::vector<MemoryBlock> cached;  // oldest first
  size_t cached_bytes = 0;
  size_t limit = 0;
};

// Never destroyed, because arrays may be freed after the static objects of this library. Stored statically,
// so it needs no allocation.
Memory& memory() {
  alignas(Memory) static std::byte place[sizeof(Memory)];
  static auto* m = new (place) Memory;
  return *m;
}

#if GATHERUM_POSIX
// If another thread holds the lock when the process forks, the lock must not stay locked in the child.
[[maybe_unused]] const bool fork_handled =
    (pthread_atfork([] { memory().mutex.lock(); }, [] { memory().mutex.unlock(); },
                    [] { memory().mutex.unlock(); }),
     true);
#endif

// Removes and returns the smallest cached block that fits without wasting a quarter of itself.
void* take_cached(Memory& m, size_t bytes, size_t& got) {
  auto best = m.cached.end();
  for (auto it = m.cached.begin(); it != m.cached.end(); ++it)
    if (it->bytes >= bytes && it->bytes - bytes <= bytes / 4 &&
        (best == m.cached.end() || it->bytes < best->bytes))
      best = it;
  if (best == m.cached.end()) return nullptr;
  void* p = best->start;
  got = best->bytes;
  m.cached_bytes -= got;
  m.cached.erase(best);
  return p;
}

void return_to_system(const MemoryBlock& block) {
  unpoison_memory(block.start, block.bytes);
  unmap_huge(block.start, block.bytes);
}

// Returns the oldest blocks to the system until at most `limit` bytes are cached.
void shrink(Memory& m, size_t limit) {
  size_t kept = 0;
  while (m.cached_bytes > limit) {
    const MemoryBlock block = m.cached[kept++];
    m.cached_bytes -= block.bytes;
    return_to_system(block);
  }
  m.cached.erase(m.cached.begin(), m.cached.begin() + static_cast<std::ptrdiff_t>(kept));
}

// Forbids access to the bytes of a block after those that were requested.
void fence(void* p, size_t bytes, size_t rounded) {
  unpoison_memory(p, bytes);
  poison_memory(static_cast<char*>(p) + bytes, rounded - bytes);
}

}  // namespace

void* allocate_large(size_t bytes) noexcept {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  if (bytes > SIZE_MAX - 2 * kHugePage) return nullptr;
  size_t rounded = (bytes + kHugePage - 1) & ~(kHugePage - 1);
  void* p = take_cached(m, rounded, rounded);
  if (p == nullptr) p = map_huge(rounded);
  if (p == nullptr && m.cached_bytes > 0) {
    shrink(m, 0);
    p = map_huge(rounded);
  }
  if (p == nullptr) return nullptr;
  try {
    m.used.emplace(p, rounded);
  } catch (const std::bad_alloc&) {  // the block could not be registered
    return_to_system({p, rounded});
    return nullptr;
  }
  fence(p, bytes, rounded);
  return p;
}

bool free_large(void* p) noexcept {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  const auto it = m.used.find(p);
  if (it == m.used.end()) return false;
  const MemoryBlock block{p, it->second};
  m.used.erase(it);
  if (block.bytes > m.limit) return return_to_system(block), true;
  try {
    m.cached.push_back(block);
  } catch (const std::bad_alloc&) {  // the block could not be registered as reusable
    return_to_system(block);
    return true;
  }
  m.cached_bytes += block.bytes;
  offer_pages(p, block.bytes);
  poison_memory(p, block.bytes);
  shrink(m, m.limit);
  return true;
}

size_t resize_large(void* p, size_t bytes) noexcept {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  const auto it = m.used.find(p);
  if (it == m.used.end()) return 0;
  fence(p, std::min(bytes, it->second), it->second);
  return it->second;
}

void set_cache_limit(size_t bytes) {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  m.limit = bytes;
  shrink(m, bytes);
}

size_t get_cache_limit() {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  return m.limit;
}

size_t cached_bytes() {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  return m.cached_bytes;
}

void clear_cache() {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  shrink(m, 0);
}

}  // namespace gatherum
