// Limit kernels of whole jobs: their memory accesses as plain loops. No checks, no modes, and an index that
// is not valid reads and writes anywhere: nobody should call these. Sums are added in the order of the
// updates.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

namespace {

struct Call {
  const void* values;     // one for each update, or the rows of a table
  const int64_t* groups;  // the destination of each update
  const int64_t* rows;    // the row of the table that each update takes
  const int64_t* indptr;  // where the updates of each destination begin, in place of groups
  const void* weights;    // of the updates, or null
  void* out;
  int64_t count, size, width;  // updates, destinations, elements of a row
  int64_t ahead, threads;
};

template <class Body>
void shared(int64_t threads, const Body& body) {
  std::vector<std::thread> others;
  for (int64_t t = 1; t < threads; ++t) others.emplace_back([&, t] { body(t); });
  body(0);
  for (std::thread& other : others) other.join();
}

// Sums and means: out[g[i]] += v[i]. A thread adds the values of its part of the groups.
template <bool kMean>
void group_sums(const Call& c) {
  const auto* values = static_cast<const double*>(c.values);
  auto* out = static_cast<double*>(c.out);
  std::vector<int64_t> counts(static_cast<size_t>(kMean ? c.size : 0));
  shared(c.threads, [&](int64_t t) {
    const int64_t first = c.size * t / c.threads, last = c.size * (t + 1) / c.threads;
    std::fill(out + first, out + last, 0.0);
    for (int64_t i = 0; i < c.count; ++i) {
      const int64_t g = c.groups[i];
      if (c.ahead > 0) __builtin_prefetch(out + c.groups[std::min(i + c.ahead, c.count - 1)], 1);
      if (c.threads > 1 && (g < first || g >= last)) continue;
      out[g] += values[i];
      if constexpr (kMean) ++counts[static_cast<size_t>(g)];
    }
    if constexpr (kMean)
      for (int64_t g = first; g < last; ++g) out[g] /= static_cast<double>(counts[static_cast<size_t>(g)]);
  });
}

// Maxima and counts, which no order changes: each thread has separate accumulators.
template <class T, class Op>
void in_any_order(const Call& c, T start, const Op& op) {
  auto* out = static_cast<T*>(c.out);
  std::vector<std::vector<T>> own(static_cast<size_t>(c.threads - 1));
  shared(c.threads, [&](int64_t t) {
    if (t > 0) own[static_cast<size_t>(t - 1)].assign(static_cast<size_t>(c.size), start);
    T* to = t > 0 ? own[static_cast<size_t>(t - 1)].data() : out;
    if (t == 0) std::fill(out, out + c.size, start);
    const int64_t end = c.count * (t + 1) / c.threads;
    for (int64_t i = c.count * t / c.threads; i < end; ++i) {
      if (c.ahead > 0) __builtin_prefetch(to + c.groups[std::min(i + c.ahead, end - 1)], 1);
      op.fold(to[c.groups[i]], i);
    }
  });
  for (const std::vector<T>& other : own)
    for (int64_t g = 0; g < c.size; ++g) op.merge(out[g], other[static_cast<size_t>(g)]);
}

struct Maximum {
  const double* values;
  void fold(double& a, int64_t i) const { merge(a, values[i]); }
  static void merge(double& a, double b) { a = a < b ? b : a; }
};

struct Count {
  static void fold(int64_t& a, int64_t) { ++a; }
  static void merge(int64_t& a, int64_t b) { a += b; }
};

// Messages along edges: out[g[i], :] op= table[rows[i], :]. Every thread has separate columns.
template <bool kMaximum>
void edge_rows(const Call& c) {
  const auto* table = static_cast<const float*>(c.values);
  auto* out = static_cast<float*>(c.out);
  constexpr float kStart = kMaximum ? -std::numeric_limits<float>::infinity() : 0;
  shared(c.threads, [&](int64_t t) {
    const int64_t first = c.width * t / c.threads, last = c.width * (t + 1) / c.threads;
    for (int64_t g = 0; g < c.size; ++g)
      std::fill(out + g * c.width + first, out + g * c.width + last, kStart);
    for (int64_t i = 0; i < c.count; ++i) {
      const int64_t next = std::min(i + c.ahead, c.count - 1);
      for (int64_t e = first; c.ahead > 0 && e < last; e += 16) {
        __builtin_prefetch(table + c.rows[next] * c.width + e);
        __builtin_prefetch(out + c.groups[next] * c.width + e, 1);
      }
      const float* __restrict__ from = table + c.rows[i] * c.width;
      float* __restrict__ to = out + c.groups[i] * c.width;
      for (int64_t e = first; e < last; ++e)
        to[e] = kMaximum ? (to[e] < from[e] ? from[e] : to[e]) : to[e] + from[e];
    }
  });
}

// Positions of maxima: out[g[i], e] = i where v[i, e] is the first greatest. Every thread has columns of its
// own.
void positions(const Call& c) {
  const auto* values = static_cast<const float*>(c.values);
  auto* out = static_cast<int64_t*>(c.out);
  std::vector<float> best(static_cast<size_t>(c.size * c.width), -std::numeric_limits<float>::infinity());
  shared(c.threads, [&](int64_t t) {
    const int64_t first = c.width * t / c.threads, last = c.width * (t + 1) / c.threads;
    for (int64_t i = 0; i < c.count; ++i) {
      const int64_t next = c.groups[std::min(i + c.ahead, c.count - 1)] * c.width;
      for (int64_t e = first; c.ahead > 0 && e < last; e += 8) {
        __builtin_prefetch(best.data() + next + e, 1);
        __builtin_prefetch(out + next + e, 1);
      }
      const float* __restrict__ from = values + i * c.width;
      float* __restrict__ most = best.data() + c.groups[i] * c.width;
      int64_t* __restrict__ to = out + c.groups[i] * c.width;
      for (int64_t e = first; e < last; ++e) {
        to[e] = most[e] < from[e] ? i : to[e];
        most[e] = most[e] < from[e] ? from[e] : most[e];
      }
    }
  });
}

// Bags and sparse products: out[g, :] = sum of weights[k] * table[rows[k], :] for k of the group. Sums are
// float32.
template <class T>
void pointed_rows(const Call& c) {
  const auto* table = static_cast<const T*>(c.values);
  const auto* weights = static_cast<const T*>(c.weights);
  shared(c.threads, [&](int64_t t) {
    const auto at = [&](int64_t part) {  // the first row after a share of the updates
      return std::lower_bound(c.indptr, c.indptr + c.size, c.count * part / c.threads) - c.indptr;
    };
    std::vector<float> sums(static_cast<size_t>(c.width));
    for (int64_t g = at(t), last = t + 1 == c.threads ? c.size : at(t + 1); g < last; ++g) {
      std::fill(sums.begin(), sums.end(), 0.0F);
      for (int64_t k = c.indptr[g]; k < c.indptr[g + 1]; ++k) {
        const T* next = table + c.rows[std::min(k + c.ahead, c.count - 1)] * c.width;
        for (int64_t e = 0; c.ahead > 0 && e < c.width; e += 64 / static_cast<int64_t>(sizeof(T)))
          __builtin_prefetch(next + e);
        const T* __restrict__ from = table + c.rows[k] * c.width;
        float* __restrict__ to = sums.data();
        const float weight = weights == nullptr ? 1.0F : static_cast<float>(weights[k]);
        for (int64_t e = 0; e < c.width; ++e) to[e] += weight * static_cast<float>(from[e]);
      }
      T* out = static_cast<T*>(c.out) + g * c.width;
      for (int64_t e = 0; e < c.width; ++e) out[e] = static_cast<T>(sums[static_cast<size_t>(e)]);
    }
  });
}

}  // namespace

// Each kernel by its number in jobs.py.
extern "C" void run_job(int64_t kernel, const Call* call) {
  const Call& c = *call;
  if (kernel == 0) group_sums<false>(c);
  if (kernel == 1) group_sums<true>(c);
  if (kernel == 2)
    in_any_order(c, -std::numeric_limits<double>::infinity(), Maximum{static_cast<const double*>(c.values)});
  if (kernel == 3) in_any_order<int64_t>(c, 0, Count{});
  if (kernel == 4) edge_rows<false>(c);
  if (kernel == 5) edge_rows<true>(c);
  if (kernel == 6) pointed_rows<float>(c);
  if (kernel == 7) pointed_rows<_Float16>(c);
  if (kernel == 8) positions(c);
}
