// cumulate: writes a result for each value of a group, from the values of the group up to this one.
//
//   S[c] = first ? widen(V[i]) : fold(S[c], widen(V[i])),  out[i] = narrow(S[c])   fold
//   S[c] = first ? V[i] : S[c] * A[i] + V[i],              out[i] = S[c]           recurrence
//   out[i] = first ? 0 : S[c],                             S[c] = V[i]             previous
//
// c is the number of the group of value i, `first` is true for the first value of a group, and i is in order.
// A value whose c is not the number of a group gets 0. Values, factors (A), groups and results are
// contiguous. Cost: each array is read or written once, in order; the accumulators (S) in any order.
#pragma once

#include "kernels/cumulation.hpp"
#include "kernels/slab_sums.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Calls `step(i, group, first)` for the values with a group, which returns a result. Other results are 0.
template <class Stored, class Group, class Step>
GATHERUM_INLINE void each_value(const Cumulation& call, const Step& step) {
  const auto groups = static_cast<uint64_t>(call.group_count);
  for (int64_t i = call.begin; i < call.end; ++i) {
    const Group number = load_value<Group>(call.groups + i * static_cast<int64_t>(sizeof(Group)));
    const auto group = static_cast<uint64_t>(opaque_integer(number));
    Stored result{};
    if (group < groups) {
      const bool first = call.begun[group] == 0;
      call.begun[group] = 1;
      result = step(i, static_cast<int64_t>(group), first);
    }
    put<Stored>(call.out, i, result);
  }
}

template <class F, class Group>
void cumulate_folds(const Cumulation& call) {
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;
  each_value<Stored, Group>(call, [&](int64_t i, int64_t group, bool first) {
    Sum sum = F::template widen<Branched>(get<Stored>(call.values, i));
    if constexpr (std::is_same_v<typename F::Value, Boolean>) sum = sum != 0;
    if (!first) sum = F::fold(get<Sum>(call.sums, group), sum);
    put<Sum>(call.sums, group, sum);
    return F::template finish<Branched>(sum, 1, true);
  });
}

template <class T, class Group>
void cumulate_linearly(const Cumulation& call) {
  each_value<T, Group>(call, [&](int64_t i, int64_t group, bool first) {
    T value = get<T>(call.values, i);
    if (!first)
      value = add<Branched>(mul<Branched>(get<T>(call.sums, group), get<T>(call.factors, i)), value);
    put<T>(call.sums, group, value);
    return value;
  });
}

template <class T, class Group>
void find_previous(const Cumulation& call) {
  each_value<T, Group>(call, [&](int64_t i, int64_t group, bool first) {
    const T previous = first ? T{} : get<T>(call.sums, group);
    put<T>(call.sums, group, get<T>(call.values, i));
    return previous;
  });
}

}  // namespace gatherum::GATHERUM_LEVEL
