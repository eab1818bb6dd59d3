// Scatters of up to MOST_TUPLES tuples in one launch: their arguments, and functions of both kernels.
//
// Every block sorts all tuples, so that blocks need not wait for each other. In mode "raise", every block
// also checks all indices and writes nothing if one is invalid. The first block writes the record.
//
// If SOURCE is 0, the scatter works in place, and a flat number is an entry and a chunk of the row. Otherwise
// a flat number is a destination and a chunk, and the launch copies the chunks of destinations without
// updates.
#pragma once

#include "block_sort.cuh"

namespace gatherum {

struct Arguments {
  char* data;
  const char* source;  // the old values, unless SOURCE is 0
  const char* index;
  const char* moved;
  Record* record;  // in mode "raise"
  int64 destinations;
  int64 padded;        // a power of 2
  int64 include_self;  // 1 if the old value takes part
  int64 points;        // flat numbers
  int64 total;         // tuples
  Loops loops;         // tuple -> index, moved, destination
  Tuple tuple;
  Loops destination_loops;  // destination number -> data
  Loops row_loops;          // chunk of the row -> data and moved
  Divisor row_chunks;       // number of chunks of a row
};

// Writes the sorted entries of all tuples. Returns false if an index is invalid in mode "raise".
__device__ __forceinline__ bool sort_tuples(const Arguments& call, uint64* entries, uint32* invalid) {
  if constexpr (MODE == mode_raise) {
    if (threadIdx.x == 0) *invalid = 0;
    __syncthreads();
  }
  write_entries(call, entries, MODE == mode_raise ? invalid : nullptr);
  if constexpr (MODE == mode_raise) {
    const uint32 count = *invalid;
    if (blockIdx.x == 0 && threadIdx.x == 0) *call.record = Record{count, 0, 0, 0, 0};
    if (count != 0) return false;
  }
  sort_entries(entries, static_cast<int>(call.padded));
  return true;
}

// Returns the first entry whose key is at least `key`.
__device__ __forceinline__ int first_entry(const uint64* entries, int total, uint32 key) {
  int low = 0;
  for (int high = total; low < high;) {
    const int middle = (low + high) / 2;
    if (key_of(entries[middle]) < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// A chunk of a row that a thread writes.
struct Part {
  int entry;         // the first or the last one of the destination; -1: it has none
  uint32 key;        // of the entry
  Offset moved;      // of the chunk in an update
  char* to;          // in the data
  const char* from;  // the old value, if SOURCE is 1 or 2
};

// Returns the part of a flat number, with the first entry of its destination, or the last one.
template <bool LAST>
__device__ __forceinline__ Part part_at(const Arguments& call, const uint64* entries, Offset f) {
  const Offset row = call.row_chunks.divide(f);
  const Point p = point_of(call.row_loops, f - row * static_cast<Offset>(call.row_chunks.value));
  const int total = static_cast<int>(call.total);
  const auto has_key = [&](int j, uint32 key) { return 0 <= j && j < total && key_of(entries[j]) == key; };
  Part part = {-1, 0, p.moved, nullptr, nullptr};
#if SOURCE == 0
  const int j = static_cast<int>(row);
  part.key = key_of(entries[j]);
  if (part.key >= static_cast<uint32>(call.destinations)) return part;
  if (has_key(LAST ? j + 1 : j - 1, part.key)) return part;
  part.entry = j;
#else
  part.key = static_cast<uint32>(row);
  const int j = LAST ? first_entry(entries, total, part.key + 1) - 1 : first_entry(entries, total, part.key);
  if (has_key(j, part.key)) part.entry = j;
#endif
  const Offset offset = point_of(call.destination_loops, static_cast<Offset>(part.key)).data;
  part.to = call.data + offset + p.data;
  part.from = SOURCE == 1 ? call.source + offset + p.data : call.source;
  return part;
}

// Returns where the chunk of an entry's update is.
__device__ __forceinline__ const char* update_at(const Arguments& call, uint64 entry, Offset moved) {
  return call.moved + point_of(call.loops, tuple_of(entry)).moved + moved;
}

}  // namespace gatherum
