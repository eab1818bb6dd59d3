// A slab: accumulators in cache for a range of destinations. The destinations are read once, and written once
// after all updates.
//
//   slab[(i - first) * columns + j] = widen(D[i * step + j * column_step])       read
//   slab[...] = fold(slab[...], widen(update)), counting if the fold needs it     take
//   D[...] = finish(slab[...], count)                                             write
//
// The data are read from `from` and written to `to`. If a scatter is not in place, `from` is the data and
// `to` is the output, so the data need not be copied to the output first. Cost: two passes over the
// destinations.
#pragma once

#include "fold/exact/exact_sums.hpp"
#include "fold/skip_nan.hpp"
#include "kernels/slab_sums.hpp"

namespace gatherum::GATHERUM_LEVEL {

// True for folds of floats whose result is NaN if an operand is NaN. If no accumulator starts as a NaN, each
// NaN is made canonical at the end and not at every step. For means, the division makes a NaN canonical.
template <class F>
inline constexpr bool kSettlesLater = false;
template <class V, Reduction R>
  requires((R == Reduction::add && std::is_floating_point_v<V>) || R == Reduction::mean)
inline constexpr bool kSettlesLater<Fold<V, R>> = std::is_floating_point_v<typename Fold<V, R>::Sum>;

// One step of a fold. If kSettlesLater, the caller makes NaN canonical at the end.
template <class F>
GATHERUM_INLINE typename F::Sum fold_unsettled(typename F::Sum a, typename F::Sum b) {
  if constexpr (kSettlesLater<F>)
    return a + b;
  else
    return F::fold(a, b);
}

// Prefetches a slot. The slot may be invalid, because a prefetch does not fault, whatever its address is. Two
// blocks of slots fill the L1 cache, so this prefetches into L2 (1M float32: 2.2 ns per update -> 1.7,
// float64: 3.8 -> 2.1).
template <class Sum>
GATHERUM_INLINE void fetch_slot(const void* slots, int64_t slot) {
  const auto begin = reinterpret_cast<uintptr_t>(slots);
  prefetch_second(reinterpret_cast<const void*>(begin + static_cast<uintptr_t>(slot) * sizeof(Sum)));
  keep();
}

template <class F, bool Counted>
class Slab : public Sums<typename F::Conversion> {
 public:
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;
  using Base = Sums<typename F::Conversion>;
  // True if the first update of a slot is folded like later ones.
  static constexpr bool kFoldsAlike = !Counted;

  static int64_t bytes(int64_t slots) {
    return slots * static_cast<int64_t>(sizeof(Sum) + (Counted ? sizeof(int64_t) : 0));
  }

  // If `direct` is true, uses the output as the slab if the output's layout allows it.
  Slab(char* scratch, const Layout& s, bool include_self, bool direct)
      : Base(s), initial_count_(include_self ? 1 : 0) {
    if (direct && Base::kSame && !Counted && s.columns == 1 && s.step == Base::kPacked) scratch = s.to;
    // The counters come first, because they need the stricter alignment.
    counts_ = reinterpret_cast<int64_t*>(scratch);
    this->sums_ = scratch + (Counted ? this->slots() * static_cast<int64_t>(sizeof(int64_t)) : 0);
  }

  void read() { read(0, this->layout_.count); }
  void read(int64_t begin, int64_t end) {
    Base::read(begin, end);
    const int64_t columns = this->layout_.columns;
    if constexpr (Counted) std::fill(counts_ + begin * columns, counts_ + end * columns, initial_count_);
  }

  // Copies of the members that a loop over updates needs. Compilers would reload the members themselves after
  // every store.
  class Taker {
   public:
    GATHERUM_INLINE void operator()(int64_t slot, Stored update) const {
      if constexpr (Counted) {
        const bool first = counts_[slot] == 0;
        put<Sum>(sums_, slot,
                 first ? F::template widen<Branched>(update)
                       : F::fold(get<Sum>(sums_, slot), F::template widen<Branched>(update)));
        ++counts_[slot];
      } else {
        put<Sum>(sums_, slot, F::fold(get<Sum>(sums_, slot), F::template widen<Branched>(update)));
      }
    }

    // One step of a fold that is settled later.
    GATHERUM_INLINE void add(int64_t slot, Stored update) const {
      put<Sum>(sums_, slot, fold_unsettled<F>(get<Sum>(sums_, slot), F::template widen<Branched>(update)));
    }

    GATHERUM_INLINE void fetch(int64_t slot) const { fetch_slot<Sum>(sums_, slot); }

   private:
    friend class Slab;
    Taker(char* sums, int64_t* counts) : sums_(sums), counts_(counts) {}
    char* const GATHERUM_RESTRICT sums_;
    int64_t* const GATHERUM_RESTRICT counts_;
  };

  // Slot 0 of the taker is the slot `first` of the slab.
  Taker taker(int64_t first = 0) const { return {this->sum_at(first), Counted ? counts_ + first : counts_}; }

  // Calls fold(taker) with a taker whose slot 0 is a local copy of a slot, which can be in registers. Then
  // stores the copy.
  template <class Fold>
  GATHERUM_INLINE void fold_slot(int64_t slot, const Fold& fold) const {
    Sum sum = get<Sum>(this->sums_, slot);
    int64_t count = Counted ? counts_[slot] : 0;
    fold(Taker(reinterpret_cast<char*>(&sum), &count));
    put<Sum>(this->sums_, slot, sum);
    if constexpr (Counted) counts_[slot] = count;
  }

  // Returns true if any accumulator of the slots [begin, end) is a NaN.
  GATHERUM_NOINLINE bool has_nan(int64_t begin, int64_t end) const {
    int64_t nans = 0;
    for (int64_t i = begin; i < end; ++i) {
      const Sum v = get<Sum>(this->sums_, i);
      nans += v != v ? 1 : 0;
    }
    return nans != 0;
  }

  // Makes every NaN of the slots [begin, end) canonical.
  GATHERUM_NOINLINE void settle(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i)
      put<Sum>(this->sums_, i, Selected::canonical(get<Sum>(this->sums_, i)));
  }

  GATHERUM_NOINLINE void fill(Sum v) {
    for (int64_t i = 0; i < this->slots(); ++i) put<Sum>(this->sums_, i, v);
  }

  // Folds another slab's accumulators of the destinations [begin, end) into those of this slab.
  GATHERUM_NOINLINE void fold_in(const Slab& other, int64_t begin, int64_t end) {
    static_assert(!Counted);
    char* GATHERUM_RESTRICT sums = this->sums_;
    const char* GATHERUM_RESTRICT others = other.sums_;
    for (int64_t i = begin; i < end; ++i) put<Sum>(sums, i, F::fold(get<Sum>(sums, i), get<Sum>(others, i)));
  }

 private:
  const int64_t initial_count_;
  int64_t* counts_;
};

// A slab of means, or of folds that skip NaN, in which each sum is stored next to its count. Sums start from
// the neutral element, so the first update is folded like later updates. This changes only the bits of a NaN,
// and the division makes every NaN canonical.
template <class F>
  requires((F::kDivides && !kIsExact<F>) || kSkipsNaN<F>)
class Slab<F, true> {
  struct Slot {
    typename F::Sum sum;
    int64_t count;
  };

 public:
  using Stored = typename F::Stored;
  using Sum = typename F::Sum;
  static constexpr bool kFoldsAlike = true;

  static int64_t bytes(int64_t slots) { return slots * static_cast<int64_t>(sizeof(Slot)); }

  Slab(char* scratch, const Layout& s, bool include_self, bool)
      : layout_(s), slots_(reinterpret_cast<Slot*>(scratch)), initial_count_(include_self ? 1 : 0) {}

  void read() { read(0, layout_.count); }
  GATHERUM_NOINLINE void read(int64_t begin, int64_t end) {
    each(begin, end, [this](Slot& slot, int64_t offset) {
      const auto old = load_value<Stored>(layout_.from + offset);
      slot = {initial_count_ == 0 ? initial_sum() : F::template widen<Selected>(old), initial_count_};
    });
  }

  class Taker {
   public:
    GATHERUM_INLINE void operator()(int64_t slot, Stored update) const { add(slot, update); }
    GATHERUM_INLINE void add(int64_t slot, Stored update) const {
      Slot& accumulator = slots_[slot];
      if constexpr (kSkipsNaN<F>) {
        accumulator.sum =
            F::template fold<Selected>(accumulator.sum, F::template number_of<Selected>(update));
        accumulator.count += is_number<typename F::Value>(update) ? 1 : 0;
      } else {
        accumulator.sum = fold_unsettled<F>(accumulator.sum, F::template widen<Branched>(update));
        ++accumulator.count;
      }
    }
    GATHERUM_INLINE void fetch(int64_t slot) const { fetch_slot<Slot>(slots_, slot); }

   private:
    friend class Slab;
    explicit Taker(Slot* slots) : slots_(slots) {}
    Slot* const GATHERUM_RESTRICT slots_;
  };

  Taker taker(int64_t first = 0) const { return Taker{slots_ + first}; }

  template <class Fold>
  GATHERUM_INLINE void fold_slot(int64_t slot, const Fold& fold) const {
    Slot copy = slots_[slot];
    fold(Taker{&copy});
    slots_[slot] = copy;
  }

  GATHERUM_NOINLINE void write(int64_t begin, int64_t end, bool) const {
    each(begin, end, [this](const Slot& slot, int64_t offset) {
      const bool folded = slot.count != initial_count_;
      const Stored v = folded ? F::template finish<Selected>(slot.sum, slot.count, true)
                              : load_value<Stored>(layout_.from + offset);
      std::memcpy(layout_.to + offset, &v, sizeof v);
    });
  }

 private:
  static constexpr Sum initial_sum() {
    if constexpr (kSkipsNaN<F>)
      return F::neutral();
    else
      return kNothing<Sum>;
  }

  // Calls `visit(slot, byte offset)` for the destinations [begin, end).
  template <class Visit>
  void each(int64_t begin, int64_t end, const Visit& visit) const {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t c = 0; c < layout_.columns; ++c)
        visit(slots_[i * layout_.columns + c], i * layout_.step + c * layout_.column_step);
  }

  const Layout layout_;
  Slot* const slots_;
  const int64_t initial_count_;
};

// A slab of exact sums: counters, windows, and states. Few states are used. The sums contain only the
// updates; old values are added when the results are written.
template <class F, bool Counted>
  requires kIsExact<F>
class Slab<F, Counted> {
 public:
  using Stored = typename F::Stored;
  static constexpr bool kFoldsAlike = false;

  static int64_t bytes(int64_t slots) { return slots * (kHotBytes + F::kBytes); }

  Slab(char* scratch, const Layout& s, bool include_self, bool)
      : layout_(s), scratch_(scratch), include_self_(include_self) {}

  void read() { read(0, layout_.count); }
  void read(int64_t begin, int64_t end) {
    const int64_t first = begin * layout_.columns, count = end * layout_.columns - first;
    std::memset(scratch_ + first * kCounterBytes, 0, static_cast<size_t>(count * kCounterBytes));
    std::memset(window(first), 0, static_cast<size_t>(count * F::kWindowBytes));
  }

  class Taker {
   public:
    GATHERUM_INLINE void operator()(int64_t slot, Stored update) const {
      F::Window::add_term(windows_ + slot * F::kWindowBytes, states_ + slot * F::kBytes, update);
      if constexpr (Counted) ++counts_[slot];
    }
    GATHERUM_INLINE void add(int64_t slot, Stored update) const { (*this)(slot, update); }
    GATHERUM_INLINE void fetch(int64_t slot) const {
      prefetch_second(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(windows_) +
                                                    static_cast<uintptr_t>(slot * F::kWindowBytes)));
      keep();
    }

   private:
    friend class Slab;
    Taker(char* windows, char* states, int64_t* counts)
        : windows_(windows), states_(states), counts_(counts) {}
    char* const GATHERUM_RESTRICT windows_;
    char* const GATHERUM_RESTRICT states_;
    int64_t* const GATHERUM_RESTRICT counts_;
  };

  Taker taker(int64_t first = 0) const {
    return {window(first), state(first), reinterpret_cast<int64_t*>(scratch_) + first};
  }

  template <class Fold>
  void fold_slot(int64_t slot, const Fold& fold) const {
    fold(taker(slot));
  }

  void fold_in(const Slab& other, int64_t begin, int64_t end) {
    static_assert(!Counted);
    for (int64_t i = begin; i < end; ++i)
      F::Window::merge(window(i), state(i), other.window(i), other.state(i));
  }

  // Calls `visit(slot, mean, count)` for every slot with updates, with means in float64. Modifies the sums.
  template <class Visit>
  void each_mean(const Visit& visit) const {
    static_assert(Counted && F::kDivides);
    for (int64_t slot = 0; slot < slots(); ++slot) {
      const auto count = load_value<int64_t>(scratch_ + slot * kCounterBytes);
      if (count > 0) visit(slot, F::Window::finish_wide(window(slot), state(slot), F::divisor(count)), count);
    }
  }

  GATHERUM_NOINLINE void write(int64_t begin, int64_t end, bool) const {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t c = 0; c < layout_.columns; ++c) {
        const int64_t slot = i * layout_.columns + c, offset = i * layout_.step + c * layout_.column_step;
        const auto old = load_value<Stored>(layout_.from + offset);
        const Stored v =
            finish_exact<F>(window(slot), state(slot), Counted ? load_value<int64_t>(scratch_ + slot * 8) : 0,
                            old, include_self_);
        std::memcpy(layout_.to + offset, &v, sizeof v);
      }
  }

 private:
  static constexpr int64_t kCounterBytes = Counted ? 8 : 0, kHotBytes = kCounterBytes + F::kWindowBytes;

  int64_t slots() const { return layout_.count * layout_.columns; }
  char* window(int64_t slot) const { return scratch_ + slots() * kCounterBytes + slot * F::kWindowBytes; }
  char* state(int64_t slot) const { return scratch_ + slots() * kHotBytes + slot * F::kBytes; }

  const Layout layout_;
  char* const scratch_;
  const bool include_self_;
};

}  // namespace gatherum::GATHERUM_LEVEL
