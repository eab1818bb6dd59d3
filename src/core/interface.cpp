// Implements the C interface, include/gatherum.h, over the engine. No exception leaves these functions.
#include "interface.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "accumulator.hpp"
#include "implementations/implementations.hpp"
#include "include/gatherum.h"
#include "quantized.hpp"

namespace {

using namespace gatherum;

constexpr const char* kTooSmall = "an operand's memory is smaller than the program addresses";

bool in_place(const gatherum_operands& at) { return at.data.start == at.out.start; }

// Narrow items that move as one block are filled as one: their fill is as wide as the block.
const char* fill_block(const Nest& nest, const char* item, std::array<char, kWidestBlock>& block) {
  if (nest.block > kWidestBlock) return item;
  for (int64_t r = 0; r < nest.block; r += nest.item)
    std::memcpy(block.data() + r, item, static_cast<size_t>(nest.item));
  return block.data();
}

Operands operands_of(const Program& p, const gatherum_operands& at) {
  Operands to;
  to.index = static_cast<const char*>(at.indices.start);
  to.data = static_cast<char*>(p.scatter ? at.out.start : at.data.start);
  to.other = static_cast<char*>(p.scatter ? at.updates.start : at.out.start);
  return to;
}

// The enumerator of that name; false where there is none.
template <class E>
bool find_name(const char* name, E& found) {
  for (int i = 0; i < kCount<E>; ++i)
    if (std::strcmp(name, name_of(static_cast<E>(i))) == 0) return found = static_cast<E>(i), true;
  return false;
}

bool fold_of(const gatherum_fold& f, FoldType& type) {
  Combine& how = type.combine;
  if (!find_name(f.reduction, how.reduction) || !find_name(f.value, how.value)) return false;
  how.include_self = f.include_self != 0;
  type.item = f.item;
  const bool moves = how.reduction == Reduction::none;
  return f.item >= 0 && (moves || (has_meaning(how.value, how.reduction) && bytes_of(how.value) == f.item));
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
  q.numbers = c.rows;
  q.count = c.count;
  q.outer = c.before[0];
  q.outer_quantized = c.before[1];
  q.outer_behind = c.before[2];
  q.rows = c.gathered;
  q.inner = c.behind[0];
  q.quantized = c.behind[1];
  q.behind = c.behind[2];
  q.outer_block = c.blocks[0];
  q.row_block = c.blocks[1];
  q.block = c.blocks[2];
  q.scale_line = c.scale_line;
  return has_meaning(q);
}

// Runs body(type), which cannot fail but for want of memory.
template <class Body>
gatherum_status with_fold(const gatherum_fold* fold, const Body& body) {
  FoldType type;
  if (!fold_of(*fold, type)) return GATHERUM_INVALID_PROGRAM;
  return with_memory(nullptr, [&] { return body(type), GATHERUM_OK; });
}

Gradients gradients_of(const gatherum_gradients& at) {
  const auto in = [](const gatherum_buffer& b) { return static_cast<const char*>(b.start); };
  const auto out = [](const gatherum_buffer& b) { return static_cast<char*>(b.start); };
  return {in(at.data), in(at.updates), in(at.result), in(at.gradient), out(at.of_data), out(at.of_updates)};
}

// The first operand that does not hold what its gradients address, or null.
const char* find_too_small(const Program& p, const gatherum_gradients& at) {
  const int64_t bytes = times(p.item, p.result.items());  // of the output, which is copied as one run
  const auto is_wanted = [](const gatherum_buffer& b) { return b.start != nullptr; };
  const auto holds = [&](const gatherum_buffer& like_out, const gatherum_buffer& like_updates) {
    return find_too_small(p, like_out, at.indices, like_updates, {});
  };
  const auto small = [&](const char* name, const gatherum_buffer& b) {
    return b.behind < bytes || holds(b, at.updates) != nullptr ? name : nullptr;
  };
  if (const char* name = holds(at.gradient, at.updates); name != nullptr)
    return std::strcmp(name, "out") == 0 ? "gradient" : name;
  if (at.gradient.behind < bytes) return "gradient";
  if (is_wanted(at.of_updates) && holds(at.gradient, at.of_updates) != nullptr) return "of_updates";
  if (is_wanted(at.of_data) && small("of_data", at.of_data) != nullptr) return "of_data";
  if (p.combine.include_self && small("data", at.data) != nullptr) return "data";
  const bool compares = row_of(p.combine.reduction).gradient == Gradient::extreme;
  return compares ? small("result", at.result) : nullptr;
}

}  // namespace

int32_t gatherum_abi_version(void) noexcept { return GATHERUM_ABI_VERSION; }

gatherum_status gatherum_program_read(const void* bytes, size_t size, gatherum_program** program,
                                      gatherum_error* error) noexcept {
  *program = nullptr;
  const auto read = [&] {
    auto made = std::make_unique<gatherum_program>();
    const char* wrong = from_bytes(static_cast<const uint8_t*>(bytes), size, made->value);
    if (wrong == nullptr) wrong = prepare(made->value);
    if (wrong != nullptr) return report_failure(GATHERUM_INVALID_PROGRAM, error, wrong);
    *program = made.release();
    return GATHERUM_OK;
  };
  return with_memory(error, read, "there is no memory for a program");
}

size_t gatherum_program_write(const gatherum_program* program, void* bytes, size_t capacity) noexcept {
  try {
    const std::vector<uint8_t> all = to_bytes(program->value);
    if (capacity > 0) std::memcpy(bytes, all.data(), std::min(capacity, all.size()));
    return all.size();
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void gatherum_program_free(gatherum_program* program) noexcept { delete program; }
int32_t gatherum_program_rank(const gatherum_program* p) noexcept { return p->value.result.rank; }
const int64_t* gatherum_program_shape(const gatherum_program* p) noexcept { return p->value.result.extent; }
int32_t gatherum_program_scatters(const gatherum_program* p) noexcept { return p->value.scatter ? 1 : 0; }
int32_t gatherum_program_is_long(const gatherum_program* p) noexcept { return is_long(p->value) ? 1 : 0; }

gatherum_status gatherum_check(const gatherum_program* program, const gatherum_operands* at,
                               gatherum_error* error) noexcept {
  const Program& p = program->value;
  const bool functional = p.scatter && !in_place(*at);
  const char* small = p.scatter ? find_too_small(p, at->out, at->indices, at->updates,
                                                 functional ? at->data : gatherum_buffer{})
                                : find_too_small(p, at->data, at->indices, at->out, {});
  if (small == nullptr) return GATHERUM_OK;
  return report_failure(GATHERUM_TOO_SMALL, error, kTooSmall, small);
}

gatherum_status gatherum_run(const gatherum_program* program, const gatherum_operands* at,
                             const gatherum_poll* poll, gatherum_error* error) noexcept {
  const Program& p = program->value;
  Operands to = operands_of(p, *at);
  const auto* source = p.scatter && !in_place(*at) ? static_cast<const char*>(at->data.start) : nullptr;
  const auto run = [&] { return report(execute(p, to, source, at->fresh != 0, poll_of(poll)), error); };
  return with_memory(error, [&] {
    if (p.scatter || p.mode != Mode::drop || !p.moves) return run();
    std::array<char, kWidestBlock> filled{};
    std::vector<char> zeros;
    if (at->fill == nullptr) zeros.resize(static_cast<size_t>(p.item));
    const auto* item = at->fill != nullptr ? static_cast<const char*>(at->fill) : zeros.data();
    to.fill = fill_block(p.nest, item, filled);
    return run();
  });
}

int64_t gatherum_number(const gatherum_program* program, const void* indices, int64_t* numbers) noexcept {
  return number_tuples(program->value, static_cast<const char*>(indices), numbers);
}

gatherum_status gatherum_first_invalid(const gatherum_program* program, const void* indices,
                                       const gatherum_poll* poll, gatherum_error* error) noexcept {
  return with_memory(error, [&] {
    return report(find_invalid(program->value, static_cast<const char*>(indices), poll_of(poll)), error);
  });
}

gatherum_status gatherum_map(const char* function, const char* value, const void* from, void* to, int64_t n,
                             const gatherum_poll* poll) noexcept {
  Value of;
  const bool is_exp = std::strcmp(function, "exp") == 0;
  if ((!is_exp && std::strcmp(function, "log") != 0) || !find_name(value, of) || !has_elementary(of))
    return GATHERUM_INVALID_PROGRAM;
  constexpr int64_t kPiece = int64_t{1} << 14;
  const int64_t item = bytes_of(of);
  const auto map = [&](int64_t i, int) {
    const int64_t first = i * kPiece;
    chosen_kernels().elementary(is_exp ? Elementary::exp : Elementary::log, of,
                                static_cast<const char*>(from) + first * item,
                                static_cast<char*>(to) + first * item, std::min(kPiece, n - first));
  };
  const int threads = threads_for(2 * n * item);
  const bool finished = run_tasks((n + kPiece - 1) / kPiece, threads, poll_of(poll), map);
  return finished ? GATHERUM_OK : GATHERUM_INTERRUPTED;
}

gatherum_status gatherum_dequantize(const gatherum_quantized* call, const gatherum_poll* poll) noexcept {
  QuantizedGather found;
  if (!quantized_of(*call, found)) return GATHERUM_INVALID_PROGRAM;
  const QuantizedBytes needed = bytes_of(found);
  if (needed.data > call->data_bytes || needed.scales > call->scales_bytes || needed.out > call->out_bytes ||
      (found.zeros != nullptr && needed.zeros > call->zero_points_bytes))
    return GATHERUM_TOO_SMALL;
  return run_quantized(found, poll_of(poll)) ? GATHERUM_OK : GATHERUM_INTERRUPTED;
}

gatherum_status gatherum_fold_describe(const gatherum_fold* fold, int32_t* any_order,
                                       int64_t* sum_bytes) noexcept {
  return with_fold(fold, [&](const FoldType& type) {
    *any_order = type.any_order() ? 1 : 0;
    *sum_bytes = type.sum_bytes();
  });
}

gatherum_status gatherum_fold_begin(const gatherum_fold* fold, const void* data, void* sums,
                                    int64_t n) noexcept {
  return with_fold(fold, [&](const FoldType& type) {
    begin_fold(type, static_cast<const char*>(data), static_cast<char*>(sums), n);
  });
}

gatherum_status gatherum_fold_take(const gatherum_program* program, const gatherum_operands* at, void* sums,
                                   int64_t* counts, const gatherum_poll* poll,
                                   gatherum_error* error) noexcept {
  const auto* index = static_cast<const char*>(at->indices.start);
  const auto* updates = static_cast<const char*>(at->updates.start);
  return with_memory(error, [&] {
    return report(
        accumulate(program->value, {static_cast<char*>(sums), counts}, index, updates, poll_of(poll)), error);
  });
}

gatherum_status gatherum_fold_merge(const gatherum_fold* fold, void* sums, int64_t* counts,
                                    const void* other_sums, const int64_t* other_counts, int64_t n) noexcept {
  return with_fold(fold, [&](const FoldType& type) {
    merge_folds(type,
                {{static_cast<char*>(sums), counts}, static_cast<const char*>(other_sums), other_counts, n});
  });
}

gatherum_status gatherum_fold_finish(const gatherum_fold* fold, const void* data, const void* sums,
                                     const int64_t* counts, void* out, int64_t n) noexcept {
  return with_fold(fold, [&](const FoldType& type) {
    finish_fold(type, {static_cast<const char*>(data), static_cast<const char*>(sums), counts,
                       static_cast<char*>(out), n});
  });
}

gatherum_status gatherum_differentiate(const gatherum_program* program, const gatherum_gradients* at,
                                       const gatherum_poll* poll, gatherum_error* error) noexcept {
  const Program& p = program->value;
  if (!p.scatter || !has_gradients(p.combine))
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "there are no gradients of this program");
  if (const char* small = find_too_small(p, *at); small != nullptr)
    return report_failure(GATHERUM_TOO_SMALL, error, kTooSmall, small);
  const auto* index = static_cast<const char*>(at->indices.start);
  return with_memory(error, [&] {
    return report(differentiate(p, index, gradients_of(*at), at->of_updates.behind, poll_of(poll)), error);
  });
}

gatherum_status gatherum_extremes(const gatherum_program* program, const gatherum_operands* at,
                                  const gatherum_buffer* positions, int64_t none, const gatherum_poll* poll,
                                  gatherum_error* error) noexcept {
  const Program& p = program->value;
  const bool wants_result = at->out.start != nullptr;
  const int64_t items = p.result.items();
  // An array without items may lie anywhere.
  const bool wrong = items > 0 && (in_place(*at) || (!wants_result && p.combine.include_self));
  if (!has_positions(p) || wrong)
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "there are no positions of this program");
  // The result and the positions are contiguous: they hold so many items behind their beginning.
  gatherum_operands contiguous = *at;
  const int64_t bytes = times(items, p.item);
  contiguous.out = gatherum_memory(at->out.start, wants_result ? std::min(at->out.behind, bytes) : bytes);
  if (gatherum_check(program, &contiguous, error) != GATHERUM_OK) return GATHERUM_TOO_SMALL;
  if (positions->behind < times(items, sizeof(int64_t)))
    return report_failure(GATHERUM_TOO_SMALL, error, kTooSmall, "positions");
  const Operands to = operands_of(p, *at);
  const Extremes extremes{to.other, to.data, static_cast<int64_t*>(positions->start), none};
  const auto* source = static_cast<const char*>(at->data.start);
  return with_memory(
      error, [&] { return report(find_extremes(p, to.index, source, extremes, poll_of(poll)), error); });
}

void gatherum_set_num_threads(int32_t n) noexcept { set_threads(std::clamp(n, 1, kMostThreads)); }
int32_t gatherum_get_num_threads(void) noexcept { return get_threads(); }
const char* gatherum_level(void) noexcept { return chosen_kernels().level; }
int32_t gatherum_set_level(const char* name) noexcept { return choose_level(name) ? 1 : 0; }
const char* gatherum_available_level(int32_t i) noexcept { return available_level(i); }

gatherum_status gatherum_describe(const gatherum_program* program, gatherum_description* d) noexcept {
  return with_memory(nullptr, [&] {
    const Choice choice = describe(program->value);
    d->implementation = choice.name;
    d->scratch = choice.scratch;
    copy_text(choice.reason, d->reason);
    return GATHERUM_OK;
  });
}

const char* gatherum_implementation(int32_t i) noexcept { return implementation_name(i); }

const char* gatherum_threshold(int32_t i, int64_t* value) noexcept {
  const NamedThreshold t = threshold(i);
  if (t.name != nullptr) *value = *t.value;
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
