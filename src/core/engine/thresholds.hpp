// The sizes from which algorithms are used. Tests and measurements change them.
#pragma once

#include <cstdint>

#include "platform/processor.hpp"

namespace gatherum {

// Returns the minimum number of bytes of each row that a thread processes if threads divide the columns.
int64_t least_columns();

// The smallest sizes for which algorithms are used, which tests lower; and last a bit mask of algorithms that
// are omitted, for measurements. Calls `X(name, default)` for each.
#define GATHERUM_THRESHOLDS(X)                                               \
  X(private_cache_bytes, kPrivateCacheBytes)                                 \
  /* the part of the shared cache that a core can use */                     \
  X(shared_cache_bytes, 4 << 20)                                             \
  /* the largest stretch of data that is prefetched */                       \
  X(stretch_bytes, 1 << 18)                                                  \
  /* from this size on, a scatter's random writes reach memory */            \
  X(far_bytes, 8 << 20)                                                      \
  /* from this number on, the two passes of a partition are faster */        \
  X(many_updates, 1 << 18)                                                   \
  /* calls that move fewer bytes use the simple algorithms */                \
  X(small_call_bytes, 1 << 16)                                               \
  /* results from this size use streaming stores */                          \
  X(streamed_bytes, 4 << 20)                                                 \
  /* the minimum number of updates per thread (tables: exact_table.hpp) */   \
  X(updates_per_table_word, 4)                                               \
  /* the columns of a thread, if threads share the columns */                \
  X(least_column_bytes, least_columns())                                     \
  /* not a size: a bit for each algorithm, in the order of algorithm_name */ \
  X(omitted_algorithms, 0)

struct Thresholds {
#define GATHERUM_THRESHOLD(name, value) int64_t name = value;
  GATHERUM_THRESHOLDS(GATHERUM_THRESHOLD)
#undef GATHERUM_THRESHOLD
};
Thresholds& thresholds();

struct NamedThreshold {
  const char* name;  // null: i is out of range
  int64_t* value;
};
NamedThreshold threshold(int i);

}  // namespace gatherum
