// Implements the C interface, include/gatherum.h, over the engine. No exception leaves these functions.
#include "interface.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "accumulator.hpp"
#include "extremes.hpp"
#include "gradients.hpp"
#include "implementations/implementations.hpp"
#include "include/gatherum.h"
#include "quantized.hpp"
#include "row_lists.hpp"
#include "row_reads.hpp"

struct gatherum_lists {
  gatherum::RowLists value;
};

namespace {

using namespace gatherum;

constexpr const char* kTooSmall = "an operand's memory is smaller than the program addresses";
constexpr const char* kNoMemory = "there is no working memory";

gatherum_status fail(gatherum_status status, gatherum_error* error, const char* message,
                     const char* operand = "") {
  if (error != nullptr) *error = {message, operand, -1, 0, 0};
  return status;
}

Extent extent_of(const gatherum_buffer& b) {
  const auto* start = static_cast<const char*>(b.start);
  return {start, start - b.before, start + b.behind};
}

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

Poll poll_of(const gatherum_poll* poll) {
  if (poll == nullptr || poll->ask == nullptr) return {};
  const auto ask = [](void* context) {
    const auto* given = static_cast<const gatherum_poll*>(context);
    return given->ask(given->context) != 0;
  };
  return {ask, const_cast<gatherum_poll*>(poll)};
}

gatherum_status report(const Outcome& outcome, gatherum_error* error) {
  switch (outcome.status) {
    case Status::done:
      return GATHERUM_OK;
    case Status::interrupted:
      return fail(GATHERUM_INTERRUPTED, error, "the call was interrupted");
    case Status::no_memory:
      return fail(GATHERUM_NO_MEMORY, error, kNoMemory);
    case Status::invalid_index:
      break;
  }
  const Invalid& i = outcome.invalid;
  if (error != nullptr) *error = {"an index is out of bounds", "indices", i.position, i.value, i.component};
  return GATHERUM_INVALID_INDEX;
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
  try {
    body(type);
    return GATHERUM_OK;
  } catch (const std::bad_alloc&) {
    return GATHERUM_NO_MEMORY;
  }
}

Gradients gradients_of(const gatherum_gradients& at) {
  const auto in = [](const gatherum_buffer& b) { return static_cast<const char*>(b.start); };
  const auto out = [](const gatherum_buffer& b) { return static_cast<char*>(b.start); };
  return {in(at.data), in(at.updates), in(at.result), in(at.gradient), out(at.of_data), out(at.of_updates)};
}

// The first operand that does not hold what its gradients address, or null.
const char* find_too_small(const Program& p, const gatherum_gradients& at) {
  int64_t bytes = p.item;  // of the output, which is copied as one run
  for (int i = 0; i < p.result.rank; ++i) bytes = times(bytes, p.result.extent[i]);
  const auto is_wanted = [](const gatherum_buffer& b) { return b.start != nullptr; };
  const auto holds = [&](const gatherum_buffer& like_out, const gatherum_buffer& like_updates) {
    return find_too_small(p, extent_of(like_out), extent_of(at.indices), extent_of(like_updates), {});
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

const char* name_of(ReadStatus status) {
  switch (status) {
    case ReadStatus::done:
      return "done";
    case ReadStatus::interrupted:
      return "interrupted";
    case ReadStatus::truncated:
      return "truncated";
    case ReadStatus::failed:
      return "failed";
    case ReadStatus::outside:
      return "outside";
    case ReadStatus::no_memory:
      return "no memory";
  }
  return "unknown";
}

gatherum_status status_of(ReadStatus status) {
  if (status == ReadStatus::done) return GATHERUM_OK;
  if (status == ReadStatus::interrupted) return GATHERUM_INTERRUPTED;
  return status == ReadStatus::no_memory ? GATHERUM_NO_MEMORY : GATHERUM_FAILED;
}

}  // namespace

int32_t gatherum_abi_version(void) noexcept { return GATHERUM_ABI_VERSION; }

gatherum_status gatherum_program_read(const void* bytes, size_t size, gatherum_program** program,
                                      gatherum_error* error) noexcept {
  *program = nullptr;
  auto* made = new (std::nothrow) gatherum_program;
  if (made == nullptr) return fail(GATHERUM_NO_MEMORY, error, "there is no memory for a program");
  const char* wrong = nullptr;
  try {
    wrong = from_bytes(static_cast<const uint8_t*>(bytes), size, made->value);
    if (wrong == nullptr) wrong = prepare(made->value);
  } catch (const std::bad_alloc&) {
    delete made;
    return fail(GATHERUM_NO_MEMORY, error, "there is no memory for a program");
  }
  if (wrong != nullptr) {
    delete made;
    return fail(GATHERUM_INVALID_PROGRAM, error, wrong);
  }
  *program = made;
  return GATHERUM_OK;
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
  const char* small =
      p.scatter ? find_too_small(p, extent_of(at->out), extent_of(at->indices), extent_of(at->updates),
                                 functional ? extent_of(at->data) : Extent{})
                : find_too_small(p, extent_of(at->data), extent_of(at->indices), extent_of(at->out), {});
  if (small == nullptr) return GATHERUM_OK;
  return fail(GATHERUM_TOO_SMALL, error, kTooSmall, small);
}

gatherum_status gatherum_run(const gatherum_program* program, const gatherum_operands* at,
                             const gatherum_poll* poll, gatherum_error* error) noexcept {
  const Program& p = program->value;
  Operands to = operands_of(p, *at);
  const auto* source = p.scatter && !in_place(*at) ? static_cast<const char*>(at->data.start) : nullptr;
  const auto run = [&] { return report(execute(p, to, source, at->fresh != 0, poll_of(poll)), error); };
  try {
    if (p.scatter || p.mode != Mode::drop || !p.moves) return run();
    std::array<char, kWidestBlock> filled{};
    std::vector<char> zeros;
    if (at->fill == nullptr) zeros.resize(static_cast<size_t>(p.item));
    const auto* item = at->fill != nullptr ? static_cast<const char*>(at->fill) : zeros.data();
    to.fill = fill_block(p.nest, item, filled);
    return run();
  } catch (const std::bad_alloc&) {
    return fail(GATHERUM_NO_MEMORY, error, kNoMemory);
  }
}

int64_t gatherum_number(const gatherum_program* program, const void* indices, int64_t* numbers) noexcept {
  return number_tuples(program->value, static_cast<const char*>(indices), numbers);
}

gatherum_status gatherum_first_invalid(const gatherum_program* program, const void* indices,
                                       const gatherum_poll* poll, gatherum_error* error) noexcept {
  try {
    return report(find_invalid(program->value, static_cast<const char*>(indices), poll_of(poll)), error);
  } catch (const std::bad_alloc&) {
    return fail(GATHERUM_NO_MEMORY, error, kNoMemory);
  }
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
  try {
    return report(
        accumulate(program->value, {static_cast<char*>(sums), counts}, index, updates, poll_of(poll)), error);
  } catch (const std::bad_alloc&) {
    return fail(GATHERUM_NO_MEMORY, error, kNoMemory);
  }
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
    return fail(GATHERUM_INVALID_PROGRAM, error, "there are no gradients of this program");
  if (const char* small = find_too_small(p, *at); small != nullptr)
    return fail(GATHERUM_TOO_SMALL, error, kTooSmall, small);
  const auto* index = static_cast<const char*>(at->indices.start);
  try {
    return report(differentiate(p, index, gradients_of(*at), at->of_updates.behind, poll_of(poll)), error);
  } catch (const std::bad_alloc&) {
    return fail(GATHERUM_NO_MEMORY, error, kNoMemory);
  }
}

gatherum_status gatherum_extremes(const gatherum_program* program, const gatherum_operands* at,
                                  const gatherum_buffer* positions, int64_t none, const gatherum_poll* poll,
                                  gatherum_error* error) noexcept {
  const Program& p = program->value;
  const bool wants_result = at->out.start != nullptr;
  int64_t items = 1;
  for (int i = 0; i < p.result.rank; ++i) items = times(items, p.result.extent[i]);
  // An array without items may lie anywhere.
  const bool wrong = items > 0 && (in_place(*at) || (!wants_result && p.combine.include_self));
  if (!has_positions(p) || wrong)
    return fail(GATHERUM_INVALID_PROGRAM, error, "there are no positions of this program");
  // The result and the positions are contiguous: they hold so many items behind their beginning.
  gatherum_operands contiguous = *at;
  const int64_t bytes = times(items, p.item);
  contiguous.out = gatherum_memory(at->out.start, wants_result ? std::min(at->out.behind, bytes) : bytes);
  if (gatherum_check(program, &contiguous, error) != GATHERUM_OK) return GATHERUM_TOO_SMALL;
  if (positions->behind < times(items, sizeof(int64_t)))
    return fail(GATHERUM_TOO_SMALL, error, kTooSmall, "positions");
  const Operands to = operands_of(p, *at);
  const Extremes extremes{to.other, to.data, static_cast<int64_t*>(positions->start), none};
  const auto* source = static_cast<const char*>(at->data.start);
  try {
    return report(find_extremes(p, to.index, source, extremes, poll_of(poll)), error);
  } catch (const std::bad_alloc&) {
    return fail(GATHERUM_NO_MEMORY, error, kNoMemory);
  }
}

static RowReads reads_of(const gatherum_rows& r) {
  return {r.file,     r.base,     r.stride,
          r.item,     r.extent,   r.numbers,
          r.places,   r.count,    static_cast<char*>(r.out),
          r.capacity, r.waste,    r.once != 0,
          r.scratch,  r.in_flight};
}

static EdgeEnds ends_of(const gatherum_edge_ends* one) {
  if (one == nullptr) return {};
  return {&one->program->value, static_cast<const char*>(one->indices)};
}

gatherum_status gatherum_lists_make(int64_t destinations, int64_t block, const gatherum_edge_ends* targets,
                                    const gatherum_edge_ends* sources, int32_t numbered,
                                    const gatherum_poll* poll, gatherum_lists** lists,
                                    gatherum_error* error) noexcept {
  *lists = nullptr;
  const Program* from = sources == nullptr ? nullptr : &sources->program->value;
  if (destinations < 0 || destinations > kMany || !RowLists::fit(destinations, targets->program->value, from))
    return fail(GATHERUM_INVALID_PROGRAM, error, "these are not the two ends of the same edges");
  if (block < 1 || block > 0xFFFFFFFF)
    return fail(GATHERUM_INVALID_PROGRAM, error, "a list is of 1 to 4294967295 destinations");
  if (block > 1 && from != nullptr)
    return fail(GATHERUM_INVALID_PROGRAM, error, "a list of several destinations has no sources");
  auto* made = new (std::nothrow) gatherum_lists;
  int which = 0;
  gatherum_status status = GATHERUM_NO_MEMORY;
  if (made != nullptr) try {
      status = report(made->value.make(destinations, block, ends_of(targets), ends_of(sources), numbered != 0,
                                       poll_of(poll), which),
                      error);
    } catch (const std::bad_alloc&) {
    }
  if (status == GATHERUM_OK) return *lists = made, status;
  delete made;
  if (status == GATHERUM_NO_MEMORY) return fail(status, error, "there is no memory for the lists");
  if (status == GATHERUM_INVALID_INDEX && error != nullptr)
    error->operand = which == 0 ? "targets" : "sources";
  return status;
}

void gatherum_lists_free(gatherum_lists* lists) noexcept { delete lists; }
int64_t gatherum_lists_bytes(const gatherum_lists* lists) noexcept { return lists->value.bytes(); }

static constexpr const char* kNoRows = "this program says nothing of rows that are folded";

static bool folds_rows(const Program& p) {
  return p.scatter && p.combine.reduction != Reduction::none && p.copy.block > 0 && p.item <= kWidestBlock;
}

static ListFold fold_of(const Program& p, const gatherum_row_operands& at) {
  ListFold call{};
  call.combine = p.combine;
  call.rows = &p.copy;
  call.table = static_cast<const char*>(at.table);
  call.table_step = at.table_step;
  call.start = static_cast<const char*>(at.start);
  if (at.fill != nullptr) std::memcpy(call.fill, at.fill, static_cast<size_t>(p.item));
  call.out = static_cast<char*>(at.out);
  call.out_step = at.out_step;
  call.weights = static_cast<const char*>(at.weights);
  call.weight_loops = &p.checks;
  return call;
}

gatherum_status gatherum_lists_fold(const gatherum_lists* lists, const gatherum_program* rows,
                                    const gatherum_row_operands* at, const gatherum_poll* poll,
                                    gatherum_error* error) noexcept {
  const Program& p = rows->value;
  if (!folds_rows(p) || !(at->weights == nullptr || lists->value.numbered()))
    return fail(GATHERUM_INVALID_PROGRAM, error, kNoRows);
  const bool items = points(p.copy, p.copy.rank) == 1 && p.copy.block == p.item;
  if (lists->value.block() > 1 && !(items && at->start != nullptr && at->weights == nullptr))
    return fail(GATHERUM_INVALID_PROGRAM, error,
                "lists of several destinations fold items into what there is");
  const ListFold call = fold_of(p, *at);
  try {
    const bool finished = lists->value.fold(call, at->fresh != 0 ? poll_of(poll) : Poll{});
    return finished ? GATHERUM_OK : report({Status::interrupted, {}}, error);
  } catch (const std::bad_alloc&) {
    return fail(GATHERUM_NO_MEMORY, error, "there is no working memory");
  }
}

gatherum_status gatherum_fold_pointed(const gatherum_edge_ends* pointer, const gatherum_edge_ends* sources,
                                      const gatherum_program* rows, const gatherum_row_operands* at,
                                      const gatherum_poll* poll, gatherum_error* error) noexcept {
  const Program& p = rows->value;
  if (!fits_pointer(pointer->program->value, sources->program->value))
    return fail(GATHERUM_INVALID_PROGRAM, error, "these are no pointer and the sources of its edges");
  const bool weighs = at->weights == nullptr || (p.checks.rank == 1 && p.checks.line == 0);
  if (!folds_rows(p) || !weighs) return fail(GATHERUM_INVALID_PROGRAM, error, kNoRows);
  int which = 0;
  try {
    const gatherum_status status = report(fold_pointed(ends_of(pointer), ends_of(sources), fold_of(p, *at),
                                                       at->fresh != 0, poll_of(poll), which),
                                          error);
    if (status == GATHERUM_INVALID_INDEX && error != nullptr)
      error->operand = which == 0 ? "pointer" : "sources";
    return status;
  } catch (const std::bad_alloc&) {
    return fail(GATHERUM_NO_MEMORY, error, "there is no working memory");
  }
}

gatherum_status gatherum_read_rows(const gatherum_rows* rows, const gatherum_poll* poll,
                                   gatherum_rows_read* result) noexcept {
  ReadOutcome outcome;
  try {
    outcome = read_rows(reads_of(*rows), poll_of(poll));
  } catch (const std::bad_alloc&) {
    outcome.status = ReadStatus::no_memory;
  }
  *result = {name_of(outcome.status), outcome.error, outcome.position,
             outcome.until,           outcome.bytes, outcome.runs};
  return status_of(outcome.status);
}

int64_t gatherum_rows_bridge(const gatherum_rows* rows) noexcept {
  try {
    return choose_bridge(reads_of(*rows));
  } catch (const std::bad_alloc&) {
    return 0;  // more reads, of the same rows
  }
}

void gatherum_set_num_threads(int32_t n) noexcept { set_threads(std::clamp(n, 1, kMostThreads)); }
int32_t gatherum_get_num_threads(void) noexcept { return get_threads(); }
const char* gatherum_level(void) noexcept { return chosen_kernels().level; }
int32_t gatherum_set_level(const char* name) noexcept { return choose_level(name) ? 1 : 0; }
const char* gatherum_available_level(int32_t i) noexcept { return available_level(i); }

gatherum_status gatherum_describe(const gatherum_program* program, gatherum_description* d) noexcept {
  try {
    const Choice choice = describe(program->value);
    d->implementation = choice.name;
    d->scratch = choice.scratch;
    const size_t n = std::min(choice.reason.size(), sizeof d->reason - 1);
    std::memcpy(d->reason, choice.reason.data(), n);
    d->reason[n] = 0;
    return GATHERUM_OK;
  } catch (const std::bad_alloc&) {
    return GATHERUM_NO_MEMORY;
  }
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
