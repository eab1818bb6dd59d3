// A library to preload: the n-th allocation by the core or its binding, directly or in a called function,
// fails once. Built and used by test_failing_allocations.py. For glibc.
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

// Number of frames in which an allocation's caller is searched for in our code.
constexpr int kDepth = 12;

struct Range {
  uintptr_t low, high;
  bool holds(const void* p) const {
    return reinterpret_cast<uintptr_t>(p) >= low && reinterpret_cast<uintptr_t>(p) < high;
  }
};
Range code[8];
int parts = 0;
Range loop;                  // Python's interpreter loop: its allocations are not ours
std::atomic<long> left{-1};  // until one fails; -1: not counting
std::atomic<long> met{0};
thread_local bool inside = false;

bool is_ours(const void* caller) {
  for (int part = 0; part < parts; ++part)
    if (code[part].holds(caller)) return true;
  return false;
}

bool any_is_ours() {
  void* frames[kDepth + 2];  // including those of this library
  inside = true;
  const int n = backtrace(frames, kDepth + 2);
  inside = false;
  int i = 0;
  while (i < n && !is_ours(frames[i]) && !loop.holds(frames[i])) ++i;
  return i < n && is_ours(frames[i]);
}

bool is_counted() { return left.load() >= 0 && !inside; }

// Returns true if this counted allocation is the one that fails.
bool is_next() {
  met.fetch_add(1);
  if (left.load() == 0 || left.fetch_sub(1) != 1) return false;
  errno = ENOMEM;
  return true;
}

bool fails() { return is_counted() && any_is_ours() && is_next(); }

template <class Function>
Function* behind(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int add_code(dl_phdr_info* library, size_t, void*) {
  if (std::strstr(library->dlpi_name, "libgatherum") == nullptr &&
      std::strstr(library->dlpi_name, "gatherum/_core") == nullptr)
    return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& part = library->dlpi_phdr[i];
    const uintptr_t low = library->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0 && parts < 8)
      code[parts++] = {low, low + part.p_memsz};
  }
  return 0;
}

}  // namespace

extern "C" {

// Finds the code of the loaded libraries. Returns the number of code segments.
int find_code() {
  void* frames[1];
  backtrace(frames, 1);  // loads its library now
  dl_iterate_phdr(add_code, nullptr);
  Dl_info info;
  ElfW(Sym)* symbol = nullptr;
  void* const start = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
  if (start != nullptr && dladdr1(start, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0)
    loop = {reinterpret_cast<uintptr_t>(start), reinterpret_cast<uintptr_t>(start) + symbol->st_size};
  return parts;
}
// Lets the n-th allocation from now on fail; 0: none, -1: no counting. Returns the number of allocations
// since the previous call.
long fail_at(long n) {
  const long before = met.exchange(0);
  left.store(n);
  return before;
}

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* malloc(size_t n) { return fails() ? nullptr : __libc_malloc(n); }
void* calloc(size_t n, size_t item) { return fails() ? nullptr : __libc_calloc(n, item); }
void* realloc(void* p, size_t n) { return fails() ? nullptr : __libc_realloc(p, n); }

void* mmap(void* at, size_t n, int protection, int flags, int file, off_t offset) {
  static auto* const real = behind<decltype(mmap)>("mmap");
  // Python also maps memory, and does not check for every failure.
  const bool none = is_counted() && is_ours(__builtin_return_address(0)) && is_next();
  return none ? MAP_FAILED : real(at, n, protection, flags, file, offset);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*), void* given) {
  static auto* const real = behind<decltype(pthread_create)>("pthread_create");
  return fails() ? EAGAIN : real(thread, how, run, given);
}
}
