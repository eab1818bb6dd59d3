#include "algorithms/copies.hpp"

#include <cstring>

#include "algorithms/algorithms.hpp"

namespace gatherum {
namespace {

// The source for a result in which one item is repeated: a buffer filled with this item.
struct Repeated {
  static constexpr int64_t kBytes = int64_t{16} << 10;
  alignas(kCacheLine) char bytes[kBytes];

  Repeated(const char* item, int64_t size) {
    for (int64_t at = 0; at < kBytes; at += size) std::memcpy(bytes + at, item, static_cast<size_t>(size));
  }
};

// Returns true if the nest writes contiguous memory and reads the same item at every point.
bool repeats_one_item(const Nest& nest) {
  bool one = Repeated::kBytes % nest.block == 0 && writes_in_order(nest);
  for (int i = 0; i < nest.rank; ++i) one &= nest.loops[i].extent == 1 || nest.loops[i].data == 0;
  return one;
}

// Calls `from(begin)` to get the source of each piece of contiguous output.
template <class From>
bool copy_pieces(char* to, int64_t bytes, int64_t piece, const Poll& poll, const From& from) {
  const int threads = threads_for(limited_product(2, bytes));
  return run_tasks((bytes + piece - 1) / piece, threads, poll, [&](int64_t i, int) {
    const int64_t begin = i * piece, n = std::min(piece, bytes - begin);
    if (bytes >= kParallelBytes)
      chosen_kernels().copy(to + begin, from(begin), n);
    else
      std::memcpy(to + begin, from(begin), static_cast<size_t>(n));
  });
}

}  // namespace

bool run_copy(const Nest& nest, const char* source, char* to, const Poll& poll) {
  const int64_t bytes = limited_product(nest.block, points(nest, nest.rank));
  if (bytes == nest.block && bytes < kLongBytes) {
    std::memcpy(to, source, static_cast<size_t>(bytes));
    return true;
  }
  if (bytes == nest.block)  // one contiguous run
    return copy_pieces(to, bytes, kWriteTaskBytes, poll, [&](int64_t begin) { return source + begin; });
  if (bytes >= kLongBytes && repeats_one_item(nest)) {
    const Repeated item(source, nest.block);
    return copy_pieces(to, bytes, Repeated::kBytes, poll, [&](int64_t) { return item.bytes; });
  }
  const int threads = threads_for(limited_product(2, bytes));
  Operands operands;
  operands.data = const_cast<char*>(source);  // a gather only reads it
  operands.moved = to;
  const bool streams = streams_past_cache(nest, to);
  const Split s =
      split(nest.outer_count(), nest.line_loop().extent, true, 0, limited_product(2, bytes), threads);
  return run_split(s, poll, [&](int64_t begin, int64_t end, int) {
    chosen_kernels().gather(nest, nest.line, operands, {.chunk = s.chunk, .begin = begin, .end = end},
                            streams);
  });
}

bool fill(int64_t* to, int64_t n, const int64_t& number, const Poll& poll) {
  if (n == 0) return true;
  Nest repeat;
  repeat.block = repeat.item = sizeof number;
  repeat.loops[0] = {n, 0, 0, sizeof number};
  return run_copy(repeat, reinterpret_cast<const char*>(&number), reinterpret_cast<char*>(to), poll);
}

}  // namespace gatherum
