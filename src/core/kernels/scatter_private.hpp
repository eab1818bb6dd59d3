// scatter_private: scatters integers, or into exact sums, with few destinations and several threads. Each
// thread folds a piece of the updates into private accumulators. The accumulators of all threads are then
// merged.
//
//   S_0[i] = D[i],  S_p[i] = the fold's neutral element                       take, for each piece p:
//   S_p[i] = fold(S_p[i], U[t])  for the updates t of piece p that hit i
//   D[i]   = fold(... fold(S_0[i], S_1[i]) ..., S_p[i])                        write
//
// For exact sums of few destinations the accumulators of a thread are tables (exact_table.hpp).
//
// For integers, sums and products modulo 2^n, maxima and minima have the same bits in any order. The same
// holds for exact sums; their old values are added at the end. scatter_slabs.hpp lists
// the guarantees of the plan. The caller guarantees that there is exactly one unit, without columns, and that
// there are few accumulators in comparison with the updates. Cost: every update is read once, by one thread;
// then the accumulators of all threads are read once.
#pragma once

#include "fold/exact/exact_table.hpp"
#include "kernels/scatter_slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class F>
Slab<F, false> private_slab(const PrivateScatter& call, const Operands& operands, int64_t piece) {
  const char* from = call.source != nullptr ? call.source : operands.data;
  return {call.slabs + piece * call.slab_bytes,
          {.from = from,
           .to = operands.data,
           .step = call.step,
           .column_step = 0,
           .count = call.destinations,
           .columns = 1},
          call.fold_rule.include_self,
          false};
}

inline Range units_of(const PrivateScatter& call, int64_t piece) {
  const int64_t begin = piece * call.piece_units;
  return {.chunk = call.chunk, .begin = begin, .end = std::min(begin + call.piece_units, call.units)};
}

template <class F>
ExactTables<F> private_tables(const PrivateScatter& call, int64_t piece) {
  return {call.slabs + piece * call.slab_bytes, call.destinations};
}

// The same for exact sums in tables, which are settled at intervals.
template <class F>
bool private_take_tabled(const PrivateScatter& call, const Operands& operands, int64_t piece) {
  ExactTables<F> tables = private_tables<F>(call, piece);
  tables.clear(call.destinations);
  const Range all = units_of(call, piece);
  const int64_t step = ExactTables<F>::kMostTerms / call.chunk;
  bool valid = true;
  for (int64_t unit = all.begin; unit < all.end; unit += step) {
    const Range range{.chunk = call.chunk, .begin = unit, .end = std::min(unit + step, all.end)};
    const SlabShare share{.owned = {}, .first = 0, .by_column = false, .origin = 0};
    valid &=
        take_units<typename F::Stored>(tables, *call.numbering, call.numbering->line, range, operands, share);
    tables.settle(call.destinations);
  }
  return valid;
}

// Returns false if it found an invalid index.
template <class F>
bool private_take(const PrivateScatter& call, const Operands& operands, int64_t piece) {
  if constexpr (kHasTable<F>)
    if (call.tables) return private_take_tabled<F>(call, operands, piece);
  const Nest& numbering = *call.numbering;
  Slab<F, false> slab = private_slab<F>(call, operands, piece);
  if constexpr (kIsExact<F>)
    slab.read();
  else
    piece == 0 ? slab.read() : slab.fill(F::neutral());
  const SlabShare share{.owned = {}, .first = 0, .by_column = false, .origin = 0};
  return take_units<typename F::Stored>(slab, numbering, numbering.line, units_of(call, piece), operands,
                                        share);
}

// The same for tables. Their states contain all terms.
template <class F>
void private_write_tabled(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  const char* from = call.source != nullptr ? call.source : operands.data;
  for (int64_t i = begin; i < end; ++i) {
    char* const state = private_tables<F>(call, 0).state(i);
    for (int64_t piece = 1; piece < call.pieces; ++piece)
      F::State::merge(state, private_tables<F>(call, piece).state(i));
    const auto old = load_value<typename F::Stored>(from + i * call.step);
    const auto v = finish_exact<F>(state, 0, old, call.fold_rule.include_self);
    std::memcpy(operands.data + i * call.step, &v, sizeof v);
  }
}

// Merges and writes destinations [begin, end).
template <class F>
void private_write(const PrivateScatter& call, const Operands& operands, int64_t begin, int64_t end) {
  if constexpr (kHasTable<F>)
    if (call.tables) return private_write_tabled<F>(call, operands, begin, end);
  Slab<F, false> sum = private_slab<F>(call, operands, 0);
  for (int64_t piece = 1; piece < call.pieces; ++piece)
    sum.fold_in(private_slab<F>(call, operands, piece), begin, end);
  sum.write(begin, end, call.streams);
}

}  // namespace gatherum::GATHERUM_LEVEL
