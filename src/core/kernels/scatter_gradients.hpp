// scatter_gradients: the gradients of a product, a maximum or a minimum, for each destination. The updates
// are first sorted by destination, as in groups.hpp; each group is then processed forwards and
// backwards.
//
//   mul       dU[t] = G[g] * conj(before[t] * behind[t])     dD[g] = G[g] * conj(behind[-1])
//             before[t]: the product of D[g] and the updates before t, folded from the left;
//             behind[t]: the product of the updates after t, folded from the right
//   max, min  dU[t] = is(U[t], R[g]) * share                  dD[g] = is(D[g], R[g]) * share
//             share = G[g] / (the number of D[g] and the updates that are R[g]); all NaN are equal
//
// D is used only if the fold includes it; otherwise dD is 0. Products are computed without division, so zeros
// and infinities need no special case. The plan guarantees the same as in groups.hpp. D, R, G and
// dD have the layout of the scatter's output, and dU has the updates' layout. Cost: each row of updates is
// read twice, the second time from cache if groups are short. The gradient of a row is written once, or twice
// for products.
#pragma once

#include "kernels/groups.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class T>
GATHERUM_INLINE T conjugate(T v) {
  return v;
}
template <class T>
GATHERUM_INLINE Complex<T> conjugate(Complex<T> v) {
  return {v.re, -v.im};
}

template <class T>
inline constexpr T kOne = T{1};
template <>
inline constexpr Complex<float> kOne<Complex<float>> = {1, 0};
template <>
inline constexpr Complex<double> kOne<Complex<double>> = {1, 0};

class GroupGradients : GroupRows {
 public:
  using GroupRows::RowPart;
  using DifferentiatePart = void (GroupGradients::*)(const Group&, const RowPart&) const;

  // `part` is the function that processes one part of a row, for the reduction and value type of the call.
  GroupGradients(const GroupedScatter& call, const Gradients& gradients, int64_t unit,
                 DifferentiatePart differentiate_part)
      : GroupRows(call, unit), gradients_(gradients), differentiate_part_(differentiate_part) {}

  void operator()(int64_t destination, const Group& group) const {
    each_part(destination, [&](const RowPart& row) { (this->*differentiate_part_)(group, row); });
  }

  // For rows of at most kCapacity items.
  template <class V, int64_t kCapacity>
  void differentiate_product(const Group& group, const RowPart& row) const {
    using F = Fold<V, Reduction::mul>;
    using T = typename F::Stored;
    static_assert(std::is_same_v<T, typename F::Sum>);  // partial products are stored in the gradients
    const int64_t n = kCapacity == 1 ? 1 : row.elements;
    T folded[kCapacity];
    std::fill_n(folded, n, kOne<T>);
    if (gradients_.of_updates != nullptr) {
      if (include_self_) load_row(gradients_.data + row.data, n, folded);
      for (int64_t t = 0; t < group.n; ++t) {
        fetch<T>(group, t, row);
        const int64_t offset = row.moved + offset_of_update(group[t]);
        store_row(gradients_.of_updates + offset, n, [&](int64_t e) { return folded[e]; });
        for (int64_t e = 0; e < n; ++e)
          folded[e] = F::template fold<Selected>(folded[e], value<T>(gradients_.updates + offset, e));
      }
      std::fill_n(folded, n, kOne<T>);
    }
    T gradient[kCapacity];
    load_row(gradients_.gradient + row.data, n, gradient);
    const auto times_gradient = [&](T factor, int64_t e) {
      return F::template fold<Selected>(gradient[e], conjugate(factor));
    };
    for (int64_t t = group.n - 1; t >= 0; --t) {
      const int64_t offset = row.moved + offset_of_update(group[t]);
      if (char* const to = gradients_.of_updates; to != nullptr)
        store_row(to + offset, n, [&](int64_t e) {
          return times_gradient(F::template fold<Selected>(value<T>(to + offset, e), folded[e]), e);
        });
      for (int64_t e = 0; e < n; ++e)
        folded[e] = F::template fold<Selected>(value<T>(gradients_.updates + offset, e), folded[e]);
    }
    store_of_data<T>(row.data, n, [&](int64_t e) { return times_gradient(folded[e], e); });
  }

  template <class V, int64_t kCapacity>
  void differentiate_extreme(const Group& group, const RowPart& row) const {
    using F = Fold<V, Reduction::mean>;
    using T = typename F::Stored;
    using Sum = typename F::Sum;
    const int64_t n = kCapacity == 1 ? 1 : row.elements;
    Sum result[kCapacity];
    int64_t count[kCapacity];
    const auto widened = [](const char* from, int64_t e) {
      return F::template widen<Selected>(value<T>(from, e));
    };
    const auto is_result = [&](const char* from, int64_t e) {
      const Sum v = widened(from, e), r = result[e];
      return (v == r) | ((v != v) & (r != r));
    };
    for (int64_t e = 0; e < n; ++e) result[e] = widened(gradients_.result + row.data, e);
    for (int64_t e = 0; e < n; ++e)
      count[e] = include_self_ && is_result(gradients_.data + row.data, e) ? 1 : 0;
    for (int64_t begin = 0; begin < group.n; begin += kMostCounted)
      add_counts<T, kCapacity>(group, begin, row, is_result, count);
    T share[kCapacity];
    for (int64_t e = 0; e < n; ++e)
      share[e] = F::template narrow<Selected>(
          divide(widened(gradients_.gradient + row.data, e), std::max<int64_t>(count[e], 1)));
    for (int64_t t = 0; t < group.n && gradients_.of_updates != nullptr; ++t) {
      const int64_t offset = row.moved + offset_of_update(group[t]);
      store_row(gradients_.of_updates + offset, n,
                [&](int64_t e) { return is_result(gradients_.updates + offset, e) ? share[e] : T{}; });
    }
    store_of_data<T>(row.data, n,
                     [&](int64_t e) { return is_result(gradients_.data + row.data, e) ? share[e] : T{}; });
  }

 private:
  // The maximum number of updates that are counted in 32 bits. A vector of these counts has as many lanes as
  // a vector of floats.
  static constexpr int64_t kMostCounted = int64_t{1} << 30;

  template <class T>
  static GATHERUM_INLINE T value(const char* from, int64_t e) {
    return load_value<T>(from + e * static_cast<int64_t>(sizeof(T)));
  }

  template <class T>
  static GATHERUM_INLINE void load_row(const char* from, int64_t n, T* to) {
    for (int64_t e = 0; e < n; ++e) to[e] = value<T>(from, e);
  }

  // Stores n elements, a vector of them at a time, like FoldInto.
  template <class Make>
  static GATHERUM_INLINE void store_row(char* to, int64_t n, const Make& make) {
    using T = decltype(make(int64_t{0}));
    constexpr auto step = static_cast<int64_t>(sizeof(T));
    constexpr int64_t lanes = std::max<int64_t>(1, 8 * kLanes / step);
    int64_t e = 0;
    for (; e + lanes <= n; e += lanes) {
      T values[lanes];
      for (int64_t l = 0; l < lanes; ++l) values[l] = make(e + l);
      std::memcpy(to + e * step, values, sizeof values);
    }
    for (; e < n; ++e) {
      const T values = make(e);
      std::memcpy(to + e * step, &values, sizeof values);
    }
  }

  // Stores the gradient of the old values, if requested.
  template <class T, class Make>
  GATHERUM_INLINE void store_of_data(int64_t offset, int64_t n, const Make& make) const {
    if (gradients_.of_data == nullptr) return;
    store_row(gradients_.of_data + offset, n, [&](int64_t e) { return include_self_ ? make(e) : T{}; });
  }

  template <class T, int64_t kCapacity, class IsResult>
  GATHERUM_INLINE void add_counts(const Group& group, int64_t begin, const RowPart& row,
                                  const IsResult& is_result, int64_t* count) const {
    using Count = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    const int64_t n = kCapacity == 1 ? 1 : row.elements;
    Count counted[kCapacity];
    std::fill_n(counted, n, Count{0});
    for (int64_t t = begin; t < std::min(group.n, begin + kMostCounted); ++t) {
      fetch<T>(group, t, row);
      const char* updates = gradients_.updates + row.moved + offset_of_update(group[t]);
      for (int64_t e = 0; e < n; ++e) counted[e] += is_result(updates, e) ? 1 : 0;
    }
    for (int64_t e = 0; e < n; ++e) count[e] += counted[e];
  }

  GATHERUM_INLINE int64_t offset_of_update(int64_t t) const { return update_offset(nest_, unit_loops_, t); }

  template <class T>
  GATHERUM_INLINE void fetch(const Group& group, int64_t t, const RowPart& row) const {
    const int64_t bytes = row.elements * static_cast<int64_t>(sizeof(T)), ahead = rows_ahead(bytes);
    if (!prefetches_ || group.n + group.next - t <= ahead) return;
    const int64_t offset = row.moved + offset_of_update(group[t + ahead]);
    prefetch_bytes(gradients_.updates, offset, bytes);
    if (gradients_.of_updates != nullptr)
      prefetch_bytes<FetchTo::write>(gradients_.of_updates, offset, bytes);
  }

  const Gradients& gradients_;
  const DifferentiatePart differentiate_part_;
};

}  // namespace gatherum::GATHERUM_LEVEL
