// Functions that differ between operating systems: usable processors, forks, memory and files. processor.hpp
// contains the functions that differ between compilers and processors.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#if defined(__unix__) || defined(__APPLE__)
#define GATHERUM_POSIX 1
#include <dlfcn.h>
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
#elif defined(_WIN32)
#define GATHERUM_POSIX 0
#define WIN32_LEAN_AND_MEAN
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>
// after windows.h, whose names they need
#include <io.h>
#include <malloc.h>
#include <psapi.h>
// macros from 16-bit Windows
#undef near
#undef far
#else
#error "neither POSIX nor Windows"
#endif

namespace gatherum {

// Loads a shared library by its name, for the rest of the process. Returns null if there is none.
inline void* open_library(const char* name) {
#if GATHERUM_POSIX
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
#else
  return reinterpret_cast<void*>(LoadLibraryA(name));
#endif
}

// Returns the address of a function in a library, or null if there is none.
inline void* find_symbol(void* library, const char* name) {
#if GATHERUM_POSIX
  return dlsym(library, name);
#else
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
#endif
}

// The number of processors that this process may use, according to affinity masks and cpusets.
inline int usable_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
#if GATHERUM_POSIX
  const auto n = sysconf(_SC_NPROCESSORS_ONLN);
#else
  const auto n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
#endif
  return n > 0 ? static_cast<int>(n) : 1;
}

// In a build with AddressSanitizer, these functions forbid access to bytes, or permit it again.
inline void poison_memory([[maybe_unused]] void* p, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(p, bytes);
#endif
}

inline void unpoison_memory([[maybe_unused]] void* p, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(p, bytes);
#endif
}

// Calls `child` in every child process right after fork(). Does nothing on systems without fork().
inline void after_fork_in_child(void (*child)()) {
#if GATHERUM_POSIX
  pthread_atfork(nullptr, nullptr, child);
#else
  static_cast<void>(child);
#endif
}

inline constexpr size_t kHugePage = size_t{2} << 20;

// Maps memory whose address and size are multiples of kHugePage, backed by huge pages if the system provides
// them. Returns nullptr if there is no memory.
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
#else
  return _aligned_malloc(bytes, kHugePage);
#endif
}

// Requests huge pages for a large block of memory that was allocated elsewhere. Only pages that are not yet
// written become huge. From 4 MiB on, the first access to many small pages costs more than the system call.
inline void prefer_huge([[maybe_unused]] void* p, [[maybe_unused]] size_t bytes) {
#if GATHERUM_POSIX && defined(MADV_HUGEPAGE)
  if (bytes < 2 * kHugePage) return;
  const auto start = reinterpret_cast<uintptr_t>(p);
  const uintptr_t mask = ~(uintptr_t{kHugePage} - 1);
  const uintptr_t first = (start + kHugePage - 1) & mask, end = (start + bytes) & mask;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

// Marks pages as unused: the system may reclaim them when it needs memory, and tools count them as free.
// Later writes make them used again. Does nothing on systems without such a call.
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
#else
  static_cast<void>(bytes);
  _aligned_free(p);
#endif
}

#if GATHERUM_POSIX
// Calls pread or pwrite. Returns the number of bytes transferred, or -1.
template <class Transfer, class Byte>
int64_t transfer_at(Transfer transfer, int file, Byte* p, int64_t bytes, int64_t offset, int& error) {
  ssize_t transferred = -1;
  do {
    transferred = transfer(file, p, static_cast<size_t>(bytes), static_cast<off_t>(offset));
  } while (transferred < 0 && errno == EINTR);
  error = transferred < 0 ? errno : 0;
  return transferred;
}
#else
// Translates Windows error codes to errno.
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

// Calls ReadFile or WriteFile at an offset. Returns the number of bytes transferred, or -1. Several threads
// may call this function for the same file at the same time. The file pointer moves, but is not used here.
template <class Transfer, class Byte>
int64_t transfer_at(Transfer transfer, int file, Byte* p, int64_t bytes, int64_t offset, int& error) {
  constexpr int64_t kMostTransferred = int64_t{1} << 30;
  error = file < 0 ? EBADF : 0;  // the C library ends the process if the descriptor is invalid
  if (error != 0) return -1;
  OVERLAPPED at = {};
  at.Offset = static_cast<DWORD>(static_cast<uint64_t>(offset));
  at.OffsetHigh = static_cast<DWORD>(static_cast<uint64_t>(offset) >> 32);
  const auto handle = reinterpret_cast<HANDLE>(_get_osfhandle(file));
  DWORD transferred = 0;
  if (transfer(handle, p, static_cast<DWORD>(bytes < kMostTransferred ? bytes : kMostTransferred),
               &transferred, &at))
    return transferred;
  if (GetLastError() == ERROR_HANDLE_EOF) return 0;
  error = last_error();
  return -1;
}
#endif

// Reads up to `bytes` of an open file from `offset` on. Returns the number of bytes read, 0 at the end of the
// file, or -1 with the error number in `error`.
inline int64_t read_at(int file, char* to, int64_t bytes, int64_t offset, int& error) {
#if GATHERUM_POSIX
  return transfer_at(pread, file, to, bytes, offset, error);
#else
  return transfer_at(ReadFile, file, to, bytes, offset, error);
#endif
}

// Writes up to `bytes` at `offset` of an open file. Returns the number of bytes written, or -1 with the error
// number in `error`.
inline int64_t write_at(int file, const char* from, int64_t bytes, int64_t offset, int& error) {
#if GATHERUM_POSIX
  return transfer_at(pwrite, file, from, bytes, offset, error);
#else
  return transfer_at(WriteFile, file, from, bytes, offset, error);
#endif
}

// The peak memory use of this process, in bytes.
inline int64_t peak_memory() {
#if GATHERUM_POSIX
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
#if defined(__APPLE__)
  constexpr int64_t kBytesPerUnit = 1;
#else
  constexpr int64_t kBytesPerUnit = 1024;
#endif
  return static_cast<int64_t>(used.ru_maxrss) * kBytesPerUnit;
#else
  PROCESS_MEMORY_COUNTERS used = {};
  K32GetProcessMemoryInfo(GetCurrentProcess(), &used, sizeof used);
  return static_cast<int64_t>(used.PeakWorkingSetSize);
#endif
}

// Reads like read_at, with Linux flags. Returns a negative number if the system does not support the flags,
// or if the read fails. In that case, call read_at, which reports errors.
inline int64_t read_flagged_at(int file, char* to, int64_t bytes, int64_t offset, int flags) {
#if defined(__linux__) && defined(SYS_preadv2)
  const iovec part{to, static_cast<size_t>(bytes)};
  const auto low = static_cast<unsigned long>(offset);
  const auto high = static_cast<unsigned long>(static_cast<uint64_t>(offset) >> 32);
  int64_t got = 0;
  do {
    got = syscall(SYS_preadv2, file, &part, 1UL, low, high, flags);
  } while (got < 0 && errno == EINTR);
  return got;
#else
  static_cast<void>(file), static_cast<void>(to), static_cast<void>(bytes), static_cast<void>(offset);
  static_cast<void>(flags);
  return -1;
#endif
}

// Does not keep the pages in the system's cache unless they already were there. Caching pages that are not
// read again costs as much as the read.
inline int64_t read_once_at(int file, char* to, int64_t bytes, int64_t offset) {
  constexpr int kDontCache = 0x80;  // RWF_DONTCACHE, since Linux 6.14
  return read_flagged_at(file, to, bytes, offset, kDontCache);
}

// Reads only pages in the system's cache, without waiting for the disk.
inline int64_t read_cached_at(int file, char* to, int64_t bytes, int64_t offset) {
  constexpr int kNoWait = 0x08;  // RWF_NOWAIT, since Linux 4.14
  return read_flagged_at(file, to, bytes, offset, kNoWait);
}

// Tells the system whether pages of a file will be read in random order. If so, the system does not prefetch
// pages.
inline void expect_scattered_reads(int file, bool scattered) {
#if defined(POSIX_FADV_RANDOM)
  static_cast<void>(posix_fadvise(file, 0, 0, scattered ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL));
#elif defined(F_RDAHEAD)
  static_cast<void>(fcntl(file, F_RDAHEAD, scattered ? 0 : 1));
#else
  static_cast<void>(file), static_cast<void>(scattered);
#endif
}

// Starts to write bytes back to the disk, without waiting. Does nothing on systems without such a call.
inline void start_writing(int file, int64_t offset, int64_t bytes) {
#if defined(SYNC_FILE_RANGE_WRITE)
  static_cast<void>(sync_file_range(file, offset, bytes, SYNC_FILE_RANGE_WRITE));
#else
  static_cast<void>(file), static_cast<void>(offset), static_cast<void>(bytes);
#endif
}

}  // namespace gatherum
