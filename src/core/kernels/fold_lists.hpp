// fold_lists: sorts edges by destination, and reduces the rows of a table along these edges.
//
//   out[d] = finish(fold(... fold(fold(start[d], m(e0)), m(e1)) ...), count),   e0 < e1 < ... of d
//   m(e) = table[source(e)], or table[source(e)] * weights[e], rounded to the stored type
//
// A stable counting sort orders the edges. The two indices of every edge are read and checked once, stored as
// numbers, counted piece by piece, and written to the lists (row_lists.cpp). Then one destination is reduced
// after another: rows are prefetched, accumulators stay in cache, and every destination is written once.
// Cost: 8 bytes per edge are written and read in order, and 4 or 8 bytes are written at random positions;
// then the rows of the table are read.
#pragma once

#include <algorithm>

#include "fold/exact/exact_rows.hpp"
#include "kernels/row_sums.hpp"
#include "kernels/scatter_rows.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class Visit>
auto by_number(bool wide, const Visit& visit) {
  return wide ? visit(uint64_t{}) : visit(uint32_t{});
}

// The units of a piece.
inline Range piece_range(const ListStage& call, int64_t piece) {
  const int64_t begin = piece * call.piece_units, end = std::min(begin + call.piece_units, call.units);
  return {.chunk = call.chunk, .begin = call.first + begin, .end = call.first + end};
}

// The number of the first edge of a unit.
inline int64_t first_edge(const ListStage& call, int64_t unit) {
  const int64_t line = call.numbering->line_loop().extent, chunks = (line - 1) / call.chunk + 1;
  const auto edges_before = [=, &call](int64_t u) { return u / chunks * line + u % chunks * call.chunk; };
  return edges_before(unit) - edges_before(call.first);
}

template <class Number>
bool stage_edges(const ListStage& call, const char* targets, const char* sources, int64_t piece) {
  constexpr Number none = std::numeric_limits<Number>::max();
  const Range range = piece_range(call, piece);
  auto* edge_destination = reinterpret_cast<Number*>(call.edge_destination);
  auto* edge_row = reinterpret_cast<Number*>(call.edge_row);
  Number* const counts = reinterpret_cast<Number*>(call.counts) + piece * call.destinations;
  std::memset(counts, 0, sizeof(Number) * static_cast<size_t>(call.destinations));
  const auto bucket_size = static_cast<Number>(call.bucket_size);
  int64_t edge = first_edge(call, range.begin);
  const int64_t first = edge;
  Number last = 0;
  bool ascends = true;
  const auto count = [&](const Tile& to, const Tile* from) {
    for (int j = 0; j < to.n; ++j, ++edge) {
      const bool valid = to.offsets[j] != kInvalid && (from == nullptr || from->offsets[j] != kInvalid);
      auto list = static_cast<Number>(to.offsets[j]);
      if (from != nullptr)
        edge_row[edge] = static_cast<Number>(from->offsets[j]);
      else if (bucket_size > 1)
        edge_row[edge] = list % bucket_size, list /= bucket_size;
      edge_destination[edge] = valid ? list : none;
      ascends &= valid && list >= last;
      last = list;
      if (valid) ++counts[list];
    }
  };
  const auto note_order = [&] {
    if (call.orders != nullptr && edge > first)
      call.orders[piece] = {static_cast<int64_t>(edge_destination[first]), static_cast<int64_t>(last),
                            ascends};
  };
  TileIterator to(*call.numbering, call.numbering->line, range, targets);
  if (call.sources == nullptr) {
    for (; !to.done(); to.next()) count(to.current(), nullptr);
    note_order();
    return to.valid();
  }
  TileIterator from(*call.sources, call.sources->line, range, sources);
  for (; !to.done(); to.next(), from.next()) count(to.current(), &from.current());
  note_order();
  return to.valid() && from.valid();
}

template <class Number>
void place_edges(const ListStage& call, int64_t piece) {
  constexpr Number none = std::numeric_limits<Number>::max();
  const Range range = piece_range(call, piece);
  const int64_t begin = first_edge(call, range.begin), end = first_edge(call, range.end);
  const auto* edge_destination = reinterpret_cast<const Number*>(call.edge_destination);
  const auto* edge_row = reinterpret_cast<const Number*>(call.edge_row);
  Number* const next = reinterpret_cast<Number*>(call.counts) + piece * call.destinations;
  auto* rows = reinterpret_cast<Number*>(call.rows);
  auto* edges = reinterpret_cast<Number*>(call.edges);
  if (call.in_order) {
    for (int64_t e = begin; e < end; ++e)
      rows[e] = edge_row == nullptr ? static_cast<Number>(e) : edge_row[e];
    for (int64_t e = begin; e < end && edges != nullptr; ++e) edges[e] = static_cast<Number>(e);
    return;
  }
  for (int64_t e = begin; e < end; ++e) {
    if (edge_destination[e] == none) continue;
    const Number at = next[edge_destination[e]]++;
    rows[at] = edge_row == nullptr ? static_cast<Number>(e) : edge_row[e];
    if (edges != nullptr) edges[at] = static_cast<Number>(e);
  }
}

// Copies W-byte weights in the order of the lists.
template <int W>
void order_weights(const ListFold& call, char* to, int64_t begin, int64_t end) {
  const Nest& loops = *call.weight_loops;
  const auto number_at = [&](int64_t i) -> int64_t {
    if (call.wide) return load_value<int64_t>(call.edges + i * 8);
    return load_value<uint32_t>(call.edges + i * 4);
  };
  for (int64_t i = begin; i < end; ++i) {
    int64_t edge = number_at(i), offset = 0;
    for (int l = loops.rank - 1; l > 0; --l) {
      offset += edge % loops.loops[l].extent * loops.loops[l].moved;
      edge /= loops.loops[l].extent;
    }
    store_item(to + i * W, load_item<W>(call.weights + offset + edge * loops.loops[0].moved));
  }
}

class FoldLists {
 public:
  // Folds rows [begin, end) of the lists into the next part of a destination. `remaining` is the number of
  // bytes of the destination that remain. Returns the size of the part in bytes.
  using FoldPart = int64_t (FoldLists::*)(int64_t begin, int64_t end, char* to, const char* from,
                                          int64_t row_offset, int64_t remaining) const;

  // Folds destinations [first, last) whose rows are a few contiguous items.
  using FoldRows = void (FoldLists::*)(int64_t first, int64_t last) const;
  struct Functions {
    FoldPart fold_part;
    FoldRows fold_rows;  // null: rows have other sizes
  };

  template <class F>
  static Functions functions_of(const ListFold& call) {
    const int64_t items = call.rows->block / call.rows->item;
    if (call.wide || !is_contiguous(*call.rows)) return {&FoldLists::fold_part<F>, nullptr};
    return {&FoldLists::fold_part<F>,
            call.weights == nullptr ? fold_rows_of<F, false>(items) : fold_rows_of<F, true>(items)};
  }

  FoldLists(const ListFold& call, Functions functions)
      : call_(call), nest_(*call.rows), functions_(functions) {}

  void operator()(int64_t first, int64_t last) const {
    if (functions_.fold_rows != nullptr) return (this->*functions_.fold_rows)(first, last);
    const bool contiguous = is_contiguous(nest_);
    int64_t begin = number_at(call_.starts, first);
    if (call_.far) fetch_first(begin);
    for (int64_t d = first, end = 0; d < last; ++d, begin = end) {
      end = number_at(call_.starts, d + 1);
      const int64_t row = d * call_.out_step;
      if (contiguous)
        fold_block(begin, end, row, ByteOffsets{});
      else
        each_row_point(nest_.loops, nest_.rank, ByteOffsets{},
                       [&](const ByteOffsets& p) { fold_block(begin, end, row, p); });
    }
  }

  static bool is_contiguous(const Nest& nest) { return nest.rank == 1 && nest.line_loop().extent == 1; }

  template <class F>
  int64_t fold_part(int64_t begin, int64_t end, char* to, const char* from, int64_t row_offset,
                    int64_t remaining) const {
    if constexpr (kIsExact<F>)
      return fold_exactly<F>(begin, end, to, from, row_offset, remaining);
    else
      return fold_rounding<F>(begin, end, to, from, row_offset, remaining);
  }

 private:
  // Rows of few items are prefetched kRowsAheadIfSmall rows ahead. Rows of at most kLargestUnfetched bytes
  // are not prefetched, because the processor has already started to read them (100k rows of 32 bytes: 3.6 ns
  // each).
  static constexpr int64_t kRowsAheadIfSmall = 32, kLargestUnfetched = 8;

  template <class F>
  int64_t fold_exactly(int64_t begin, int64_t end, char* to, const char* from, int64_t row_offset,
                       int64_t remaining) const {
    using Product = decltype(product_of(F{}));
    const int64_t n = std::min(ExactRow<F>::kPartItems, remaining / ExactRow<F>::kItemBytes);
    char scaled[ExactRow<F>::kPartItems * ExactRow<F>::kItemBytes];
    ExactRow<F> sums(n);
    const bool includes_self = from != nullptr && call_.fold_rule.include_self;
    for (int64_t i = begin; i < end; ++i) sums.add_row(message_of_row<Product>(i, row_offset, n, scaled));
    if (includes_self) sums.add_row(from);
    sums.finish(to, end - begin + (includes_self ? 1 : 0));
    return n * ExactRow<F>::kItemBytes;
  }

  template <class F>
  int64_t fold_rounding(int64_t begin, int64_t end, char* to, const char* from, int64_t row_offset,
                        int64_t remaining) const {
    const bool weighted = call_.weights != nullptr;
    if constexpr (kSumsRows<F>) {
      if (!weighted && remaining >= Lines<F, 4>::kBytes)
        return fold_in_vectors<F, 4, false>(begin, end, to, from, row_offset);
      if (!weighted && remaining >= Lines<F, 1>::kBytes)
        return fold_in_vectors<F, 1, false>(begin, end, to, from, row_offset);
    }
    if constexpr (kSumsProducts<F>) {
      if (remaining >= Lines<F, 4>::kBytes)
        return fold_in_vectors<F, 4, true>(begin, end, to, from, row_offset);
      if (remaining >= Lines<F, 1>::kBytes)
        return fold_in_vectors<F, 1, true>(begin, end, to, from, row_offset);
    }
    return fold_on_stack<F>(begin, end, to, from, row_offset, remaining);
  }

  template <class F, bool Weighted>
  static FoldRows fold_rows_of(int64_t items) {
    if constexpr (kFoldsFewItems<F>) {
      if (items == 1) return &FoldLists::fold_few_items<FewItemsFold<F, 1, Weighted>, F, Weighted>;
      if (items == 2) return &FoldLists::fold_few_items<FewItemsFold<F, 2, Weighted>, F, Weighted>;
      if (items == 4) return &FoldLists::fold_few_items<FewItemsFold<F, 4, Weighted>, F, Weighted>;
      if (items == 8) return &FoldLists::fold_few_items<FewItemsFold<F, 8, Weighted>, F, Weighted>;
      if (items == 16) return &FoldLists::fold_few_items<FewItemsFold<F, 16, Weighted>, F, Weighted>;
    }
    return nullptr;
  }

  template <class Sums, class F, bool Weighted>
  void fold_few_items(int64_t first, int64_t last) const {
    // These are local copies, because no store can change a local copy.
    const ListFold& call = call_;
    const char *const starts = call.starts, *const numbers = call.numbers, *const table = call.table;
    const char *const start = call.start, *const weights = call.weights;
    char* const out = call.out;
    const int64_t step = call.table_step, out_step = call.out_step, last_row = call.kept_edges - 1;
    const bool includes_self = start != nullptr && call.fold_rule.include_self,
               far = call.far && Sums::kBytes > kLargestUnfetched;
    const auto at = [=](int64_t i) { return table + load_value<uint32_t>(numbers + i * 4) * step; };
    const auto row = [=](int64_t i) {
      if (far) {
        const char* ahead = at(std::min(i + kRowsAheadIfSmall, last_row));
        prefetch(ahead);
        prefetch(ahead + Sums::kBytes - 1);  // always, since a branch would often be mispredicted
      }
      return at(i);
    };
    int64_t begin = load_value<uint32_t>(starts + first * 4);
    for (int64_t d = first, end = 0; d < last; ++d, begin = end) {
      end = load_value<uint32_t>(starts + d * 4 + 4);
      char* const to = out + d * out_step;
      const char* const from = start == nullptr ? nullptr : start + d * out_step;
      if (begin == end) [[unlikely]]
        write_empty(to, from, Sums::kBytes);
      else
        fold_in_registers<Sums, F, Weighted>(begin, end, to, includes_self ? from : nullptr, weights, row);
    }
  }

  // Returns the message of the i-th row: its n elements, or their products with the row's weight, which are
  // written to `scaled`.
  template <class Product>
  GATHERUM_NOINLINE const char* message_of_row(int64_t i, int64_t row_offset, int64_t n,
                                               char* GATHERUM_RESTRICT scaled) const {
    using T = typename Product::Stored;
    constexpr auto step = static_cast<int64_t>(sizeof(T));
    const char* src = row(i, row_offset, n * step);
    if (call_.weights == nullptr) return src;
    const auto w = Product::template widen<Selected>(load_value<T>(call_.weights + i * step));
    for (int64_t e = 0; e < n; ++e) {
      const auto x = Product::template widen<Selected>(load_value<T>(src + e * step));
      const T m = Product::template narrow<Selected>(Product::template fold<Selected>(x, w));
      std::memcpy(scaled + e * step, &m, sizeof m);
    }
    return scaled;
  }

  template <class F>
  int64_t fold_on_stack(int64_t begin, int64_t end, char* to, const char* from, int64_t row_offset,
                        int64_t remaining) const {
    using T = typename F::Stored;
    using Product = decltype(product_of(F{}));
    constexpr auto step = static_cast<int64_t>(sizeof(T));
    const int64_t n = std::min(kStackItems, remaining / step);
    char scaled[kStackItems * step];
    typename F::Sum sums[kStackItems];
    const bool includes_self = from != nullptr && call_.fold_rule.include_self;
    const char* first = includes_self ? from : message_of_row<Product>(begin, row_offset, n, scaled);
    for (int64_t e = 0; e < n; ++e) sums[e] = F::template widen<Selected>(load_value<T>(first + e * step));
    for (int64_t i = includes_self ? begin : begin + 1; i < end; ++i) {
      const char* src = message_of_row<Product>(i, row_offset, n, scaled);
      for (int64_t e = 0; e < n; ++e)
        sums[e] =
            F::template fold<Selected>(sums[e], F::template widen<Selected>(load_value<T>(src + e * step)));
    }
    for (int64_t e = 0; e < n; ++e) {
      const T v = F::template finish<Selected>(sums[e], end - begin + (includes_self ? 1 : 0), true);
      std::memcpy(to + e * step, &v, sizeof v);
    }
    return n * step;
  }

  // Rows of 64 float32: 33 ns each on the stack, 25 in registers.
  template <class F, int K>
  using Lines = VectorSums<F, K * 64 / int{sizeof(typename F::Sum)}>;

  template <class F, int K, bool Weighted>
  int64_t fold_in_vectors(int64_t begin, int64_t end, char* to, const char* from, int64_t row_offset) const {
    constexpr int64_t bytes = Lines<F, K>::kBytes;
    fold_in_registers<Lines<F, K>, F, Weighted>(begin, end, to, call_.fold_rule.include_self ? from : nullptr,
                                                call_.weights,
                                                [=, this](int64_t i) { return row(i, row_offset, bytes); });
    return bytes;
  }

  // `self` is the old value if the fold includes it, and null otherwise.
  template <class Sums, class F, bool Weighted, class Row>
  static GATHERUM_INLINE void fold_in_registers(int64_t begin, int64_t end, char* to, const char* self,
                                                const char* weights, const Row& row) {
    using T = typename F::Stored;
    Sums sums;
    const auto weight = [=](int64_t i) { return load_value<T>(weights + i * int64_t{sizeof(T)}); };
    int64_t i = begin;
    if (self != nullptr)
      sums.begin(self);
    else if constexpr (Weighted)
      sums.begin(row(i), weight(i)), ++i;
    else
      sums.begin(row(i)), ++i;
    for (; i < end; ++i) {
      const char* src = row(i);
      if constexpr (Weighted)
        sums.add(src, weight(i));
      else
        sums.add(src);
    }
    // A single row is copied unchanged.
    const int64_t count = end - begin + (self != nullptr ? 1 : 0);
    sums.finish(to, count, Weighted || count > 1);
  }

  // Returns the i-th row of the lists, `bytes` bytes from byte `row_offset` on. Prefetches later rows.
  GATHERUM_INLINE const char* row(int64_t i, int64_t row_offset, int64_t bytes) const {
    if (call_.far) fetch(i, row_offset, bytes);
    return call_.table + number_at(call_.numbers, i) * call_.table_step + row_offset;
  }
  GATHERUM_INLINE void fetch(int64_t i, int64_t row_offset, int64_t bytes) const {
    each_of_burst(i, call_.kept_edges, [&](int64_t k) { fetch_row(k, row_offset, bytes); });
  }
  // Prefetches the first rows, which no burst prefetches (fold_pointed.hpp, 800k rows of 256 bytes in
  // portions of 4096: 5 % less time).
  void fetch_first(int64_t begin) const {
    const int64_t end = std::min((begin + kBurst - 1) / kBurst * kBurst + kBurstAhead, call_.kept_edges);
    const int64_t bytes = std::min<int64_t>(nest_.block, 4 * kCacheLine);
    for (int64_t k = begin; k < end; ++k) fetch_row(k, 0, bytes);
  }
  GATHERUM_INLINE void fetch_row(int64_t k, int64_t row_offset, int64_t bytes) const {
    prefetch_bytes<FetchTo::second>(call_.table, number_at(call_.numbers, k) * call_.table_step + row_offset,
                                    bytes);
  }

  GATHERUM_INLINE int64_t number_at(const char* numbers, int64_t i) const {
    if (call_.wide) return load_value<int64_t>(numbers + i * 8);
    return load_value<uint32_t>(numbers + i * 4);
  }

  void fold_block(int64_t begin, int64_t end, int64_t row, const ByteOffsets& p) const {
    for (int64_t row_offset = 0, done = 0; row_offset < nest_.block; row_offset += done) {
      char* to = call_.out + row + p.moved + row_offset;
      const char* from = call_.start == nullptr ? nullptr : call_.start + row + p.moved + row_offset;
      done = nest_.block - row_offset;
      if (begin == end)
        write_empty(to, from, done);
      else
        done = (this->*functions_.fold_part)(begin, end, to, from, p.data + row_offset, done);
    }
  }

  // Writes a destination without rows.
  void write_empty(char* to, const char* from, int64_t bytes) const {
    if (from == to) return;
    if (from != nullptr) return copy_run(to, from, bytes);
    for (int64_t row_offset = 0; row_offset < bytes; row_offset += nest_.item)
      std::memcpy(to + row_offset, call_.fill, static_cast<size_t>(nest_.item));
  }

  const ListFold& call_;
  const Nest& nest_;
  const Functions functions_;
};

}  // namespace gatherum::GATHERUM_LEVEL
