// The folds of fsum and fmean: exact, order-independent sums of floats, rounded once.
//
//   D[e] = rounded(sum of the terms), or rounded(sum / count)
//
// exact_limbs.hpp defines the accumulators, and exact_window.hpp defines the few words to which most terms
// are added. exact_digits.hpp defines the rounding, and exact_rows.hpp defines the sums of rows. Guaranteed:
// the result is the exact sum, rounded once, for any order of the terms, and any split and merge of states.
#pragma once

#include "fold/exact/exact_window.hpp"

namespace gatherum::GATHERUM_LEVEL {

// True for folds whose accumulators are ExactSum states, which are modified in place.
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
  static constexpr int64_t kBytes = State::kBytes, kWindowBytes = Window::kWindowBytes;
  static_assert(has_meaning(kValueOf<V>, R), "dispatch.hpp makes folds that have a meaning");
  static_assert(kBytes == sum_bytes(kValueOf<V>, R), "callers allocate sum_bytes");
  static_assert(kWindowBytes == window_bytes(kValueOf<V>), "callers count with window_bytes");

  static constexpr bool kDivides = row_of(R).divides;
  static constexpr bool kAnyOrder = true;
  static constexpr bool kAnyOrderOfFirsts = true;

  // Returns the number that the sum is divided by.
  static uint64_t divisor(int64_t count) {
    return kDivides ? static_cast<uint64_t>(std::max<int64_t>(count, 1)) : 1;
  }
};

// Returns the result of a state with `count` updates. The old value is included if include_self; it is the
// result if there are no updates. Modifies the state, which must not be used afterwards.
template <class F>
typename F::Stored finish_exact(char* state, int64_t count, typename F::Stored old, bool include_self) {
  if (!F::State::is_touched(state)) return old;
  if (include_self) F::State::add_term(state, old);
  return F::State::finish(state, F::divisor(count + (include_self ? 1 : 0)));
}
// The same for a window and its state.
template <class F>
typename F::Stored finish_exact(char* window, char* state, int64_t count, typename F::Stored old,
                                bool include_self) {
  if (!F::Window::is_touched(window)) return old;
  if (include_self) F::Window::add_term(window, state, old);
  return F::Window::finish(window, state, F::divisor(count + (include_self ? 1 : 0)));
}

}  // namespace gatherum::GATHERUM_LEVEL
