// Reads of a file's rows, called from Python.
#pragma once

#include <cstdint>

#include "../include/gatherum.h"
#include "arrays.hpp"

namespace gatherum {

// In both, `where` says where the rows of a file lie: where row 0 begins, bytes from one to the next, bytes
// wanted of each, and how many there are.

// Reads rows numbers[i] of an open file into rows places[i] of `out` (i when None); both are arrays of
// int64. Returns (status, error, position, until, bytes, runs), see ReadOutcome; raises for arguments
// that are no such arrays.
nb::tuple read_file_rows(int file, const nb::tuple& where, nb::handle numbers, nb::handle places,
                         nb::handle out, double waste, bool once, int64_t scratch, int in_flight);

// Puts `where` into `reads`, if it describes rows of a file.
bool set_where(gatherum_rows& reads, const nb::tuple& where);

// Runs reads without the interpreter's lock, and returns what read_file_rows does.
nb::tuple run_reads(const gatherum_rows& reads);

// The most whole pages between two of the rows `numbers` that read_file_rows reads with them.
int64_t file_rows_bridge(const nb::tuple& where, nb::handle numbers, double waste);

// Reads from position `offset` of an open file into `buffer`, or writes `data` there: how many bytes were
// moved. OSError where none can be.
int64_t read_file_at(int file, nb::handle buffer, int64_t offset);
int64_t write_file_at(int file, nb::handle data, int64_t offset);

}  // namespace gatherum
