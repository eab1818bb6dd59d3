// Updates sorted by destination: the result of sorting the pairs of keys.cu.
//
// Entry j belongs to destination key[j]; payload[j] is its tuple's number, or its update (CARRIED). A run is
// all the entries of one destination, in row-major order of the indices. Entries with key >= destinations
// belong to invalid tuples, at the end. The keys were checked before the sort, so the indices are not read
// again.
#pragma once

#include "nest.cuh"

namespace gatherum {

using Key = typename Word<KEY_WIDTH>::Type;
using Payload = typename Word<PAYLOAD_WIDTH>::Type;

struct Sorted {
  const Key* keys;
  const Payload* payload;
  int64 count;
  int64 destinations;
  Loops to;      // destination number -> data
  Loops from;    // tuple -> moved
  Loops row;     // chunk or item of the row -> data and moved
  Divisor each;  // chunks or items of a row

  __device__ __forceinline__ bool is_destination(Key key) const {
    return key < static_cast<Key>(destinations);
  }
  __device__ __forceinline__ bool begins(Offset j) const { return j == 0 || keys[j - 1] != keys[j]; }
  __device__ __forceinline__ bool ends(Offset j) const {
    return j + 1 == static_cast<Offset>(count) || keys[j + 1] != keys[j];
  }
  // Returns whether entry j exists and has this key.
  __device__ __forceinline__ bool has(Offset j, Key key) const {
    return j < static_cast<Offset>(count) && keys[j] == key;
  }
  __device__ __forceinline__ Offset destination(Key key) const {
    return place_of(to, static_cast<Offset>(key)).data;
  }
  __device__ __forceinline__ Offset update(Offset j) const {
    return place_of(from, static_cast<Offset>(payload[j])).moved;
  }
};

#if WEIGHTED != 0

// Rows and weights of updates: the update of a tuple is a row of `moved`, multiplied by the tuple's weight.
struct Weights {
  const typename Word<WEIGHTED>::Type* rows;  // the row of each tuple
  const char* items;                          // the weight of each tuple
};

#endif

}  // namespace gatherum
