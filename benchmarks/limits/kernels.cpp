// Limit kernels: the memory accesses of a call, in their order, as plain loops. No checks, no modes, no other
// types; the prefetch distance, the stores and the block of columns are given, and run.py searches for the
// best. Nobody should call these: an index that is not valid reads and writes anywhere.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

struct Call {
  const char* data;
  const int64_t* indices;
  const char* updates;
  char* out;
  int64_t outer, size, inner;  // the data as outer x size x inner bytes
  int64_t count;               // indices of one outer line
  int64_t item;                // bytes
  int64_t each;                // 1: every outer line has separate indices
  int64_t ahead, stream, columns, threads;
};

void fetch(const char* p, int64_t bytes) {
  const auto inside = static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) % 64);
  for (int64_t r = -inside; r < bytes; r += 64) __builtin_prefetch(p + r, 0, 3);
}

void copy_row(char* __restrict__ to, const char* __restrict__ from, int64_t bytes, bool stream) {
#if defined(__SSE2__)
  if (stream && reinterpret_cast<uintptr_t>(to) % 16 == 0 && bytes % 16 == 0) {
    const auto piece = [&](int64_t r) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + r),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + r)));
    };
    int64_t r = 0;
#if defined(__AVX512F__)
    for (; r < bytes && reinterpret_cast<uintptr_t>(to + r) % 64 != 0; r += 16) piece(r);
    for (; r + 64 <= bytes; r += 64)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + r), _mm512_loadu_si512(from + r));
#elif defined(__AVX__)
    for (; r < bytes && reinterpret_cast<uintptr_t>(to + r) % 32 != 0; r += 16) piece(r);
    for (; r + 32 <= bytes; r += 32)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + r),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + r)));
#endif
    for (; r < bytes; r += 16) piece(r);
    return;
  }
#endif
  int64_t r = 0;  // in pieces that need no call
  for (; r + 64 <= bytes; r += 64) std::memcpy(to + r, from + r, 64);
  if (r < bytes) std::memcpy(to + r, from + r, static_cast<size_t>(bytes - r));
}

// Runs body(begin, end) on every thread, for its share of n.
template <class Body>
void shared(int64_t n, int64_t threads, const Body& body) {
  std::vector<std::thread> others;
  for (int64_t t = 1; t < threads; ++t)
    others.emplace_back([&, t] { body(n * t / threads, n * (t + 1) / threads); });
  body(0, n / threads);
  for (std::thread& other : others) other.join();
}

void copy_data(const Call& c) {
  const int64_t bytes = c.outer * c.size * c.inner;
  shared(bytes / 64, c.threads, [&](int64_t begin, int64_t end) {
    const int64_t last = end == bytes / 64 ? bytes : end * 64;
    copy_row(c.out + begin * 64, c.data + begin * 64, last - begin * 64, c.stream != 0);
  });
}

// Rows, or slices of an axis: out[o, i] = data[o, indices[i]].
void gather_rows(const Call& c) {
  shared(c.outer * c.count, c.threads, [&](int64_t begin, int64_t end) {
    const auto at = [&](int64_t p) {  // without the division for a single line: it is as slow as a row
      if (c.outer == 1) return c.data + c.indices[p] * c.inner;
      return c.data + (p / c.count * c.size + c.indices[p % c.count]) * c.inner;
    };
    for (int64_t p = begin; p < end; ++p) {
      if (p + c.ahead < end) fetch(at(p + c.ahead), std::min<int64_t>(c.inner, 1024));
      copy_row(c.out + p * c.inner, at(p), c.inner, c.stream != 0);
    }
  });
}

template <class T>
void gather_items(const Call& c) {
  const auto* data = reinterpret_cast<const T*>(c.data);
  auto* out = reinterpret_cast<T*>(c.out);
  shared(c.count, c.threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      __builtin_prefetch(data + c.indices[std::min(i + c.ahead, end - 1)]);
      out[i] = data[c.indices[i]];
    }
  });
}

// Three components a tuple, into a cube.
template <class T>
void gather_cube(const Call& c) {
  const auto* data = reinterpret_cast<const T*>(c.data);
  auto* out = reinterpret_cast<T*>(c.out);
  shared(c.count, c.threads, [&](int64_t begin, int64_t end) {
    const auto at = [&](int64_t i) {
      const int64_t* x = c.indices + 3 * i;
      return data + (x[0] * c.size + x[1]) * c.size + x[2];
    };
    for (int64_t i = begin; i < end; ++i) {
      __builtin_prefetch(at(std::min(i + c.ahead, end - 1)));
      out[i] = *at(i);
    }
  });
}

// Lines whose data are near: out[o, i] = data[o, indices[i]], items of K bytes; `ahead` lines on are fetched.
template <class T>
void gather_lines(const Call& c) {
  const auto* data = reinterpret_cast<const T*>(c.data);
  auto* out = reinterpret_cast<T*>(c.out);
  shared(c.outer, c.threads, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const int64_t* x = c.indices + c.each * o * c.count;
      const T* line = data + o * c.size;
      const char* next = reinterpret_cast<const char*>(line + c.ahead * c.size);
      const int64_t step =
          std::max<int64_t>(1, c.count / (c.size * static_cast<int64_t>(sizeof(T)) / 64 + 1));
      for (int64_t i = 0, j = 0; i < c.count; i += step) {
        if (c.ahead > 0) __builtin_prefetch(next + 64 * j++);
        const int64_t until = std::min(i + step, c.count);
        for (int64_t k = i; k < until; ++k) out[o * c.count + k] = line[x[k]];
      }
    }
  });
}

// Along axis 0: blocks of columns, which are packed side by side first.
template <class T>
void gather_columns(const Call& c) {
  const int64_t width = c.inner / static_cast<int64_t>(sizeof(T));
  const auto* data = reinterpret_cast<const T*>(c.data);
  auto* out = reinterpret_cast<T*>(c.out);
  shared((width + c.columns - 1) / c.columns, c.threads, [&](int64_t begin, int64_t end) {
    std::vector<T> packed(static_cast<size_t>(c.size * c.columns));
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * c.columns, n = std::min(c.columns, width - first);
      for (int64_t i = 0; i < c.size; ++i) {
        const T* row = data + i * width + first;
        fetch(reinterpret_cast<const char*>(row + c.ahead * width), n * static_cast<int64_t>(sizeof(T)));
        std::memcpy(packed.data() + i * c.columns, row, static_cast<size_t>(n) * sizeof(T));
      }
      for (int64_t i = 0; i < c.count; ++i) {
        const int64_t* x = c.indices + i * width + first;
        fetch(reinterpret_cast<const char*>(x + c.ahead * width), n * 8);
        for (int64_t j = 0; j < n; ++j)
          out[i * width + first + j] = packed[static_cast<size_t>(x[j] * c.columns + j)];
      }
    }
  });
}

struct Set {
  template <class T>
  static void apply(T& a, T b) {
    a = b;
  }
};
struct Add {
  template <class T>
  static void apply(T& a, T b) {
    a += b;
  }
};
struct Max {
  template <class T>
  static void apply(T& a, T b) {
    a = a < b ? b : a;
  }
};

// One thread: two could meet.
template <class T, class Op>
void scatter_items(const Call& c) {
  copy_data(c);
  auto* out = reinterpret_cast<T*>(c.out);
  const auto* updates = reinterpret_cast<const T*>(c.updates);
  for (int64_t i = 0; i < c.count; ++i) {
    if (c.ahead > 0) __builtin_prefetch(out + c.indices[std::min(i + c.ahead, c.count - 1)], 1);
    Op::apply(out[c.indices[i]], updates[i]);
  }
}

template <class T, class Op>
void scatter_lines(const Call& c) {
  copy_data(c);
  auto* out = reinterpret_cast<T*>(c.out);
  const auto* updates = reinterpret_cast<const T*>(c.updates);
  shared(c.outer, c.threads, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      for (int64_t i = 0; i < c.count; ++i)
        Op::apply(out[o * c.size + c.indices[o * c.count + i]], updates[o * c.count + i]);
  });
}

template <class T, class Op>
void scatter_columns(const Call& c) {
  copy_data(c);
  const int64_t width = c.inner / static_cast<int64_t>(sizeof(T));
  auto* out = reinterpret_cast<T*>(c.out);
  const auto* updates = reinterpret_cast<const T*>(c.updates);
  shared((width + c.columns - 1) / c.columns, c.threads, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * c.columns, last = std::min(first + c.columns, width);
      for (int64_t i = 0; i < c.count; ++i) {
        const int64_t* x = c.indices + i * width;
        fetch(reinterpret_cast<const char*>(x + c.ahead * width + first), (last - first) * 8);
        for (int64_t j = first; j < last; ++j) Op::apply(out[x[j] * width + j], updates[i * width + j]);
      }
    }
  });
}

// Rows: every thread has separate columns.
template <class T, class Op>
void scatter_rows(const Call& c) {
  copy_data(c);
  const int64_t width = c.inner / static_cast<int64_t>(sizeof(T));
  shared(width, c.threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < c.count; ++i) {
      auto* next = reinterpret_cast<T*>(c.out + c.indices[std::min(i + c.ahead, c.count - 1)] * c.inner);
      if (c.ahead > 0)
        fetch(reinterpret_cast<const char*>(next + begin), (end - begin) * static_cast<int64_t>(sizeof(T)));
      auto* __restrict__ to = reinterpret_cast<T*>(c.out + c.indices[i] * c.inner);
      const auto* __restrict__ from = reinterpret_cast<const T*>(c.updates + i * c.inner);
      for (int64_t e = begin; e < end; ++e) Op::apply(to[e], from[e]);
    }
  });
}

template <class T>
bool run_as(int64_t kernel, int64_t op, const Call& c) {
  const auto by_op = [&](auto set, auto add, auto max) { (op == 0 ? set : op == 1 ? add : max)(c); };
  switch (kernel) {
    case 0:
      return gather_rows(c), true;
    case 1:
      return gather_items<T>(c), true;
    case 2:
      return gather_cube<T>(c), true;
    case 3:
      return gather_lines<T>(c), true;
    case 4:
      return gather_columns<T>(c), true;
    case 5:
      return by_op(scatter_items<T, Set>, scatter_items<T, Add>, scatter_items<T, Max>), true;
    case 6:
      return by_op(scatter_lines<T, Set>, scatter_lines<T, Add>, scatter_lines<T, Max>), true;
    case 7:
      return by_op(scatter_columns<T, Set>, scatter_columns<T, Add>, scatter_columns<T, Max>), true;
    case 8:
      return by_op(scatter_rows<T, Set>, scatter_rows<T, Add>, scatter_rows<T, Max>), true;
    default:
      return false;
  }
}

}  // namespace

// Types: 0 uint8, 1 float32, 2 float64, 3 int64, 4 four float32 side by side (moved only).
extern "C" int run_limit(int64_t kernel, int64_t type, int64_t op, const Call* call) {
  struct Four {
    float values[4];
  };
  if (type == 0) return run_as<uint8_t>(kernel, op, *call);
  if (type == 1) return run_as<float>(kernel, op, *call);
  if (type == 2) return run_as<double>(kernel, op, *call);
  if (type == 3) return run_as<int64_t>(kernel, op, *call);
  if (type == 4 && kernel == 3) return gather_lines<Four>(*call), 1;
  return 0;
}
