// Implements the C interface, include/gatherum.h, on top of the engine. These functions do not throw.
#include "c_api/interface.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "algorithms/algorithms.hpp"
#include "algorithms/execute.hpp"
#include "engine/accumulator.hpp"
#include "engine/index_checks.hpp"
#include "engine/levels.hpp"
#include "engine/memory.hpp"
#include "engine/schedule.hpp"
#include "engine/thresholds.hpp"
#include "include/gatherum.h"
#include "scatter_results/scatter_results.hpp"

namespace {

using namespace gatherum;

constexpr const char* kTooSmall = "an operand's memory is smaller than the program addresses";

// If several small items move as one block, they are also filled as one block, so the fill item is repeated
// to the size of the block.
const char* fill_block(const Nest& nest, const char* item, std::array<char, kWidestBlock>& block) {
  if (nest.block > kWidestBlock) return item;
  for (int64_t r = 0; r < nest.block; r += nest.item)
    std::memcpy(block.data() + r, item, static_cast<size_t>(nest.item));
  return block.data();
}

Operands operands_of(const Program& p, const gatherum_operands& operands) {
  Operands to;
  to.index = static_cast<const char*>(operands.indices.start);
  to.data = static_cast<char*>(p.scatter ? operands.out.start : operands.data.start);
  to.moved = static_cast<char*>(p.scatter ? operands.updates.start : operands.out.start);
  return to;
}

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

// Returns the first operand that is too small for its program, or null if there is none.
const char* find_too_small(const Program& p, const gatherum_operands& operands) {
  const gatherum_buffer source = p.scatter && !is_in_place(p, operands) ? operands.data : gatherum_buffer{};
  return p.scatter ? find_too_small(p, operands.out, operands.indices, operands.updates, source)
                   : find_too_small(p, operands.data, operands.indices, operands.out, {});
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

// If `writes` is true, the call writes to `out`, which must then have an address.
gatherum_status check_operands(const Program& p, const gatherum_operands& operands, bool writes,
                               gatherum_error* error) {
  const char* null = find_null(p, operands);
  if (null != nullptr && (writes || std::strcmp(null, "out") != 0))
    return report_failure(GATHERUM_TOO_SMALL, error, kTooSmall, null);
  if (const char* small = find_too_small(p, operands); small != nullptr)
    return report_failure(GATHERUM_TOO_SMALL, error, kTooSmall, small);
  return with_memory(error, [&] {
    const char* shared = writes ? find_overlap(p, operands) : nullptr;
    return shared == nullptr ? GATHERUM_OK : report_out_overlap(error, shared);
  });
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

}  // namespace

int32_t gatherum_abi_version(void) noexcept { return GATHERUM_ABI_VERSION; }

gatherum_status gatherum_program_read(const void* bytes, size_t size, gatherum_program** program,
                                      gatherum_error* error) noexcept {
  if (is_any_null({{"program", program}}, error)) return GATHERUM_INVALID_CALL;
  *program = nullptr;
  if (is_any_null({{"bytes", bytes}}, error)) return GATHERUM_INVALID_CALL;
  const auto read = [&] {
    auto created = std::make_unique<gatherum_program>();
    const char* fault = from_bytes(static_cast<const uint8_t*>(bytes), size, created->value);
    if (fault == nullptr) fault = complete_and_choose(created->value);
    if (fault != nullptr) return report_failure(GATHERUM_INVALID_PROGRAM, error, fault);
    *program = created.release();
    return GATHERUM_OK;
  };
  return with_memory(error, read, "there is no memory for a program");
}

size_t gatherum_program_write(const gatherum_program* program, void* bytes, size_t capacity) noexcept {
  if (program == nullptr) return 0;
  try {
    const std::vector<uint8_t> all = to_bytes(program->value);
    if (bytes != nullptr && capacity > 0) std::memcpy(bytes, all.data(), std::min(capacity, all.size()));
    return all.size();
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void gatherum_program_free(gatherum_program* program) noexcept { delete program; }
int32_t gatherum_program_rank(const gatherum_program* p) noexcept {
  return p == nullptr ? 0 : p->value.result.rank;
}
const int64_t* gatherum_program_shape(const gatherum_program* p) noexcept {
  return p == nullptr ? nullptr : p->value.result.extent;
}
int32_t gatherum_program_scatters(const gatherum_program* p) noexcept {
  return p != nullptr && p->value.scatter ? 1 : 0;
}
int32_t gatherum_program_is_long(const gatherum_program* p) noexcept {
  return p != nullptr && is_long(p->value) ? 1 : 0;
}

namespace {

// Returns the data from which a scatter starts, or null if it works in place or the program is a gather.
const char* source_of(const Program& p, const gatherum_operands& operands) {
  return p.scatter && !is_in_place(p, operands) ? static_cast<const char*>(operands.data.start) : nullptr;
}

}  // namespace

gatherum_status gatherum_check(const gatherum_program* program, const gatherum_operands* operands,
                               gatherum_error* error) noexcept {
  if (is_any_null({{"program", program}, {"operands", operands}}, error)) return GATHERUM_INVALID_CALL;
  return check_operands(program->value, *operands, true, error);
}

gatherum_status gatherum_run(const gatherum_program* program, const gatherum_operands* operands,
                             const gatherum_poll* poll, gatherum_error* error) noexcept {
  if (is_any_null({{"program", program}, {"operands", operands}}, error)) return GATHERUM_INVALID_CALL;
  const Program& p = program->value;
  const bool apart = is_apart(p, *operands);
  if (const char* null = apart ? nullptr : find_null(p, *operands); null != nullptr)
    return report_failure(GATHERUM_TOO_SMALL, error, kTooSmall, null);
  Operands to = operands_of(p, *operands);
  const char* const source = source_of(p, *operands);
  const auto run = [&] { return report(execute(p, to, source, operands->fresh != 0, poll_of(poll)), error); };
  return with_memory(error, [&] {
    if (const char* shared = apart ? nullptr : find_overlap(p, *operands); shared != nullptr)
      return report_out_overlap(error, shared);
    if (p.scatter || p.mode != Mode::drop || !p.has_points) return run();
    std::array<char, kWidestBlock> filled{};
    std::vector<char> zeros;
    if (operands->fill == nullptr) zeros.resize(static_cast<size_t>(p.item));
    const auto* item = operands->fill != nullptr ? static_cast<const char*>(operands->fill) : zeros.data();
    to.fill = fill_block(p.nest, item, filled);
    return run();
  });
}

gatherum_status gatherum_skip_nan(const gatherum_program* program, const gatherum_operands* operands,
                                  const gatherum_poll* poll, gatherum_error* error) noexcept {
  if (is_any_null({{"program", program}, {"operands", operands}}, error)) return GATHERUM_INVALID_CALL;
  const Program& p = program->value;
  if (!skips_nan(p))
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "NaN cannot be skipped in this program");
  const gatherum_status status = check_operands(p, *operands, true, error);
  if (status != GATHERUM_OK) return status;
  const char* const source = source_of(p, *operands);
  return with_memory(error, [&] {
    return report(
        execute_skipping_nan(p, operands_of(p, *operands), source, operands->fresh != 0, poll_of(poll)),
        error);
  });
}

int64_t gatherum_number(const gatherum_program* program, const void* indices, int64_t* numbers) noexcept {
  if (program == nullptr) return -1;
  const Program& p = program->value;
  if (p.tuples > 0 && (indices == nullptr || numbers == nullptr)) return -1;
  try {
    const int64_t bytes = limited_product(points(p.nest, p.nest.rank), sizeof(int64_t));
    if (shares_indices({numbers, bytes}, p, indices)) return -1;
  } catch (const std::bad_alloc&) {
    return -1;
  }
  return number_tuples(p, static_cast<const char*>(indices), numbers);
}

gatherum_status gatherum_first_invalid(const gatherum_program* program, const void* indices,
                                       const gatherum_poll* poll, gatherum_error* error) noexcept {
  if (is_any_null({{"program", program}}, error)) return GATHERUM_INVALID_CALL;
  if (program->value.tuples > 0 && is_any_null({{"indices", indices}}, error)) return GATHERUM_INVALID_CALL;
  return with_memory(error, [&] {
    return report(find_invalid(program->value, static_cast<const char*>(indices), poll_of(poll)), error);
  });
}

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

namespace {

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

void gatherum_set_num_threads(int32_t n) noexcept { set_threads(std::clamp(n, 1, kMostThreads)); }
int32_t gatherum_get_num_threads(void) noexcept { return get_threads(); }
const char* gatherum_level(void) noexcept { return chosen_kernels().level; }
int32_t gatherum_set_level(const char* name) noexcept {
  return name != nullptr && choose_level(name) ? 1 : 0;
}
const char* gatherum_available_level(int32_t i) noexcept { return available_level(i); }

gatherum_status gatherum_describe(const gatherum_program* program, gatherum_description* d) noexcept {
  if (program == nullptr || d == nullptr) return GATHERUM_INVALID_CALL;
  return with_memory(nullptr, [&] {
    const Choice choice = describe(program->value);
    d->algorithm = choice.name;
    d->scratch = choice.scratch;
    copy_text(choice.reason, d->reason);
    return GATHERUM_OK;
  });
}

const char* gatherum_algorithm(int32_t i) noexcept { return algorithm_name(i); }

const char* gatherum_threshold(int32_t i, int64_t* value) noexcept {
  const NamedThreshold t = threshold(i);
  if (t.name != nullptr && value != nullptr) *value = *t.value;
  return t.name;
}

void gatherum_set_threshold(int32_t i, int64_t value) noexcept {
  if (const NamedThreshold t = threshold(i); t.name != nullptr) *t.value = value;
}

void* gatherum_allocate(size_t bytes) noexcept { return allocate_large(bytes); }
int32_t gatherum_free(void* memory) noexcept { return free_large(memory) ? 1 : 0; }
size_t gatherum_resize(void* memory, size_t bytes) noexcept { return resize_large(memory, bytes); }
void gatherum_set_cache_limit(size_t bytes) noexcept { set_cache_limit(bytes); }
size_t gatherum_get_cache_limit(void) noexcept { return get_cache_limit(); }
size_t gatherum_cached_bytes(void) noexcept { return cached_bytes(); }
void gatherum_clear_cache(void) noexcept { clear_cache(); }
