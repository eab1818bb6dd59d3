// Implements the functions of the C interface that list the edges of destinations and fold their rows.
#include <cstring>
#include <memory>

#include "c_api/interface.hpp"
#include "lists/row_lists.hpp"

struct gatherum_lists {
  gatherum::RowLists value;
};

using namespace gatherum;

namespace {

EdgeEnds ends_of(const gatherum_edge_ends* one) {
  if (one == nullptr) return {};
  return {&one->program->value, static_cast<const char*>(one->indices)};
}

constexpr const char* kNoRows = "this program says nothing of rows that are folded";

bool folds_rows(const Program& p) {
  return p.scatter && p.fold_rule.reduction != Reduction::none && p.copy.block > 0 && p.item <= kWidestBlock;
}

ListFold fold_of(const Program& p, const gatherum_row_operands& operands) {
  ListFold call{};
  call.fold_rule = p.fold_rule;
  call.rows = &p.copy;
  call.table = static_cast<const char*>(operands.table);
  call.table_step = operands.table_step;
  call.start = static_cast<const char*>(operands.start);
  if (operands.fill != nullptr) std::memcpy(call.fill, operands.fill, static_cast<size_t>(p.item));
  call.out = static_cast<char*>(operands.out);
  call.out_step = operands.out_step;
  call.weights = static_cast<const char*>(operands.weights);
  call.weight_loops = &p.checks;
  return call;
}

bool lacks_indices(const gatherum_edge_ends& ends) {
  return ends.program->value.tuples > 0 && ends.indices == nullptr;
}

// Returns the footprint of the rows of a table or a result, which are `step` bytes apart.
Footprint rows_footprint(Footprint row, int64_t count, int64_t step) {
  row.add(count, step);
  return row;
}

// Returns the first operand that shares memory with `out`, or null if there is none. `table` is the number of
// rows of the table.
const char* find_overlap(const Program& p, const gatherum_row_operands& operands, int64_t destinations,
                         int64_t table) {
  const Footprint out =
      rows_footprint(moved_footprint(p.copy, operands.out), destinations, operands.out_step);
  Footprint start = out;
  start.start = reinterpret_cast<intptr_t>(operands.start);
  if (operands.start == nullptr || operands.start == operands.out) start.block = 0;
  Footprint weights(operands.weights, operands.weights == nullptr ? 0 : p.item);
  for (int i = 0; i < p.checks.rank; ++i) weights.add(p.checks.loops[i].extent, p.checks.loops[i].moved);
  return find_shared(
      out, {{"table", rows_footprint(data_footprint(p.copy, operands.table), table, operands.table_step)},
            {"weights", weights},
            {"start", start}});
}

// Reports an operand that has rows but a null address, and an `out` that shares memory with another operand.
gatherum_status check_rows(const Program& p, const gatherum_row_operands& operands, int64_t destinations,
                           int64_t table, int64_t edges, gatherum_error* error) {
  if (destinations > 0 && is_any_null({{"out", operands.out}}, error)) return GATHERUM_INVALID_CALL;
  if (edges > 0 && is_any_null({{"table", operands.table}}, error)) return GATHERUM_INVALID_CALL;
  return with_memory(error, [&] {
    const char* shared = find_overlap(p, operands, destinations, table);
    return shared == nullptr ? GATHERUM_OK : report_overlap(error, shared);
  });
}

}  // namespace

gatherum_status gatherum_lists_make(int64_t destinations, int64_t block, const gatherum_edge_ends* targets,
                                    const gatherum_edge_ends* sources, int32_t numbered,
                                    const gatherum_poll* poll, gatherum_lists** lists,
                                    gatherum_error* error) noexcept {
  if (is_any_null({{"lists", lists}}, error)) return GATHERUM_INVALID_CALL;
  *lists = nullptr;
  if (is_any_null({{"targets", targets}}, error) || is_any_null({{"targets", targets->program}}, error) ||
      (sources != nullptr && is_any_null({{"sources", sources->program}}, error)))
    return GATHERUM_INVALID_CALL;
  for (const gatherum_edge_ends* ends : {targets, sources})
    if (ends != nullptr && lacks_indices(*ends) &&
        is_any_null({{ends == targets ? "targets" : "sources", ends->indices}}, error))
      return GATHERUM_INVALID_CALL;
  const Program* from = sources == nullptr ? nullptr : &sources->program->value;
  if (destinations < 0 || destinations > kSizeLimit ||
      !RowLists::are_ends_of_edges(destinations, targets->program->value, from))
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "these are not the two ends of the same edges");
  if (block < 1 || !fits_32_bits(block - 1))  // the highest position in a list is block - 1
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "a list is of 1 to 4294967295 destinations");
  if (block > 1 && from != nullptr)
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "a list of several destinations has no sources");
  int which = 0;
  const auto make = [&] {
    auto created = std::make_unique<gatherum_lists>();
    const Outcome outcome = created->value.make(destinations, block, ends_of(targets), ends_of(sources),
                                                numbered != 0, poll_of(poll), which);
    if (outcome.status == Status::done) *lists = created.release();
    return report(outcome, error);
  };
  const gatherum_status status = with_memory(error, make, "there is no memory for the lists");
  if (status == GATHERUM_INVALID_INDEX && error != nullptr)
    error->operand = which == 0 ? "targets" : "sources";
  return status;
}

void gatherum_lists_free(gatherum_lists* lists) noexcept { delete lists; }
int64_t gatherum_lists_bytes(const gatherum_lists* lists) noexcept {
  return lists == nullptr ? 0 : lists->value.bytes();
}

gatherum_status gatherum_lists_fold(const gatherum_lists* lists, const gatherum_program* rows,
                                    const gatherum_row_operands* operands, const gatherum_poll* poll,
                                    gatherum_error* error) noexcept {
  if (is_any_null({{"lists", lists}, {"rows", rows}, {"operands", operands}}, error))
    return GATHERUM_INVALID_CALL;
  const Program& p = rows->value;
  if (!folds_rows(p) || !(operands->weights == nullptr || lists->value.has_edge_numbers()))
    return report_failure(GATHERUM_INVALID_PROGRAM, error, kNoRows);
  const bool items = points(p.copy, p.copy.rank) == 1 && p.copy.block == p.item;
  if (lists->value.bucket_size() > 1 &&
      !(items && operands->start != nullptr && operands->weights == nullptr))
    return report_failure(GATHERUM_INVALID_PROGRAM, error,
                          "lists of several destinations fold items into what there is");
  const RowLists& all = lists->value;
  const gatherum_status status =
      check_rows(p, *operands, all.destinations(), all.table_rows(), all.kept_edges(), error);
  if (status != GATHERUM_OK) return status;
  const ListFold call = fold_of(p, *operands);
  return with_memory(error, [&] {
    const bool finished = lists->value.fold(call, operands->fresh != 0 ? poll_of(poll) : Poll{});
    return report({finished ? Status::done : Status::interrupted, {}}, error);
  });
}

gatherum_status gatherum_fold_pointed(const gatherum_edge_ends* pointer, const gatherum_edge_ends* sources,
                                      const gatherum_program* rows, const gatherum_row_operands* operands,
                                      const gatherum_poll* poll, gatherum_error* error) noexcept {
  if (is_any_null({{"pointer", pointer}, {"sources", sources}, {"rows", rows}, {"operands", operands}},
                  error) ||
      is_any_null({{"pointer", pointer->program}, {"sources", sources->program}}, error))
    return GATHERUM_INVALID_CALL;
  const Program& p = rows->value;
  if (!are_pointer_and_sources(pointer->program->value, sources->program->value))
    return report_failure(GATHERUM_INVALID_PROGRAM, error,
                          "these are no pointer and the sources of its edges");
  const bool weighs = operands->weights == nullptr || (p.checks.rank == 1 && p.checks.line == 0);
  if (!folds_rows(p) || !weighs) return report_failure(GATHERUM_INVALID_PROGRAM, error, kNoRows);
  if (is_any_null({{"pointer", pointer->indices}}, error)) return GATHERUM_INVALID_CALL;
  const Program& to = pointer->program->value;
  const Program& from = sources->program->value;
  if (lacks_indices(*sources) && is_any_null({{"sources", nullptr}}, error)) return GATHERUM_INVALID_CALL;
  const int64_t destinations = to.tuples - 1, edges = from.tuples;
  const int64_t table = edges > 0 ? from.checks.component[0].size : 0;
  gatherum_status status = check_rows(p, *operands, destinations, table, edges, error);
  if (status != GATHERUM_OK) return status;
  int which = 0;
  status = with_memory(error, [&] {
    const Footprint out =
        rows_footprint(moved_footprint(p.copy, operands->out), destinations, operands->out_step);
    if (shares_indices(out, to, pointer->indices)) return report_overlap(error, "pointer");
    if (shares_indices(out, from, sources->indices)) return report_overlap(error, "sources");
    return report(fold_pointed(ends_of(pointer), ends_of(sources), fold_of(p, *operands),
                               operands->fresh != 0, poll_of(poll), which),
                  error);
  });
  if (status == GATHERUM_INVALID_INDEX && error != nullptr)
    error->operand = which == 0 ? "pointer" : "sources";
  return status;
}

gatherum_status gatherum_make_pointer(const gatherum_edge_ends* targets, int64_t* pointer, int32_t* ascends,
                                      const gatherum_poll* poll, gatherum_error* error) noexcept {
  if (is_any_null({{"targets", targets}, {"pointer", pointer}, {"ascends", ascends}}, error) ||
      is_any_null({{"targets", targets->program}}, error))
    return GATHERUM_INVALID_CALL;
  const Program& p = targets->program->value;
  if (lacks_indices(*targets) && is_any_null({{"targets", nullptr}}, error)) return GATHERUM_INVALID_CALL;
  if (p.tuples == 0 || !is_one_line(p))
    return report_failure(GATHERUM_INVALID_PROGRAM, error, "these are no targets of edges in one loop");
  return with_memory(error, [&] {
    const Footprint written(pointer, limited_product(p.checks.component[0].size + 1, sizeof *pointer));
    if (shares_indices(written, p, targets->indices)) return report_overlap(error, "targets");
    bool in_order = false;
    const Outcome outcome = make_pointer(ends_of(targets), pointer, in_order, poll_of(poll));
    *ascends = in_order ? 1 : 0;
    return report(outcome, error);
  });
}
