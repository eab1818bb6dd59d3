// Implements the functions of the C interface that read rows of files.
#include <new>

#include "c_api/interface.hpp"
#include "disk/row_reads.hpp"

using namespace gatherum;

namespace {

gatherum_status status_of(ReadStatus status) {
  if (status == ReadStatus::done) return GATHERUM_OK;
  if (status == ReadStatus::interrupted) return GATHERUM_INTERRUPTED;
  if (status == ReadStatus::invalid) return GATHERUM_INVALID_CALL;
  return status == ReadStatus::no_memory ? GATHERUM_NO_MEMORY : GATHERUM_FAILED;
}

bool has_requests(const gatherum_rows& rows) {
  return can_be_rows(rows) && rows.count >= 0 && (rows.count == 0 || rows.numbers != nullptr);
}

// Returns true if the rows have memory that does not overlap the arrays `numbers` and `positions`.
bool has_memory(const gatherum_rows& rows) {
  if (rows.capacity < 0 || (rows.capacity > 0 && rows.count > 0 && rows.out == nullptr)) return false;
  const Footprint out(rows.out, limited_product(rows.capacity, rows.item));
  const int64_t bytes = limited_product(rows.count, sizeof(int64_t));
  return !shares_memory(out, {rows.numbers, bytes}) &&
         (rows.positions == nullptr || !shares_memory(out, {rows.positions, bytes}));
}

}  // namespace

gatherum_status gatherum_read_rows(const gatherum_rows* rows, const gatherum_poll* poll,
                                   gatherum_rows_read* result) noexcept {
  if (rows == nullptr || result == nullptr) return GATHERUM_INVALID_CALL;
  ReadOutcome outcome;
  try {
    if (has_requests(*rows) && has_memory(*rows))
      outcome = read_rows(*rows, poll_of(poll));
    else
      outcome.status = ReadStatus::invalid;
  } catch (const std::bad_alloc&) {
    outcome.status = ReadStatus::no_memory;
  }
  *result = {name_of(outcome.status), outcome.error, outcome.position,
             outcome.until,           outcome.bytes, outcome.runs};
  return status_of(outcome.status);
}

int64_t gatherum_rows_bridge(const gatherum_rows* rows) noexcept {
  if (rows == nullptr || !has_requests(*rows)) return 0;
  try {
    return choose_bridge(*rows);
  } catch (const std::bad_alloc&) {
    return 0;  // the same rows, in more reads
  }
}
