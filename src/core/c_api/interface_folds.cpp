// Implements the functions of the C interface on contiguous arrays: scatters in batches, gathers of quantized
// rows, and exp and log.
#include <algorithm>
#include <cstring>

#include "c_api/interface.hpp"
#include "engine/accumulator.hpp"
#include "engine/levels.hpp"
#include "engine/schedule.hpp"
#include "quantized/quantized.hpp"

namespace {

using namespace gatherum;

// Converts a fold. Returns false if it is not supported.
bool fold_of(const gatherum_fold& f, FoldType& type) {
  FoldRule& fold_rule = type.fold_rule;
  if (!find_name(f.reduction, fold_rule.reduction) || !find_name(f.value, fold_rule.value)) return false;
  fold_rule.include_self = f.include_self != 0;
  type.item = f.item;
  const bool moves = fold_rule.reduction == Reduction::none;
  return f.item >= 0 && (moves || (has_meaning(fold_rule.value, fold_rule.reduction) &&
                                   bytes_of(fold_rule.value) == f.item));
}

// Runs `body(type)` on arrays of n elements, none of which may be null. `body` fails only if an allocation
// fails.
template <class Body>
gatherum_status with_fold(const gatherum_fold* fold, int64_t n, std::initializer_list<NamedPointer> arrays,
                          const Body& body) {
  if (fold == nullptr || n < 0 || (n > 0 && is_any_null(arrays, nullptr))) return GATHERUM_INVALID_CALL;
  FoldType type;
  if (!fold_of(*fold, type)) return GATHERUM_INVALID_PROGRAM;
  return with_memory(nullptr, [&] { return body(type); });
}

// The memory of an accumulator's arrays.
Footprint counts_footprint(const int64_t* counts, int64_t n) {
  return {counts, limited_product(n, sizeof(int64_t))};
}
Footprint sums_footprint(const FoldType& type, const void* sums, int64_t n) {
  return {sums, limited_product(n, type.sum_bytes())};
}
Footprint items_footprint(const FoldType& type, const void* items, int64_t n) {
  return {items, limited_product(n, type.item)};
}

bool quantized_of(const gatherum_quantized& c, QuantizedGather& q) {
  q = {};
  if (!find_name(c.value, q.codes.type) || !find_name(c.scale, q.scale) || !find_name(c.result, q.result))
    return false;
  q.codes.bits = c.bits;
  q.codes.packed = c.packed != 0 && c.bits != 8;
  q.data = static_cast<const char*>(c.data);
  q.scales = static_cast<const char*>(c.scales);
  q.zeros = static_cast<const char*>(c.zero_points);
  q.zero = c.zero;
  q.out = static_cast<char*>(c.out);
  q.row_numbers = c.rows;
  q.count = c.count;
  q.outer = c.before[0];
  q.outer_quantized = c.before[1];
  q.outer_after = c.before[2];
  q.rows = c.gathered;
  q.inner = c.after[0];
  q.quantized = c.after[1];
  q.after = c.after[2];
  q.outer_block = c.blocks[0];
  q.row_block = c.blocks[1];
  q.block = c.blocks[2];
  q.scale_line = c.scale_line;
  return has_meaning(q);
}

}  // namespace

gatherum_status gatherum_fold_describe(const gatherum_fold* fold, int32_t* any_order,
                                       int64_t* sum_bytes) noexcept {
  if (any_order == nullptr || sum_bytes == nullptr) return GATHERUM_INVALID_CALL;
  return with_fold(fold, 0, {}, [&](const FoldType& type) {
    *any_order = type.any_order() ? 1 : 0;
    *sum_bytes = type.sum_bytes();
    return GATHERUM_OK;
  });
}

gatherum_status gatherum_fold_begin(const gatherum_fold* fold, const void* data, void* sums,
                                    int64_t n) noexcept {
  return with_fold(fold, n, {{"data", data}, {"sums", sums}}, [&](const FoldType& type) {
    if (shares_memory(sums_footprint(type, sums, n), items_footprint(type, data, n)))
      return GATHERUM_INVALID_CALL;
    begin_fold(type, static_cast<const char*>(data), static_cast<char*>(sums), n);
    return GATHERUM_OK;
  });
}

gatherum_status gatherum_fold_take(const gatherum_program* program, const gatherum_operands* operands,
                                   void* sums, int64_t* counts, const gatherum_poll* poll,
                                   gatherum_error* error) noexcept {
  if (is_any_null({{"program", program}, {"operands", operands}}, error)) return GATHERUM_INVALID_CALL;
  const Program& p = program->value;
  if (!p.scatter)
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "this is not the program of a scatter");
  const int64_t n = p.result.items();
  if (p.has_points && is_any_null({{"sums", sums}, {"counts", counts}}, error)) return GATHERUM_INVALID_CALL;
  if (p.has_points && is_any_null({{"updates", operands->updates.start}}, error))
    return GATHERUM_INVALID_CALL;
  if (p.tuples > 0 && is_any_null({{"indices", operands->indices.start}}, error))
    return GATHERUM_INVALID_CALL;
  const auto* index = static_cast<const char*>(operands->indices.start);
  const auto* updates = static_cast<const char*>(operands->updates.start);
  const FoldType type{p.fold_rule, p.item};
  return with_memory(error, [&] {
    for (const Footprint& written : {sums_footprint(type, sums, n), counts_footprint(counts, n)}) {
      if (shares_indices(written, p, index)) return report_overlap(error, "indices");
      if (shares_memory(written, moved_footprint(p.nest, updates))) return report_overlap(error, "updates");
    }
    return report(
        accumulate(p, {.sums = static_cast<char*>(sums), .counts = counts}, index, updates, poll_of(poll)),
        error);
  });
}

gatherum_status gatherum_fold_merge(const gatherum_fold* fold, void* sums, int64_t* counts,
                                    const void* other_sums, const int64_t* other_counts, int64_t n) noexcept {
  const std::initializer_list<NamedPointer> arrays = {
      {"sums", sums}, {"counts", counts}, {"other_sums", other_sums}, {"other_counts", other_counts}};
  return with_fold(fold, n, arrays, [&](const FoldType& type) {
    const Footprint from = sums_footprint(type, other_sums, n), number = counts_footprint(other_counts, n);
    const Footprint to = sums_footprint(type, sums, n), counted = counts_footprint(counts, n);
    // An accumulator can be merged with itself.
    if ((sums != other_sums && shares_memory(to, from)) || shares_memory(to, number) ||
        (counts != other_counts && shares_memory(counted, number)) || shares_memory(counted, from))
      return GATHERUM_INVALID_CALL;
    if (!type.any_order()) return GATHERUM_INVALID_PROGRAM;
    merge_folds(type, {.to = {.sums = static_cast<char*>(sums), .counts = counts},
                       .other_sums = static_cast<const char*>(other_sums),
                       .other_counts = other_counts,
                       .n = n});
    return GATHERUM_OK;
  });
}

gatherum_status gatherum_fold_finish(const gatherum_fold* fold, const void* data, const void* sums,
                                     const int64_t* counts, void* out, int64_t n) noexcept {
  return with_fold(fold, n, {{"sums", sums}, {"counts", counts}, {"out", out}}, [&](const FoldType& type) {
    if (type.any_order() && n > 0 && data == nullptr) return GATHERUM_INVALID_CALL;
    const Footprint to = items_footprint(type, out, n);
    if (shares_memory(to, sums_footprint(type, sums, n)) || shares_memory(to, counts_footprint(counts, n)) ||
        (type.any_order() && shares_memory(to, items_footprint(type, data, n))))
      return GATHERUM_INVALID_CALL;
    finish_fold(type, {.data = static_cast<const char*>(data),
                       .sums = static_cast<const char*>(sums),
                       .counts = counts,
                       .out = static_cast<char*>(out),
                       .n = n});
    return GATHERUM_OK;
  });
}

gatherum_status gatherum_dequantize(const gatherum_quantized* call, const gatherum_poll* poll) noexcept {
  if (call == nullptr) return GATHERUM_INVALID_CALL;
  QuantizedGather gather;
  if (!quantized_of(*call, gather)) return GATHERUM_INVALID_PROGRAM;
  const QuantizedBytes needed = bytes_of(gather);
  if (needed.data > call->data_bytes || needed.scales > call->scales_bytes || needed.out > call->out_bytes ||
      (gather.zeros != nullptr && needed.zeros > call->zero_points_bytes))
    return GATHERUM_TOO_SMALL;
  const auto is_missing = [](const void* start, int64_t bytes) { return start == nullptr && bytes > 0; };
  const int64_t rows = limited_product(gather.count, sizeof(int64_t));
  if (is_missing(call->data, needed.data) || is_missing(call->scales, needed.scales) ||
      is_missing(call->out, needed.out) || is_missing(call->rows, rows))
    return GATHERUM_TOO_SMALL;
  const gatherum_status status = with_memory(nullptr, [&] {
    const char* shared =
        find_shared({call->out, needed.out},
                    {{"data", {call->data, needed.data}},
                     {"scales", {call->scales, needed.scales}},
                     {"zero_points", {call->zero_points, call->zero_points == nullptr ? 0 : needed.zeros}},
                     {"rows", {call->rows, rows}}});
    return shared == nullptr ? GATHERUM_OK : GATHERUM_INVALID_CALL;
  });
  if (status != GATHERUM_OK) return status;
  return run_quantized(gather, poll_of(poll)) ? GATHERUM_OK : GATHERUM_INTERRUPTED;
}

gatherum_status gatherum_map(const char* function, const char* value, const void* from, void* to, int64_t n,
                             const gatherum_poll* poll) noexcept {
  if (function == nullptr || value == nullptr || n < 0) return GATHERUM_INVALID_CALL;
  Value of;
  const bool is_exp = std::strcmp(function, "exp") == 0;
  if ((!is_exp && std::strcmp(function, "log") != 0) || !find_name(value, of) || !has_elementary(of))
    return GATHERUM_INVALID_PROGRAM;
  constexpr int64_t kTaskItems = int64_t{1} << 14;
  const int64_t item = bytes_of(of);
  if (n > 0 && (from == nullptr || to == nullptr)) return GATHERUM_INVALID_CALL;
  if (from != to && shares_memory({from, limited_product(n, item)}, {to, limited_product(n, item)}))
    return GATHERUM_INVALID_CALL;
  const auto map = [&](int64_t i, int) {
    const int64_t first = i * kTaskItems;
    chosen_kernels().elementary(is_exp ? Elementary::exp : Elementary::log, of,
                                static_cast<const char*>(from) + first * item,
                                static_cast<char*>(to) + first * item, std::min(kTaskItems, n - first));
  };
  const int threads = threads_for(2 * n * item);
  const bool finished = run_tasks((n + kTaskItems - 1) / kTaskItems, threads, poll_of(poll), map);
  return finished ? GATHERUM_OK : GATHERUM_INTERRUPTED;
}
