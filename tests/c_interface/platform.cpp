// Checks the functions of system.hpp on files and memory, on the system that it is compiled for.
//
//     platform FILE      writes FILE; prints "ok", or the line of a failed check
#include "platform/system.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/lanes.hpp"

#if defined(_WIN32)
#include <fcntl.h>
#include <sys/stat.h>
#define OPEN(path, how) _open(path, how | _O_BINARY, _S_IREAD | _S_IWRITE)
#else
#include <fcntl.h>
#define OPEN(path, how) open(path, how, 0600)
#endif

using namespace gatherum;

#define CHECK(what)                             \
  do {                                          \
    if (!(what)) {                              \
      std::printf("%d: %s\n", __LINE__, #what); \
      return 1;                                 \
    }                                           \
  } while (false)

int main(int count, char** words) {
  if (count < 2) return 2;
  int error = -1;
  const int file = OPEN(words[1], (O_RDWR | O_CREAT | O_TRUNC));
  CHECK(file >= 0);

  // Writes at positions in any order: a gap is filled with zeros, and line ends are not translated.
  const char text[] = "one\r\ntwo\n\x1A three";
  const int64_t length = sizeof text;
  const int64_t far_off = (int64_t{5} << 30) + 3;
  CHECK(write_at(file, text, length, 100, error) == length && error == 0);
  CHECK(write_at(file, text, length, far_off, error) == length);
  char back[64] = {};
  CHECK(read_at(file, back, length, 100, error) == length && std::memcmp(back, text, sizeof text) == 0);
  CHECK(read_at(file, back, 64, far_off, error) == length && std::memcmp(back, text, sizeof text) == 0);
  CHECK(read_at(file, back, 4, 50, error) == 4 && std::memcmp(back, "\0\0\0\0", 4) == 0);
  CHECK(read_at(file, back, 64, far_off + length, error) == 0 && error == 0);
  CHECK(read_at(-1, back, 1, 0, error) == -1 && error == EBADF);

  // From several threads concurrently, as the core reads rows.
  std::vector<char> bytes(1 << 20);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 256);
  CHECK(write_at(file, bytes.data(), 1 << 20, 0, error) == 1 << 20);
  int wrong[4] = {};
  std::vector<std::thread> crew;
  for (int t = 0; t < 4; ++t)
    crew.emplace_back([&, t] {
      char part[61];
      int mine = 0;
      for (int64_t i = t; i < 4000; i += 4) {
        const int64_t at = i * 7919 % ((1 << 20) - 61);
        wrong[t] += read_at(file, part, 61, at, mine) != 61 || std::memcmp(part, &bytes[at], 61) != 0;
      }
    });
  for (auto& one : crew) one.join();
  CHECK(wrong[0] + wrong[1] + wrong[2] + wrong[3] == 0);

  const int reading = OPEN(words[1], O_RDONLY);
  CHECK(write_at(reading, text, length, 0, error) == -1 && (error == EBADF || error == EACCES));

  // Products modulo 2^64 of a word and of the words of a vector.
  using Words = Vector<uint64_t, GATHERUM_LANES>::Type;
  uint64_t x = 88172645463325252u;
  for (int i = 0; i < 1000; ++i) {
    std::array<uint64_t, GATHERUM_LANES> words;
    for (uint64_t& word : words) word = (x ^= x << 13, x ^= x >> 7, x ^= x << 17) >> i % 64;
    const uint64_t number = x >> i * 7 % 64;
    const auto products = std::bit_cast<std::array<uint64_t, GATHERUM_LANES>>(
        times_scalar(std::bit_cast<Words>(words), number));
    for (size_t l = 0; l < words.size(); ++l) CHECK(products[l] == words[l] * number);
    CHECK(times_scalar(words[0], number) == words[0] * number);
  }

  // Hints: they must not change the results of reads.
  expect_scattered_reads(file, true);
  start_writing(file, 0, 1 << 20);
  CHECK(read_once_at(file, back, 4, 0) == 4 || read_once_at(file, back, 4, 0) == -1);

  void* huge = map_huge(2 * kHugePage);
  CHECK(huge != nullptr && reinterpret_cast<uintptr_t>(huge) % kHugePage == 0);
  std::memset(huge, 1, 2 * kHugePage);
  offer_pages(huge, 2 * kHugePage);
  unmap_huge(huge, 2 * kHugePage);
  CHECK(peak_memory() >= static_cast<int64_t>(2 * kHugePage));
  CHECK(usable_processors() >= 1 && usable_processors() <= 65536);
  std::puts("ok");
  return 0;
}
