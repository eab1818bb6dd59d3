// Implements the cumulative functions of the C interface.
#include <algorithm>
#include <cstring>

#include "c_api/interface.hpp"
#include "engine/owned_memory.hpp"
#include "kernels/cumulation.hpp"

namespace {

using namespace gatherum;

// The number of values between two questions to `poll`.
constexpr int64_t kPieceValues = int64_t{1} << 20;

// Finds the kind and the fold of a cumulative function. Returns false if the type has no such function.
bool find_function(const gatherum_cumulation& of, Cumulative& kind, FoldRule& fold_rule) {
  if (!find_name(of.value, fold_rule.value)) return false;
  const bool recurs = std::strcmp(of.function, "recurrence") == 0;
  if (recurs || std::strcmp(of.function, "previous") == 0) {
    kind = recurs ? Cumulative::recurrence : Cumulative::previous;
    return kind_of(fold_rule.value) == kFloats;
  }
  kind = Cumulative::fold;
  if (!find_name(of.function, fold_rule.reduction) || fold_rule.reduction == Reduction::none) return false;
  const ReductionRow row = row_of(fold_rule.reduction);
  return !row.divides && !row.exact && has_meaning(fold_rule.value, fold_rule.reduction);
}

// Returns true if an array is missing, or if the results share memory with an operand.
bool is_unfit(const gatherum_cumulation& of, const void* to, int64_t n, int64_t item, bool recurs) {
  if (of.values == nullptr || of.groups == nullptr || to == nullptr || (recurs && of.factors == nullptr))
    return true;
  const Footprint written(to, limited_product(n, item));
  return shares_memory(written, {of.values, limited_product(n, item)}) ||
         shares_memory(written, {of.groups, limited_product(n, of.group_bytes)}) ||
         (recurs && shares_memory(written, {of.factors, limited_product(n, item)}));
}

gatherum_status cumulate_in_parts(Cumulation& call, int64_t n, int64_t sum_bytes, const Poll& poll) {
  const OwnedMemory sums(limited_product(call.group_count, sum_bytes)), begun(call.group_count);
  call.sums = sums.get();
  call.begun = reinterpret_cast<uint8_t*>(begun.get());
  std::memset(call.begun, 0, static_cast<size_t>(call.group_count));
  for (int64_t i = 0; i < n; i += kPieceValues) {
    call.begin = i;
    call.end = std::min(i + kPieceValues, n);
    cumulate(call);
    if (call.end < n && poll.ask != nullptr && poll.ask(poll.context) != 0) return GATHERUM_INTERRUPTED;
  }
  return GATHERUM_OK;
}

}  // namespace

gatherum_status gatherum_cumulate(const gatherum_cumulation* of, void* to, int64_t n,
                                  const gatherum_poll* poll) noexcept {
  if (of == nullptr || of->function == nullptr || of->value == nullptr || n < 0 || of->group_count < 0 ||
      (of->group_bytes != 4 && of->group_bytes != 8))
    return GATHERUM_INVALID_CALL;
  Cumulation call{};
  if (!find_function(*of, call.kind, call.fold_rule)) return GATHERUM_INVALID_PROGRAM;
  if (n == 0) return GATHERUM_OK;
  const int64_t item = bytes_of(call.fold_rule.value);
  if (is_unfit(*of, to, n, item, call.kind == Cumulative::recurrence)) return GATHERUM_INVALID_CALL;
  call.values = static_cast<const char*>(of->values);
  call.factors = static_cast<const char*>(of->factors);
  call.groups = static_cast<const char*>(of->groups);
  call.wide = of->group_bytes == 8;
  call.group_count = of->group_count;
  call.out = static_cast<char*>(to);
  const int64_t sum_bytes = bytes_of(sum_type(call.fold_rule.value, call.fold_rule.reduction));
  return with_memory(nullptr, [&] { return cumulate_in_parts(call, n, sum_bytes, poll_of(poll)); });
}
