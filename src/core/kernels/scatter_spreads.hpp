// scatter_spreads: the squared distances of the updates from the exact mean of their destination, for
// variances.
//
//   m[i] = (U[t0] + U[t1] + ...) / C[i],  exact, rounded once to float64,   t0 < t1 < ... that hit i
//   S[i] = (U[t0] - m[i])^2 + (U[t1] - m[i])^2 + ...,  a left fold in float64
//
// C[i] is the number of updates. If it is 0, S[i] is 0. The bits of a NaN in S are unspecified. If the call
// skips NaN, updates that are NaN are neither counted nor folded.
//
// Both passes over the updates stay in one task, which has a range of the destinations.
// scatter_slabs.hpp lists the guarantees of the plan. The caller guarantees that there is exactly one unit,
// without columns. Cost: the updates and indices are read twice per range, and arrays of distances are not
// written. (10M float64 into 10,000: 171 ms of processor time by gathers and scatters, 98 this way; float32:
// 178 and 75, or 94 with sums of float64.)
#pragma once

#include "fold/skip_nan.hpp"
#include "kernels/scatter_slabs.hpp"

namespace gatherum::GATHERUM_LEVEL {

// Sums of squared distances, each next to its mean.
template <class V>
class SquareSlab {
  struct Slot {
    double mean, sum;
  };

 public:
  using Stored = typename StoredAs<V>::Type;

  static int64_t bytes(int64_t slots) { return slots * static_cast<int64_t>(sizeof(Slot)); }

  SquareSlab(char* scratch, int64_t slots) : slots_(reinterpret_cast<Slot*>(scratch)), count_(slots) {
    std::fill_n(slots_, slots, Slot{});
  }

  class Taker {
   public:
    GATHERUM_INLINE void operator()(int64_t slot, Stored update) const { add(slot, update); }
    GATHERUM_INLINE void add(int64_t slot, Stored update) const {
      using Widened = Arithmetic<V, std::conditional_t<kIsHalf<V>, float, double>>;
      Slot& accumulator = slots_[slot];
      const double distance = double{Widened::template widen<Branched>(update)} - accumulator.mean;
      accumulator.sum += distance * distance;
    }
    GATHERUM_INLINE void fetch(int64_t slot) const { fetch_slot<Slot>(slots_, slot); }

   private:
    friend class SquareSlab;
    explicit Taker(Slot* slots) : slots_(slots) {}
    Slot* const GATHERUM_RESTRICT slots_;
  };

  Taker taker(int64_t first = 0) const { return Taker(slots_ + first); }

  void set_mean(int64_t slot, double mean) const { slots_[slot].mean = mean; }
  void write(double* to) const {
    for (int64_t i = 0; i < count_; ++i) to[i] = slots_[i].sum;
  }

 private:
  Slot* const slots_;
  const int64_t count_;
};

template <class V>
using MeanSlab = Slab<Fold<V, Reduction::fmean>, true>;

template <class V>
int64_t spread_bytes(int64_t slots) {
  return MeanSlab<V>::bytes(slots) + SquareSlab<V>::bytes(slots);
}

// A slab that skips updates that are NaN if `skips` is true.
template <class V, class Slab>
class NumberSlab {
 public:
  using Stored = typename StoredAs<V>::Type;

  NumberSlab(const Slab& slab, bool skips) : slab_(slab), skips_(skips) {}

  class Taker {
   public:
    GATHERUM_INLINE void operator()(int64_t slot, Stored update) const { add(slot, update); }
    GATHERUM_INLINE void add(int64_t slot, Stored update) const {
      if (!skips_ || is_number<V>(update)) [[likely]]
        taker_.add(slot, update);
    }
    GATHERUM_INLINE void fetch(int64_t slot) const { taker_.fetch(slot); }

   private:
    friend class NumberSlab;
    Taker(typename Slab::Taker taker, bool skips) : taker_(taker), skips_(skips) {}
    const typename Slab::Taker taker_;
    const bool skips_;
  };

  Taker taker(int64_t first = 0) const { return {slab_.taker(first), skips_}; }

 private:
  const Slab& slab_;
  const bool skips_;
};

// Folds the updates of a task once. Returns false if it skipped an invalid tuple.
template <class V, class Slab>
bool take_once(const SlabScatter& call, const TaskInput& input, const Operands& operands, const Slab& all) {
  using Numbers = NumberSlab<V, Slab>;
  const Numbers slab(all, call.fold_rule.skips_nan);
  if (call.ranges == 1 && !call.numbering->far && folds_checked<Numbers>(*call.numbering))
    return take_checked(slab, input.numbering(), call.unit_loops, input.range, operands);
  return take_units<typename Numbers::Stored>(slab, input.numbering(), call.unit_loops, input.range, operands,
                                              input.share);
}

// Writes the sums and the counts of a task's destinations. Returns false if it skipped an invalid tuple.
template <class V>
bool spread_take(const SlabScatter& call, const Operands& operands, const Spreads& to, int64_t task,
                 char* scratch) {
  const TaskPart part = part_of_task(call, operands, task);
  const int64_t slots = part.layout.count;
  const TaskInput input(call, part);
  MeanSlab<V> sums(scratch, part.layout, false, false);
  sums.read();
  bool valid = take_once<V>(call, input, operands, sums);
  const SquareSlab<V> squares(scratch + MeanSlab<V>::bytes(slots), slots);
  std::fill_n(to.counts + part.first, slots, 0);
  sums.each_mean([&](int64_t slot, double mean, int64_t count) {
    squares.set_mean(slot, mean);
    to.counts[part.first + slot] = count;
  });
  valid &= take_once<V>(call, input, operands, squares);
  squares.write(to.squares + part.first);
  return valid;
}

}  // namespace gatherum::GATHERUM_LEVEL
