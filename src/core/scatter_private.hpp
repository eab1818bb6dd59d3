// scatter of integers, or into exact sums, of few destinations, by several threads: each folds a piece of the
// updates into accumulators of its own, and these are folded together.
//
//   S_0[i] = D[i],  S_p[i] = the fold's identity                              take, for each piece p:
//   S_p[i] = fold(S_p[i], U[t])  for the updates t of piece p that hit i
//   D[i]   = fold(... fold(S_0[i], S_1[i]) ..., S_p[i])                        write
//
// Integers: their sums and products modulo 2^n, maxima and minima are the same bits in any order. And exact
// sums, whose old values join them at the end.
// The plan guarantees what it does for slabs; the caller, that there is one unit, without columns. Cost:
// every update read once, by one thread; then the accumulators of all threads once, which the caller keeps
// few beside the updates.
#pragma once

#include "scatter_slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

template <class F>
Slab<F, false> private_slab(const PrivateScatter& call, const Operands& at, int64_t piece) {
  const char* from = call.source != nullptr ? call.source : at.data;
  return {call.slabs + piece * call.slab_bytes,
          {from, at.data, call.step, 0, call.destinations, 1},
          call.combine.include_self,
          false};
}

// Returns false when it met an invalid index.
template <class F>
bool private_take(const PrivateScatter& call, const Operands& at, int64_t piece) {
  const Nest& ids = *call.ids;
  Slab<F, false> slab = private_slab<F>(call, at, piece);
  if constexpr (kIsExact<F>)
    slab.read();
  else
    piece == 0 ? slab.read() : slab.fill(F::identity());
  const Share share{{}, 0, false, 0};
  const int64_t begin = piece * call.piece_units;
  const Range range{call.chunk, begin, std::min(begin + call.piece_units, call.units)};
  return take_units<typename F::Stored>(slab, ids, ids.line, range, at, share);
}

// Destinations [begin, end).
template <class F>
void private_write(const PrivateScatter& call, const Operands& at, int64_t begin, int64_t end) {
  Slab<F, false> sum = private_slab<F>(call, at, 0);
  for (int64_t piece = 1; piece < call.pieces; ++piece)
    sum.fold_in(private_slab<F>(call, at, piece), begin, end);
  sum.write(begin, end, call.streams);
}

}  // namespace gatherum::GATHERUM_LEVEL
