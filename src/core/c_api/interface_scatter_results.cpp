// Implements the functions of the C interface that find results of scatters other than their output:
// gradients, positions of extremes, and spreads.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "c_api/interface.hpp"
#include "scatter_results/scatter_results.hpp"

namespace {

using namespace gatherum;

Gradients gradients_of(const gatherum_gradients& gradients) {
  const auto in = [](const gatherum_buffer& b) { return static_cast<const char*>(b.start); };
  const auto out = [](const gatherum_buffer& b) { return static_cast<char*>(b.start); };
  return {.data = in(gradients.data),
          .updates = in(gradients.updates),
          .result = in(gradients.result),
          .gradient = in(gradients.gradient),
          .of_data = out(gradients.of_data),
          .of_updates = out(gradients.of_updates)};
}

// Returns the first operand that shares memory with a gradient, or null if there is none. The gradients must
// not share memory either.
const char* find_overlap(const Program& p, const gatherum_gradients& gradients) {
  const int64_t bytes = limited_product(p.item, p.result.items());
  const int64_t of_updates = gradients.of_updates.start == nullptr ? 0 : gradients.of_updates.bytes_after;
  const int64_t updates = p.reaches.updates.high, compared = gradients.result.start == nullptr ? 0 : bytes;
  const std::vector<NamedFootprint> read = {
      {"data", {gradients.data.start, p.fold_rule.include_self ? bytes : 0}},
      {"updates", {gradients.updates.start, updates}},
      {"result", {gradients.result.start, compared}},
      {"gradient", {gradients.gradient.start, bytes}}};
  const Footprint written[] = {{gradients.of_data.start, gradients.of_data.start == nullptr ? 0 : bytes},
                               {gradients.of_updates.start, of_updates}};
  for (const Footprint& one : written) {
    if (shares_indices(one, p, gradients.indices.start)) return "indices";
    if (const char* name = find_shared(one, read); name != nullptr) return name;
  }
  return shares_memory(written[0], written[1]) ? "of_updates" : nullptr;
}

// Returns the first operand that is smaller than the gradients require, or null if there is none.
const char* find_too_small(const Program& p, const gatherum_gradients& gradients) {
  const int64_t bytes =
      limited_product(p.item, p.result.items());  // of the output, which is copied as one run
  const auto is_wanted = [](const gatherum_buffer& b) { return b.start != nullptr; };
  const auto holds = [&](const gatherum_buffer& like_out, const gatherum_buffer& like_updates) {
    return find_too_small(p, like_out, gradients.indices, like_updates, {});
  };
  const auto small = [&](const char* name, const gatherum_buffer& b) {
    const bool is_null = b.start == nullptr && bytes > 0;
    return is_null || b.bytes_after < bytes || holds(b, gradients.updates) != nullptr ? name : nullptr;
  };
  const gatherum_operands read = {gradients.gradient, gradients.indices, gradients.updates,
                                  gradients.gradient, nullptr,           0};
  if (const char* name = find_null(p, read); name != nullptr)
    return std::strcmp(name, "data") == 0 ? "gradient" : name;
  if (const char* name = holds(gradients.gradient, gradients.updates); name != nullptr)
    return std::strcmp(name, "out") == 0 ? "gradient" : name;
  if (gradients.gradient.bytes_after < bytes) return "gradient";
  if (is_wanted(gradients.of_updates) && holds(gradients.gradient, gradients.of_updates) != nullptr)
    return "of_updates";
  if (is_wanted(gradients.of_data) && small("of_data", gradients.of_data) != nullptr) return "of_data";
  if (p.fold_rule.include_self && small("data", gradients.data) != nullptr) return "data";
  const bool compares = row_of(p.fold_rule.reduction).gradient == Gradient::extreme;
  return compares ? small("result", gradients.result) : nullptr;
}

// Returns the first operand that shares memory with the result of argmax or argmin, or null if there is none.
// `out` is contiguous.
const char* find_overlap(const Program& p, const gatherum_operands& operands, const Footprint& positions) {
  if (shares_indices(positions, p, operands.indices.start)) return "indices";
  return find_shared(positions, {{"data", data_footprint(p.copy, operands.data.start)},
                                 {"updates", moved_footprint(p.nest, operands.updates.start)},
                                 {"out", {operands.out.start, limited_product(p.result.items(), p.item)}}});
}

gatherum_status spreads_of(const gatherum_program* program, const gatherum_operands* operands, bool skips_nan,
                           const gatherum_buffer* squares, const gatherum_buffer* counts,
                           const gatherum_poll* poll, gatherum_error* error) noexcept {
  if (is_any_null({{"program", program}, {"operands", operands}, {"squares", squares}, {"counts", counts}},
                  error))
    return GATHERUM_INVALID_CALL;
  const Program& p = program->value;
  const bool only_counts = skips_nan && squares->start == nullptr;
  if (!finds_spreads(p) || (only_counts && moves_items(p.nest)))
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "there are no spreads of this program");
  const int64_t bytes = limited_product(p.result.items(), sizeof(double));
  static_assert(sizeof(double) == sizeof(int64_t));
  for (const auto& [name, b] : {std::pair{"squares", squares}, std::pair{"counts", counts}})
    if (!(only_counts && b == squares) && (b->start == nullptr || b->bytes_after < bytes))
      return report_failure(GATHERUM_TOO_SMALL, error, kTooSmall, name);
  gatherum_operands read = *operands;
  // These two are not accessed, but the results must have a place for every item of the output.
  read.data = read.out = gatherum_memory(counts->start, limited_product(p.result.items(), p.item));
  const gatherum_status status = check_operands(p, read, false, error);
  if (status != GATHERUM_OK) return status;
  const Footprint updates = moved_footprint(p.nest, operands->updates.start), number{counts->start, bytes};
  return with_memory(error, [&] {
    const Footprint square{squares->start, only_counts ? 0 : bytes};
    for (const Footprint& written : {square, number}) {
      if (shares_indices(written, p, operands->indices.start)) return report_overlap(error, "indices");
      if (shares_memory(written, updates)) return report_overlap(error, "updates");
    }
    if (shares_memory(square, number)) return report_overlap(error, "counts");
    const Spreads to{.squares = static_cast<double*>(squares->start),
                     .counts = static_cast<int64_t*>(counts->start)};
    return report(
        find_spreads(p, static_cast<const char*>(operands->indices.start),
                     static_cast<const char*>(operands->updates.start), skips_nan, to, poll_of(poll)),
        error);
  });
}

gatherum_status extremes_of(const gatherum_program* program, const gatherum_operands* operands,
                            bool skips_nan, const gatherum_buffer* positions, int64_t none,
                            const gatherum_poll* poll, gatherum_error* error) noexcept {
  if (is_any_null({{"program", program}, {"operands", operands}, {"positions", positions}}, error))
    return GATHERUM_INVALID_CALL;
  const Program& p = program->value;
  const bool wants_result = operands->out.start != nullptr;
  const int64_t items = p.result.items();
  // An array without items may have any address.
  const bool needs_new_result = items > 0 && (operands->data.start == operands->out.start ||
                                              (!wants_result && p.fold_rule.include_self));
  const bool known = skips_nan ? has_positions_of_numbers(p) && !wants_result : has_positions(p);
  if (!known || needs_new_result)
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "there are no positions of this program");
  // The result and the positions are contiguous, so each has `items` elements from its start address on.
  gatherum_operands contiguous = *operands;
  const int64_t bytes = limited_product(items, p.item);
  contiguous.out =
      gatherum_memory(operands->out.start, wants_result ? std::min(operands->out.bytes_after, bytes) : bytes);
  const gatherum_status status = check_operands(p, contiguous, wants_result, error);
  if (status != GATHERUM_OK) return status;
  const int64_t numbers = limited_product(items, sizeof(int64_t));
  if (numbers > 0 && (positions->start == nullptr || positions->bytes_after < numbers))
    return report_failure(GATHERUM_TOO_SMALL, error, kTooSmall, "positions");
  const Operands to = operands_of(p, *operands);
  const Extremes extremes{.updates = to.moved,
                          .result = to.data,
                          .positions = static_cast<int64_t*>(positions->start),
                          .none = none};
  const auto* source = static_cast<const char*>(operands->data.start);
  return with_memory(error, [&] {
    const char* shared = find_overlap(p, *operands, {positions->start, numbers});
    if (shared != nullptr) return report_overlap(error, shared);
    if (!skips_nan) return report(find_extremes(p, to.index, source, extremes, poll_of(poll)), error);
    Program skipping = p;
    skipping.fold_rule.skips_nan = true;
    return report(find_extremes(skipping, to.index, source, extremes, poll_of(poll)), error);
  });
}

}  // namespace

gatherum_status gatherum_differentiate(const gatherum_program* program, const gatherum_gradients* gradients,
                                       const gatherum_poll* poll, gatherum_error* error) noexcept {
  if (is_any_null({{"program", program}, {"gradients", gradients}}, error)) return GATHERUM_INVALID_CALL;
  const Program& p = program->value;
  if (!p.scatter || !has_gradients(p.fold_rule))
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "there are no gradients of this program");
  if (const char* small = find_too_small(p, *gradients); small != nullptr)
    return report_failure(GATHERUM_TOO_SMALL, error, kTooSmall, small);
  const auto* index = static_cast<const char*>(gradients->indices.start);
  return with_memory(error, [&] {
    if (const char* shared = find_overlap(p, *gradients); shared != nullptr)
      return report_overlap(error, shared);
    return report(
        differentiate(p, index, gradients_of(*gradients), gradients->of_updates.bytes_after, poll_of(poll)),
        error);
  });
}

gatherum_status gatherum_extremes(const gatherum_program* program, const gatherum_operands* operands,
                                  const gatherum_buffer* positions, int64_t none, const gatherum_poll* poll,
                                  gatherum_error* error) noexcept {
  return extremes_of(program, operands, false, positions, none, poll, error);
}

gatherum_status gatherum_extremes_skip_nan(const gatherum_program* program, const gatherum_operands* operands,
                                           const gatherum_buffer* positions, int64_t none,
                                           const gatherum_poll* poll, gatherum_error* error) noexcept {
  return extremes_of(program, operands, true, positions, none, poll, error);
}

gatherum_status gatherum_spreads(const gatherum_program* program, const gatherum_operands* operands,
                                 const gatherum_buffer* squares, const gatherum_buffer* counts,
                                 const gatherum_poll* poll, gatherum_error* error) noexcept {
  return spreads_of(program, operands, false, squares, counts, poll, error);
}

gatherum_status gatherum_spreads_skip_nan(const gatherum_program* program, const gatherum_operands* operands,
                                          const gatherum_buffer* squares, const gatherum_buffer* counts,
                                          const gatherum_poll* poll, gatherum_error* error) noexcept {
  return spreads_of(program, operands, true, squares, counts, poll, error);
}
