// Updates sorted by destination: the result of sorting the pairs of keys.cu.
//
// Entry j belongs to destination key[j]; payload[j] is its tuple's number, or its update (CARRIED_BYTES). A
// segment consists of all entries of one destination, in row-major order of the indices. Entries with `key >=
// destinations` belong to invalid tuples, and are at the end. The keys were checked before the sort, so the
// indices are not read again.
#pragma once

#include "nest.cuh"

namespace gatherum {

using Key = typename Word<KEY_BYTES>::Type;
using Payload = typename Word<PAYLOAD_BYTES>::Type;

struct Sorted {
  const Key* keys;
  const Payload* payload;
  int64 count;
  int64 destinations;
  Loops destination_loops;  // destination number -> data
  Loops tuple_loops;        // tuple -> moved
  Loops row_loops;          // chunk of the row -> data and moved
  Divisor row_chunks;       // number of chunks of a row

  __device__ __forceinline__ bool is_destination(Key key) const {
    return key < static_cast<Key>(destinations);
  }
  __device__ __forceinline__ bool begins_segment(Offset j) const { return j == 0 || keys[j - 1] != keys[j]; }
  __device__ __forceinline__ bool ends_segment(Offset j) const {
    return j + 1 == static_cast<Offset>(count) || keys[j + 1] != keys[j];
  }
  // Returns whether entry j exists and has this key.
  __device__ __forceinline__ bool has_key(Offset j, Key key) const {
    return j < static_cast<Offset>(count) && keys[j] == key;
  }
  __device__ __forceinline__ Offset destination_offset(Key key) const {
    return point_of(destination_loops, static_cast<Offset>(key)).data;
  }
  __device__ __forceinline__ Offset update_offset(Offset j) const {
    return point_of(tuple_loops, static_cast<Offset>(payload[j])).moved;
  }
};

#if ROW_NUMBER_BYTES != 0

// Rows and weights of updates: the update of a tuple is a row of `moved`, multiplied by the tuple's weight.
struct Weights {
  const typename Word<ROW_NUMBER_BYTES>::Type* rows;  // the row of each tuple
  const char* items;                                  // the weight of each tuple
};

#endif

}  // namespace gatherum
