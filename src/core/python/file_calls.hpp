// Reads of a file's rows, called from Python.
#pragma once

#include "include/gatherum.h"
#include "python/numpy/arrays.hpp"

namespace gatherum {

// Reads the layout of a file's rows from `layout`: the offset of row 0, the number of bytes from one row to
// the next, the number of bytes to read of each row, and the number of rows. Returns false if `layout` does
// not describe rows.
bool set_layout(gatherum_rows& reads, const nb::tuple& layout);

// Sets the requested rows `numbers[i]`, which are copied to positions `positions[i]` of `out` (to position i
// if `positions` is None). Raises unless the arguments are flat int64 arrays and a buffer of bytes. Error
// messages name `caller`. `reads.item` is already set.
void set_requests(gatherum_rows& reads, const char* caller, nb::handle numbers, nb::handle positions,
                  nb::handle out);

// Returns the integers of an array, and their number. Raises TypeError, with the names of the function and
// the argument, unless it is a flat array of int64.
const int64_t* as_int64s(nb::handle h, int64_t& count, const char* caller, const char* name);

// Runs reads, usually without the interpreter's lock. Returns (status, error, position, until, bytes, runs,
// nanoseconds), see gatherum_rows_read. The nanoseconds do not include the time to get the lock again, and
// are 0 if the rows were read from the page cache with the lock.
nb::tuple run_reads(const gatherum_rows& reads);

}  // namespace gatherum
