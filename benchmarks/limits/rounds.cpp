// Times the steps of the algorithm `in_rounds` one after the other, on one thread, and predicts its time on
// more threads than the machine has: the sum over the rounds of the time of the slowest thread. Waiting, and
// the transfer of lists between the caches of processors, are not included. Compile and run:
//
//   g++ -std=c++20 -O2 -ftree-vectorize -fvect-cost-model=dynamic -march=x86-64-v3 -ffp-contract=off
//     -D GATHERUM_LEVEL=level_v3 -I src/core benchmarks/limits/rounds.cpp -o rounds
//   ./rounds THREADS DESTINATIONS UPDATES [PERCENT]
//
// It sums float32. PERCENT of the updates have the same destination.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "kernels/scatter_rounds.hpp"

using namespace gatherum;
using namespace gatherum::GATHERUM_LEVEL;
using Sum = Fold<float, Reduction::add>;

namespace {

double now() {  // processor time in milliseconds
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

// In huge pages, as the core and NumPy allocate large arrays on Linux.
char* allocate(int64_t bytes) {
  constexpr size_t page = size_t{2} << 20;
  const size_t rounded = (static_cast<size_t>(bytes) + page - 1) & ~(page - 1);
  void* p = std::aligned_alloc(page, rounded);
  madvise(p, rounded, MADV_HUGEPAGE);
  return static_cast<char*>(std::memset(p, 0, rounded));
}

// As in algorithms/scatter/in_rounds.cpp.
int64_t shape(RoundScatter& s, int64_t threads, int64_t updates) {
  constexpr int64_t cache = 512 << 10, pair = RoundScatter::pair_bytes(4), run = RoundScatter::kRunBytes;
  s.chunk = 1024;
  s.units = (updates - 1) / s.chunk + 1;
  const int64_t rounds = (s.units - 1) / (cache / pair / s.chunk * threads) + 1;
  s.piece_units = (s.units - 1) / (rounds * threads) + 1;
  s.pieces = threads;
  for (s.shift = 4; (8 << s.shift) <= 4096 && s.destinations >> (s.shift + 1) >= 64 * threads;) ++s.shift;
  const int64_t groups = ((s.destinations - 1) >> s.shift) + 1;
  for (s.lists = 1;
       s.lists < std::min<int64_t>(4 * threads, RoundScatter::kMostLists) && 2 * s.lists <= groups;)
    s.lists *= 2;
  s.area_bytes = (s.lists + s.piece_units * s.chunk / (run / pair - 1) + 1) * run;
  s.runs = allocate((2 * threads * s.area_bytes + 2 * run));
  s.ends = reinterpret_cast<RoundScatter::List*>(allocate(2 * threads * s.lists * int64_t{sizeof *s.ends}));
  return rounds;
}

// The first list of a member's share; see share_of.
int64_t first_list(const RoundScatter& s, int64_t set, int64_t member) {
  std::vector<int64_t> pairs(static_cast<size_t>(s.lists));
  int64_t all = 0, before = 0, list = 0;
  for (int64_t i = 0; i < s.pieces * s.lists; ++i)
    pairs[static_cast<size_t>(i % s.lists)] += s.ends[set * s.pieces * s.lists + i].pairs;
  for (const int64_t n : pairs) all += n;
  for (; list < s.lists; before += pairs[static_cast<size_t>(list++)])
    if (2 * before + pairs[static_cast<size_t>(list)] >= 2 * all * member / s.pieces) break;
  return list;
}

}  // namespace

int main(int, char** words) {
  const int64_t threads = std::atoll(words[1]), size = std::atoll(words[2]), n = std::atoll(words[3]);
  const int percent = words[4] == nullptr ? 0 : std::atoi(words[4]);
  std::mt19937_64 random(1);
  auto* const indices = reinterpret_cast<int64_t*>(allocate(8 * n));
  auto* const updates = reinterpret_cast<float*>(allocate(4 * n));
  auto* const sums = reinterpret_cast<float*>(allocate(4 * size));
  for (int64_t i = 0; i < n; ++i) {
    const bool is_one = static_cast<int>(random() % 100) < percent;
    indices[i] = is_one ? size / 3 : static_cast<int64_t>(random() % static_cast<uint64_t>(size));
    updates[i] = 0.001f * static_cast<float>(i % 1000);
  }
  Nest nest;
  nest.components = 1;
  nest.mode = Mode::drop;
  nest.block = nest.item = 4;
  nest.loops[0] = {n, 0, 8, 4};
  nest.component[0] = {size, 1, 0};
  char* const out = reinterpret_cast<char*>(sums);
  const Operands operands{out, reinterpret_cast<char*>(indices), reinterpret_cast<char*>(updates)};
  RoundScatter s{};
  s.numbering = &nest;
  s.destinations = size;
  s.step = 4;
  s.slab = out;
  s.combine = {Reduction::add, Value::float32};
  s.direct = s.settles = true;
  const int64_t rounds = shape(s, threads, n);
  double serial = 1e9, slowest = 1e9, all = 0;
  for (int repeat = 0; repeat < 15; ++repeat) {
    const double begin = now();
    for (int64_t i = 0; i < n; ++i) {
      if (static_cast<uint64_t>(indices[i]) >= static_cast<uint64_t>(size)) std::abort();
      sums[indices[i]] += updates[i];
    }
    serial = std::min(serial, now() - begin);
    double path = 0, total = 0;
    for (int64_t round = 0; round <= rounds; ++round) {
      double most = 0;
      for (int64_t member = 0; member < threads; ++member) {
        const double start = now();
        const int64_t set = (round + 1) % 2;
        if (round > 0)
          rounds_fold<Sum, false>(s, operands, set, first_list(s, set, member),
                                  first_list(s, set, member + 1));
        if (round < rounds)
          rounds_distribute<4>(s, operands, round * threads + member, round % 2 * threads + member);
        most = std::max(most, now() - start);
        total += now() - start;
      }
      path += most;
    }
    if (path < slowest) slowest = path, all = total;
  }
  std::printf("one thread %.2f ms, slowest threads %.2f ms (%.1f times), all threads %.2f times\n", serial,
              slowest, serial / slowest, all / serial);
}
