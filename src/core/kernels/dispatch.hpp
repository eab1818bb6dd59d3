// Chooses the instance of a kernel template: by the size of an item for movement, by the value type for
// reductions.
#pragma once

#include <type_traits>

#include "fold/exact/exact_sums.hpp"
#include "fold/order_keys.hpp"
#include "fold/skip_nan.hpp"
#include "kernels/slabs.hpp"
#include "kernels/table.hpp"
#include "model/widths.hpp"

// The slab kernels of this level or of the next lower one.
namespace gatherum::GATHERUM_SLABS {
void add_slab_kernels(Kernels& all);
void add_round_kernels(Kernels& all);
void add_spread_kernels(Kernels& all);
}  // namespace gatherum::GATHERUM_SLABS

namespace gatherum::GATHERUM_LEVEL {

// The translation units of a level. Each unit fills in its functions in the table. Several units compile
// faster than one, and show the progress of the build.
void add_grouped_kernels(Kernels& all);
void add_gradient_kernels(Kernels& all);
void add_list_kernels(Kernels& all);
void add_item_kernels(Kernels& all);
// The functions of slabs.cpp for folds that skip NaN.
int64_t skipping_bytes(const FoldRule& fold_rule, int64_t slots);
bool skipping_take(const SlabScatter& call, const Operands& operands, int64_t task, char* scratch);
void skipping_write(const SlabScatter& call, const Operands& operands, int64_t task, char* scratch);

// Calls f with the width of an item as a constant. The plan chooses these kernels only for these widths.
template <class F>
auto by_item(int64_t bytes, F&& f) {
  return with_width(Widths{}, bytes, f);
}

// Like by_item, for blocks. Calls f with 0 for a block of any other number of bytes.
template <class F>
auto by_width(int64_t bytes, F&& f) {
  return with_width(WidthsAnd<0>{}, bytes, f);
}

// Sums and products modulo 2^n have the same bits for signed and unsigned integers, so both use one instance.
template <class V, Reduction R>
auto fold_of() {
  if constexpr (std::is_integral_v<V> && (R == Reduction::add || R == Reduction::mul))
    return Fold<std::make_unsigned_t<V>, R>{};
  else
    return Fold<V, R>{};
}

// Calls f with the Fold of V and r. Considers the reductions from `first` on that are defined for V. (The
// function complete() has rejected others.)
template <class V, bool Counts, Reduction first = Reduction::add, class F>
auto by_reduction(Reduction r, F&& f) -> decltype(f(fold_of<V, Reduction::add>())) {
  constexpr auto next = static_cast<Reduction>(static_cast<int>(first) + 1);
  if constexpr (static_cast<int>(next) < kEnumerators<Reduction>)
    if (r != first) return by_reduction<V, Counts, next>(r, f);
  if constexpr (has_meaning(kValueOf<V>, first) && (Counts || !row_of(first).divides))
    if (r == first) return f(fold_of<V, first>());
  impossible();
}

// Calls f with the C++ type of a value type, in a std::type_identity.
template <class F>
auto by_type(Value value, F&& f) {
  switch (value) {
    case Value::none:
      break;
    case Value::boolean:
      return f(std::type_identity<Boolean>{});
    case Value::int8:
      return f(std::type_identity<int8_t>{});
    case Value::int16:
      return f(std::type_identity<int16_t>{});
    case Value::int32:
      return f(std::type_identity<int32_t>{});
    case Value::int64:
      return f(std::type_identity<int64_t>{});
    case Value::uint8:
      return f(std::type_identity<uint8_t>{});
    case Value::uint16:
      return f(std::type_identity<uint16_t>{});
    case Value::uint32:
      return f(std::type_identity<uint32_t>{});
    case Value::uint64:
      return f(std::type_identity<uint64_t>{});
    case Value::float16:
      return f(std::type_identity<Half>{});
    case Value::bfloat16:
      return f(std::type_identity<Bfloat16>{});
    case Value::float32:
      return f(std::type_identity<float>{});
    case Value::float64:
      return f(std::type_identity<double>{});
    case Value::complex64:
      return f(std::type_identity<Complex<float>>{});
    case Value::complex128:
      return f(std::type_identity<Complex<double>>{});
  }
  impossible();
}

// Calls f with the Fold of a value type and reduction. If `Counts` is false, excludes reductions that divide
// by a count.
template <bool Counts, class F>
auto by_value(Value value, Reduction r, F&& f) {
  return by_type(value, [&](auto type) { return by_reduction<typename decltype(type)::type, Counts>(r, f); });
}

// Calls f with the fold of a scatter that skips NaN.
template <class F>
auto by_numbers(const FoldRule& fold_rule, const F& f) {
  using Result = decltype(f(SkipNaN<Fold<double, Reduction::add>>{}));
  return by_value<true>(fold_rule.value, fold_rule.reduction, [&](auto fold) -> Result {
    if constexpr (requires { sizeof(SkipNaN<decltype(fold)>); })
      return f(SkipNaN<decltype(fold)>{});
    else
      impossible();
  });
}

// Calls `f(fold, keyed)` if the result does not depend on the order of folding: for integers, for exact sums,
// and for maxima and minima by their keys.
template <class F>
void by_private(const FoldRule& fold_rule, F&& f) {
  if (fold_rule.reduction == Reduction::none) return;
  by_value<true>(fold_rule.value, fold_rule.reduction, [&](auto fold) {
    using FoldType = decltype(fold);
    if constexpr (FoldType::kAnyOrder)
      if (!needs_counter(fold_rule)) return f(fold, std::false_type{});
    if constexpr (has_spare_key<FoldType>()) f(fold, std::true_type{});
  });
}

// Calls `f(fold, counted)` for the contents of a slab: moved items, sums, or sums with counters.
template <class F>
auto by_slab(const FoldRule& fold_rule, int64_t item, F&& f) {
  if (fold_rule.reduction == Reduction::none)
    return by_item(item, [&](auto width) { return f(Replace<decltype(width)::value>{}, std::false_type{}); });
  if (needs_counter(fold_rule))
    return by_value<true>(fold_rule.value, fold_rule.reduction,
                          [&](auto fold) { return f(fold, std::true_type{}); });
  return by_value<false>(fold_rule.value, fold_rule.reduction,
                         [&](auto fold) { return f(fold, std::false_type{}); });
}

}  // namespace gatherum::GATHERUM_LEVEL
