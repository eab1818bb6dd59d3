// Rows of an open file, read at their positions by a few threads and placed in memory.
#pragma once

#include <cstdint>

#include "engine.hpp"

namespace gatherum {

// Requests for rows: row numbers[i] of the file goes to row places[i] of the memory (i without places).
// Neighbouring requests in ascending order share reads; so sorted ones are cheapest. Those in no order are
// put together by parts of the file where they are for nearly all of its pages, which takes 8 bytes each.
struct RowReads {
  int file = -1;
  int64_t base = 0;    // where row 0 begins in the file
  int64_t stride = 0;  // bytes from one row to the next
  int64_t item = 0;    // bytes wanted of a row, from its beginning
  int64_t extent = 0;  // rows that may be asked for
  const int64_t* numbers = nullptr;
  const int64_t* places = nullptr;
  int64_t count = 0;
  char* out = nullptr;
  int64_t capacity = 0;  // rows of `item` bytes that fit in `out`
  double waste = 1.0;    // bytes read over the bytes of the pages that hold wanted rows, at most
  bool once = false;     // whether no page is wanted again, so that the system need not keep it
  int64_t scratch = 0;   // bytes of memory that all threads together may use besides
  int in_flight = 0;  // above 0: the file is open for whole pages alone (O_DIRECT), read by so many threads
};

enum class ReadStatus { done, interrupted, truncated, failed, outside, no_memory };

struct ReadOutcome {
  ReadStatus status = ReadStatus::done;
  int error = 0;         // failed: the system's number for the reason
  int64_t position = 0;  // truncated, failed: where in the file; outside: which request
  int64_t until = 0;     // truncated, failed: the end of what was being read
  int64_t bytes = 0;     // read
  int64_t runs = 0;      // of neighbouring rows that were read at once
};

// Every number and place is checked before it is used: whatever they are, only `out` is written, and no byte
// of it twice by one request.
ReadOutcome read_rows(const RowReads& reads, const Poll& poll);

// The most whole pages between two wanted rows that `read_rows` reads with them; any number, the largest
// that there is, where it reads whole parts.
int64_t choose_bridge(const RowReads& reads);

}  // namespace gatherum
