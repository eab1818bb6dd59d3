// Rows of an open file, read at their positions by a few threads and placed in memory.
#pragma once

#include <cstdint>

#include "engine/engine.hpp"
#include "include/gatherum.h"

namespace gatherum {

// Requests for rows: row numbers[i] of the file goes to row places[i] of the memory (i without places).
// Neighbouring requests in ascending order share reads; so sorted ones are cheapest. Those in no order are
// put together by parts of the file where they are for nearly all of its pages, which takes 8 bytes each.
using RowReads = gatherum_rows;

enum class ReadStatus { done, interrupted, truncated, failed, outside, no_memory, invalid };
constexpr const char* name_of(ReadStatus status) {
  return name_among({"done", "interrupted", "truncated", "failed", "outside", "no memory", "invalid"},
                    status);
}

struct ReadOutcome {
  ReadStatus status = ReadStatus::done;
  int error = 0;         // failed: the system's number for the reason
  int64_t position = 0;  // truncated, failed: where in the file; outside: which request
  int64_t until = 0;     // truncated, failed: the end of what was being read
  int64_t bytes = 0;     // read
  int64_t runs = 0;      // of neighbouring rows that were read at once
};

// Whether these can be rows of a file, whose positions are numbers of 64 bits.
inline bool can_be_rows(const RowReads& r) {
  return r.base >= 0 && r.item >= 1 && r.stride >= r.item && r.extent >= 0 && r.scratch >= 0 &&
         r.in_flight >= 0 && r.extent < (INT64_MAX - r.base) / r.stride;
}

// Every number and place is checked before it is used: whatever they are, only `out` is written, and no byte
// of it twice by one request.
ReadOutcome read_rows(const RowReads& reads, const Poll& poll);

// The most whole pages between two wanted rows that `read_rows` reads with them; any number, the largest
// that there is, where it reads whole parts.
int64_t choose_bridge(const RowReads& reads);

}  // namespace gatherum
