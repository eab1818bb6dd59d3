// Implements the functions of the C interface that read rows of files.
#include <new>

#include "interface.hpp"
#include "row_reads.hpp"

using namespace gatherum;

namespace {

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

RowReads reads_of(const gatherum_rows& r) {
  return {r.file,     r.base,     r.stride,
          r.item,     r.extent,   r.numbers,
          r.places,   r.count,    static_cast<char*>(r.out),
          r.capacity, r.waste,    r.once != 0,
          r.scratch,  r.in_flight};
}

}  // namespace

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
