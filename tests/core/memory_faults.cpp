// Tests memory.cpp when the allocation of its records fails: nothing is thrown, leaked or kept twice. Built
// and run by test_memory_results.py.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/memory.hpp"

namespace {
bool refuses = false;

void* allocate(std::size_t bytes) {
  if (refuses) throw std::bad_alloc();
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  std::exit(1);
}

// Returns this process's mapped memory, in pages.
long mapped_pages() {
  long pages = -1;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = -1;
    std::fclose(file);
  }
  return pages;
}
}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

int main() {
  using namespace gatherum;
  constexpr size_t kBytes = size_t{256} << 20;
  set_cache_limit(size_t{1} << 30);
  mapped_pages();  // the first call allocates
  const long before = mapped_pages();

  refuses = true;
  void* none = allocate_large(kBytes);
  refuses = false;
  expect(none == nullptr, "no block without a note of it");
  expect(mapped_pages() == before, "a block without a note has gone back");

  char* block = static_cast<char*>(allocate_large(kBytes));
  expect(block != nullptr, "a block");
  std::memset(block, 1, 4096);
  refuses = true;
  const bool ours = free_large(block);
  refuses = false;
  expect(ours, "a block that cannot be kept is still known");
  expect(cached_bytes() == 0, "a block that cannot be kept is not");
  expect(mapped_pages() == before, "a block that cannot be kept has gone back");
  expect(!free_large(block), "and is forgotten");

  block = static_cast<char*>(allocate_large(kBytes));
  expect(free_large(block) && cached_bytes() == kBytes, "a block is kept where there is room for the note");
  refuses = true;
  none = allocate_large(kBytes);
  refuses = false;
  expect(none == nullptr && cached_bytes() == 0 && mapped_pages() == before, "also where it was kept before");
  std::puts("fine");
}
