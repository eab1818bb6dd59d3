// The folds of fsum and fmean: sums of floats without rounding, whatever their order, rounded once.
//
//   D[e] = rounded(sum of the terms), or rounded(sum / count)
//
// exact_limbs.hpp has the accumulators, exact_window.hpp the few words that most terms meet before,
// exact_digits.hpp the rounding, and exact_rows.hpp the sums of rows. Guaranteed: the bits of real arithmetic
// for any order of the terms, any split, and any merge of states.
#pragma once

#include "fold/exact/exact_window.hpp"

namespace gatherum::GATHERUM_LEVEL {

// The folds whose accumulators are such states. They are changed where they lie.
template <class F>
inline constexpr bool kIsExact = false;
template <class V, Reduction R>
  requires(bool{row_of(R).exact})
inline constexpr bool kIsExact<Fold<V, R>> = true;

template <class V, Reduction R>
  requires(bool{row_of(R).exact})
struct Fold<V, R> {
  using Value = V;
  using State = ExactSum<V>;
  using Window = ExactWindow<V>;
  using Stored = typename State::Stored;
  static constexpr int64_t kBytes = State::kBytes, kWindow = Window::kWindow;
  static_assert(has_meaning(kValueOf<V>, R), "dispatch.hpp makes folds that have a meaning");
  static_assert(kBytes == sum_bytes(kValueOf<V>, R), "callers allocate sum_bytes");
  static_assert(kWindow == window_bytes(kValueOf<V>), "callers count with window_bytes");

  static constexpr bool kDivides = row_of(R).divides;
  static constexpr bool kAnyOrder = true;
  static constexpr bool kAnyOrderOfFirsts = true;

  // What the sum is divided by.
  static uint64_t divisor(int64_t count) {
    return kDivides ? static_cast<uint64_t>(std::max<int64_t>(count, 1)) : 1;
  }
};

// What is stored of a state that has taken `count` updates, beside the old value or in its place. The state
// is of no use afterwards.
template <class F>
typename F::Stored finish_exact(char* state, int64_t count, typename F::Stored old, bool include_self) {
  if (!F::State::is_touched(state)) return old;
  if (include_self) F::State::take(state, old);
  return F::State::finish(state, F::divisor(count + (include_self ? 1 : 0)));
}
// The same of a window and its state.
template <class F>
typename F::Stored finish_exact(char* window, char* state, int64_t count, typename F::Stored old,
                                bool include_self) {
  if (!F::Window::is_touched(window)) return old;
  if (include_self) F::Window::take(window, state, old);
  return F::Window::finish(window, state, F::divisor(count + (include_self ? 1 : 0)));
}

}  // namespace gatherum::GATHERUM_LEVEL
