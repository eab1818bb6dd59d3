// Reads of a file's rows, called from Python.
#pragma once

#include "include/gatherum.h"
#include "python/numpy/arrays.hpp"

namespace gatherum {

// Where the rows of a file lie: where row 0 begins, bytes from one to the next, bytes wanted of each, and how
// many there are. False: `where` describes no rows.
bool set_where(gatherum_rows& reads, const nb::tuple& where);

// What is asked for: rows numbers[i], which go to places[i] of `out` (to i where `places` is None). Raises
// for what are no flat arrays of int64 and no bytes. `caller` is named in errors; `reads.item` is known.
void set_requests(gatherum_rows& reads, const char* caller, nb::handle numbers, nb::handle places,
                  nb::handle out);

// Runs reads without the interpreter's lock. Returns (status, error, position, until, bytes, runs), see
// gatherum_rows_read.
nb::tuple run_reads(const gatherum_rows& reads);

}  // namespace gatherum
