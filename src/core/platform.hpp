// Everything that differs between compilers, processors and systems: the only #ifdefs of the core.
#pragma once

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) || defined(_M_X64)
#define GATHERUM_X86 1
#include <immintrin.h>
#else
#define GATHERUM_X86 0
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#include <malloc.h>
#define GATHERUM_INLINE __forceinline
#define GATHERUM_NOINLINE __declspec(noinline)
#define GATHERUM_RESTRICT __restrict
#else
#define GATHERUM_INLINE inline __attribute__((always_inline))
#define GATHERUM_NOINLINE __attribute__((noinline))
#define GATHERUM_RESTRICT __restrict__
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#if defined(__unix__) || defined(__APPLE__)
#define GATHERUM_POSIX 1
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#endif
#else
#define GATHERUM_POSIX 0
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>
// behind it, whose names they need
#include <io.h>
#include <malloc.h>
#include <psapi.h>
// macros of 16-bit days
#undef near
#undef far
#endif
#endif

namespace gatherum {

inline constexpr int64_t kCacheLine = 64;

// An empty instruction that the compiler takes for a side effect: it keeps the calls of a function with it.
GATHERUM_INLINE void keep() {
#if !defined(_MSC_VER) || defined(__clang__)
  asm volatile("");
#endif
}

// Hints that the line at `p` will be read (or written) soon. Never faults, whatever `p` is.
// A function that does nothing else must keep(): GCC 12 finds no effect in it and leaves out its calls (rows
// without their prefetch: three times as slow).
GATHERUM_INLINE void prefetch(const void* p) {
#if defined(_MSC_VER) && !defined(__clang__)
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
#else
  __builtin_prefetch(p, 0, 3);
#endif
}

// The same into the second cache: for more lines than the first one holds.
GATHERUM_INLINE void prefetch_second(const void* p) {
#if defined(_MSC_VER) && !defined(__clang__)
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
#else
  __builtin_prefetch(p, 0, 2);
#endif
}

GATHERUM_INLINE void prefetch_write(const void* p) {
#if defined(_MSC_VER) && !defined(__clang__)
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
#else
  __builtin_prefetch(p, 1, 3);
#endif
}

// Fetches every line that a run of bytes touches: one more than its size says where it begins inside a
// line, as runs of NumPy's memory do. The run may lie anywhere, even outside of what it belongs to, so
// lines are counted: the end of a run may have come round to address 0.
template <bool ForWriting = false>
GATHERUM_INLINE void prefetch_run(const char* base, int64_t offset, int64_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(offset);
  const uintptr_t inside = begin % kCacheLine;
  for (int64_t r = 0; r < bytes + static_cast<int64_t>(inside); r += kCacheLine) {
    const auto* line = reinterpret_cast<const void*>(begin - inside + static_cast<uintptr_t>(r));
    ForWriting ? prefetch_write(line) : prefetch(line);
  }
  keep();
}

// Copies 4, 8 or 16 bytes past the caches, to an address that is a multiple of them (a plain copy where that
// cannot be said). Lines are put together from what follows one another.
inline constexpr int64_t kStreamed = 16;
template <int W>
GATHERUM_INLINE void stream_item(char* to, const char* from) {
  static_assert(W == 4 || W == 8 || W == kStreamed);
#if GATHERUM_X86
  if constexpr (W == kStreamed) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  } else if constexpr (W == 8) {
    long long item;
    std::memcpy(&item, from, W);
    _mm_stream_si64(reinterpret_cast<long long*>(to), item);
  } else {
    int item;
    std::memcpy(&item, from, W);
    _mm_stream_si32(reinterpret_cast<int*>(to), item);
  }
#else
  std::memcpy(to, from, W);
#endif
}

// The same for one aligned cache line.
GATHERUM_INLINE void stream_line(char* to, const char* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX__)
  for (int i = 0; i < 2; ++i)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + i,
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + i));
#elif GATHERUM_X86
  for (int i = 0; i < 4; ++i) stream_item<kStreamed>(to + i * kStreamed, from + i * kStreamed);
#else
  std::memcpy(to, from, kCacheLine);
#endif
}

// Orders streamed lines before everything that follows.
GATHERUM_INLINE void stream_fence() {
#if GATHERUM_X86
  _mm_sfence();
#endif
}

// In front of loops so short that counting their turns is a third of the work (items in cache: -0.3 ns).
#define GATHERUM_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define GATHERUM_UNROLL(n) GATHERUM_PRAGMA(unroll n)
#elif defined(__GNUC__)
#define GATHERUM_UNROLL(n) GATHERUM_PRAGMA(GCC unroll n)
#else
#define GATHERUM_UNROLL(n)
#endif

// A compiler barrier for memory at `p`: values copied to local memory before it are read from there after it,
// never a second time from where they came.
GATHERUM_INLINE void compiler_barrier(const void* p) {
#if defined(_MSC_VER) && !defined(__clang__)
  static_cast<void>(p);
  _ReadWriteBarrier();
#else
  asm volatile("" : : "r"(p) : "memory");
#endif
}

// The same value, whose origin the compiler no longer knows: it cannot load it a second time, nor fuse a
// complex product with the sum that follows, as GCC 12 does even under -ffp-contract=off.
template <class T>
GATHERUM_INLINE T opaque(T value) {
#if GATHERUM_X86 && !(defined(_MSC_VER) && !defined(__clang__))
  asm("" : "+x"(value));
#elif defined(__aarch64__) && !(defined(_MSC_VER) && !defined(__clang__))
  asm("" : "+w"(value));
#endif
  return value;
}

// Sets rounding to nearest with subnormals kept for one scope: another library of this process may
// have set flush-to-zero on the calling thread, and a sum must not depend on that.
class FloatMode {
 public:
#if GATHERUM_X86
  FloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
  ~FloatMode() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#elif defined(__aarch64__)
  FloatMode() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
  }
  ~FloatMode() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

 private:
  uint64_t saved_ = 0;
#else
  FloatMode() {}
#endif
 public:
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;
};

// Whether the processor has an instruction-set level: 3 and 4 are x86-64-v3 and v4, 0 the compiler's default.
inline bool processor_has(int level) {
#if GATHERUM_X86 && defined(__GNUC__) && !(defined(__clang__) && __clang_major__ < 18)
  __builtin_cpu_init();
  if (level == 3) return __builtin_cpu_supports("x86-64-v3");
  if (level == 4) return __builtin_cpu_supports("x86-64-v4");
#endif
  return level == 0;
}

// The number of processors that this process may use (affinity masks and cpusets counted).
inline int usable_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
#if GATHERUM_POSIX
  const auto n = sysconf(_SC_NPROCESSORS_ONLN);
#elif defined(_WIN32)
  const auto n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
#else
  const int n = 1;
#endif
  return n > 0 ? static_cast<int>(n) : 1;
}

// In a build with AddressSanitizer: nobody may touch these bytes, or may again.
inline void forbid([[maybe_unused]] void* p, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(p, bytes);
#endif
}

inline void permit([[maybe_unused]] void* p, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(p, bytes);
#endif
}

// Calls `child` in every child process right after fork(); does nothing where there is no fork.
inline void after_fork_in_child(void (*child)()) {
#if GATHERUM_POSIX
  pthread_atfork(nullptr, nullptr, child);
#else
  static_cast<void>(child);
#endif
}

inline constexpr size_t kHugePage = size_t{2} << 20;

// Memory whose address and size are multiples of kHugePage, backed by huge pages where the system
// gives them; nullptr when there is none.
inline void* map_huge(size_t bytes) {
#if GATHERUM_POSIX
  size_t padded = bytes + kHugePage;
  void* raw = mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto start = reinterpret_cast<uintptr_t>(raw);
  auto aligned = (start + kHugePage - 1) & ~(uintptr_t{kHugePage} - 1);
  if (aligned != start) munmap(raw, aligned - start);
  size_t tail = start + padded - (aligned + bytes);
  if (tail != 0) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
#if defined(MADV_HUGEPAGE)
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
#endif
  return reinterpret_cast<void*>(aligned);
#elif defined(_WIN32)
  return _aligned_malloc(bytes, kHugePage);
#else
  return std::aligned_alloc(kHugePage, bytes);
#endif
}

// Asks the system to back large memory, which others have allocated, by huge pages where nothing has been
// written yet. From 4 MiB on the first touch of many small ones costs more than the question.
inline void prefer_huge([[maybe_unused]] void* p, [[maybe_unused]] size_t bytes) {
#if GATHERUM_POSIX && defined(MADV_HUGEPAGE)
  if (bytes < 2 * kHugePage) return;
  const auto start = reinterpret_cast<uintptr_t>(p);
  const uintptr_t mask = ~(uintptr_t{kHugePage} - 1);
  const uintptr_t first = (start + kHugePage - 1) & mask, end = (start + bytes) & mask;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

// Says that nobody needs what the pages hold: the system takes them where it wants memory, and tools count
// them as free to take. What is written later is kept. Nothing where that cannot be said.
inline void offer_pages([[maybe_unused]] void* p, [[maybe_unused]] size_t bytes) {
#if GATHERUM_POSIX && defined(MADV_FREE)
  const int before = errno;
  madvise(p, bytes, MADV_FREE);
  errno = before;
#endif
}

inline void unmap_huge(void* p, size_t bytes) {
#if GATHERUM_POSIX
  munmap(p, bytes);
#elif defined(_WIN32)
  static_cast<void>(bytes);
  _aligned_free(p);
#else
  static_cast<void>(bytes);
  std::free(p);
#endif
}

#if defined(_WIN32)
// How Windows says what errno says.
inline int last_error() {
  switch (GetLastError()) {
    case ERROR_ACCESS_DENIED:
    case ERROR_LOCK_VIOLATION:
      return EACCES;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return ENOSPC;
    case ERROR_INVALID_HANDLE:
      return EBADF;
    default:
      return EIO;
  }
}

// Calls ReadFile or WriteFile at a position: how many bytes they moved, or -1. Other threads may do the same
// to the same file; its own position moves, and nobody here uses that.
template <class Transfer, class Byte>
int64_t transfer_at(Transfer transfer, int file, Byte* p, int64_t bytes, int64_t offset, int& error) {
  constexpr int64_t kMost = int64_t{1} << 30;
  error = file < 0 ? EBADF : 0;  // the C library ends a process that asks for the handle of no file
  if (error != 0) return -1;
  OVERLAPPED at = {};
  at.Offset = static_cast<DWORD>(static_cast<uint64_t>(offset));
  at.OffsetHigh = static_cast<DWORD>(static_cast<uint64_t>(offset) >> 32);
  const auto handle = reinterpret_cast<HANDLE>(_get_osfhandle(file));
  DWORD moved = 0;
  if (transfer(handle, p, static_cast<DWORD>(bytes < kMost ? bytes : kMost), &moved, &at)) return moved;
  if (GetLastError() == ERROR_HANDLE_EOF) return 0;
  error = last_error();
  return -1;
}
#endif

// Reads up to `bytes` of an open file from `offset` on: how many came, 0 behind the file's end, or -1
// with the reason in `error`.
inline int64_t read_at(int file, char* to, int64_t bytes, int64_t offset, int& error) {
#if GATHERUM_POSIX
  ssize_t got = -1;
  do {
    got = pread(file, to, static_cast<size_t>(bytes), static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  error = got < 0 ? errno : 0;
  return got;
#elif defined(_WIN32)
  return transfer_at(ReadFile, file, to, bytes, offset, error);
#else
  static_cast<void>(file), static_cast<void>(to), static_cast<void>(bytes), static_cast<void>(offset);
  error = ENOSYS;
  return -1;
#endif
}

// Writes up to `bytes` at `offset` of an open file: how many were taken, or -1 with the reason in `error`.
inline int64_t write_at(int file, const char* from, int64_t bytes, int64_t offset, int& error) {
#if GATHERUM_POSIX
  ssize_t put = -1;
  do {
    put = pwrite(file, from, static_cast<size_t>(bytes), static_cast<off_t>(offset));
  } while (put < 0 && errno == EINTR);
  error = put < 0 ? errno : 0;
  return put;
#elif defined(_WIN32)
  return transfer_at(WriteFile, file, from, bytes, offset, error);
#else
  static_cast<void>(file), static_cast<void>(from), static_cast<void>(bytes), static_cast<void>(offset);
  error = ENOSYS;
  return -1;
#endif
}

// The most memory that this process has had in use so far, in bytes; 0 where nobody knows.
inline int64_t peak_memory() {
#if GATHERUM_POSIX
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
#if defined(__APPLE__)
  constexpr int64_t kUnit = 1;
#else
  constexpr int64_t kUnit = 1024;
#endif
  return static_cast<int64_t>(used.ru_maxrss) * kUnit;
#elif defined(_WIN32)
  PROCESS_MEMORY_COUNTERS used = {};
  K32GetProcessMemoryInfo(GetCurrentProcess(), &used, sizeof used);
  return static_cast<int64_t>(used.PeakWorkingSetSize);
#else
  return 0;
#endif
}

// Like read_at, but what was not in the system's cache before does not stay there: filling memory with
// pages that nobody wants again costs as much as the read. Negative where that cannot be had: read_at then
// says what is wrong, if anything is.
inline int64_t read_once_at(int file, char* to, int64_t bytes, int64_t offset) {
#if defined(__linux__) && defined(SYS_preadv2)
  constexpr int kDontCache = 0x80;  // RWF_DONTCACHE, since Linux 6.14
  const iovec part{to, static_cast<size_t>(bytes)};
  const auto low = static_cast<unsigned long>(offset);
  const auto high = static_cast<unsigned long>(static_cast<uint64_t>(offset) >> 32);
  int64_t got = 0;
  do {
    got = syscall(SYS_preadv2, file, &part, 1UL, low, high, kDontCache);
  } while (got < 0 && errno == EINTR);
  return got;
#else
  static_cast<void>(file), static_cast<void>(to), static_cast<void>(bytes), static_cast<void>(offset);
  return -1;
#endif
}

// Says whether scattered pages of a file are going to be read: the system then reads no others.
inline void expect_scattered_reads(int file, bool scattered) {
#if defined(POSIX_FADV_RANDOM)
  static_cast<void>(posix_fadvise(file, 0, 0, scattered ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL));
#elif defined(F_RDAHEAD)
  static_cast<void>(fcntl(file, F_RDAHEAD, scattered ? 0 : 1));
#else
  static_cast<void>(file), static_cast<void>(scattered);
#endif
}

// Starts to bring written bytes to the disk, without waiting for them (nothing where that cannot be said).
inline void start_writing(int file, int64_t offset, int64_t bytes) {
#if defined(SYNC_FILE_RANGE_WRITE)
  static_cast<void>(sync_file_range(file, offset, bytes, SYNC_FILE_RANGE_WRITE));
#else
  static_cast<void>(file), static_cast<void>(offset), static_cast<void>(bytes);
#endif
}

}  // namespace gatherum
