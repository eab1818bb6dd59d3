// Reads rows of an open file on a few threads and copies them to their destinations in memory.
#pragma once

#include <cstdint>

#include "engine/outcome.hpp"
#include "include/gatherum.h"

namespace gatherum {

// Requests for rows: row `numbers[i]` of the file is copied to row `positions[i]` of the memory, or to row i
// if `positions` is null. Neighbouring requests in ascending order share reads, so sorted requests are
// cheapest. Unsorted requests for nearly all pages of the file are grouped by pieces of the file; this needs
// 8 bytes per request.
using RowReads = gatherum_rows;

enum class ReadStatus { done, interrupted, truncated, failed, outside, no_memory, invalid };
constexpr const char* name_of(ReadStatus status) {
  return name_among({"done", "interrupted", "truncated", "failed", "outside", "no memory", "invalid"},
                    status);
}

struct ReadOutcome {
  ReadStatus status = ReadStatus::done;
  int error = 0;         // failed: the system's error number
  int64_t position = 0;  // truncated, failed: the offset in the file; outside: the number of the request
  int64_t until = 0;     // truncated, failed: the end of the requested range
  int64_t bytes = 0;     // bytes read
  int64_t runs = 0;      // runs of neighbouring rows, with one read each
};

// Returns true if the fields describe rows of a file whose offsets fit in 64 bits.
inline bool can_be_rows(const RowReads& r) {
  return r.base >= 0 && r.item >= 1 && r.stride >= r.item && r.extent >= 0 && r.scratch >= 0 &&
         r.in_flight >= 0 && r.extent < (INT64_MAX - r.base) / r.stride;
}

// Checks every row number and destination before use. For any values, the call writes only to `out`, and
// writes each byte at most once per request.
ReadOutcome read_rows(const RowReads& reads, const Poll& poll);

// The largest number of whole pages between two requested rows that `read_rows` reads with them. The largest
// int64 if it reads whole pieces.
int64_t choose_bridge(const RowReads& reads);

}  // namespace gatherum
