// Implements the C interface, include/gatherum.h, on top of the engine. These functions do not throw.
#include "c_api/interface.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "algorithms/algorithms.hpp"
#include "algorithms/execute.hpp"
#include "engine/accumulator.hpp"
#include "engine/index_checks.hpp"
#include "engine/levels.hpp"
#include "engine/memory.hpp"
#include "engine/schedule.hpp"
#include "engine/thresholds.hpp"
#include "include/gatherum.h"

namespace {

using namespace gatherum;

// If several small items move as one block, they are also filled as one block, so the fill item is repeated
// to the size of the block.
const char* fill_block(const Nest& nest, const char* item, std::array<char, kWidestBlock>& block) {
  if (nest.block > kWidestBlock) return item;
  for (int64_t r = 0; r < nest.block; r += nest.item)
    std::memcpy(block.data() + r, item, static_cast<size_t>(nest.item));
  return block.data();
}

// Returns the data from which a scatter starts, or null if it works in place or the program is a gather.
const char* source_of(const Program& p, const gatherum_operands& operands) {
  return p.scatter && !is_in_place(p, operands) ? static_cast<const char*>(operands.data.start) : nullptr;
}

}  // namespace

namespace gatherum {
namespace {

// Returns the first operand that is too small for its program, or null if there is none.
const char* find_too_small(const Program& p, const gatherum_operands& operands) {
  const gatherum_buffer source = p.scatter && !is_in_place(p, operands) ? operands.data : gatherum_buffer{};
  return p.scatter ? find_too_small(p, operands.out, operands.indices, operands.updates, source)
                   : find_too_small(p, operands.data, operands.indices, operands.out, {});
}

}  // namespace

Operands operands_of(const Program& p, const gatherum_operands& operands) {
  Operands to;
  to.index = static_cast<const char*>(operands.indices.start);
  to.data = static_cast<char*>(p.scatter ? operands.out.start : operands.data.start);
  to.moved = static_cast<char*>(p.scatter ? operands.updates.start : operands.out.start);
  return to;
}

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

}  // namespace gatherum

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
