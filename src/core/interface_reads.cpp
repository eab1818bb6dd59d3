// Implements the functions of the C interface that read rows of files.
#include <new>

#include "interface.hpp"
#include "row_reads.hpp"

using namespace gatherum;

namespace {

gatherum_status status_of(ReadStatus status) {
  if (status == ReadStatus::done) return GATHERUM_OK;
  if (status == ReadStatus::interrupted) return GATHERUM_INTERRUPTED;
  return status == ReadStatus::no_memory ? GATHERUM_NO_MEMORY : GATHERUM_FAILED;
}

}  // namespace

gatherum_status gatherum_read_rows(const gatherum_rows* rows, const gatherum_poll* poll,
                                   gatherum_rows_read* result) noexcept {
  ReadOutcome outcome;
  try {
    outcome = read_rows(*rows, poll_of(poll));
  } catch (const std::bad_alloc&) {
    outcome.status = ReadStatus::no_memory;
  }
  *result = {name_of(outcome.status), outcome.error, outcome.position,
             outcome.until,           outcome.bytes, outcome.runs};
  return status_of(outcome.status);
}

int64_t gatherum_rows_bridge(const gatherum_rows* rows) noexcept {
  try {
    return choose_bridge(*rows);
  } catch (const std::bad_alloc&) {
    return 0;  // more reads, of the same rows
  }
}
