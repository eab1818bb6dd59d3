// The memory that the rows and columns of a nest occupy, and whether streaming stores write them.
#pragma once

#include "model/nest.hpp"

namespace gatherum {

// Returns true if each point is written directly after the previous one.
bool writes_in_order(const Nest& nest);
// Returns true if a nest that writes to memory from `address` on uses streaming stores. If `address` is null,
// the best alignment is assumed. Streaming stores require a result too large for the cache, and rows that are
// whole cache lines, or contiguous rows of 4, 8 or a multiple of 16 bytes.
bool streams_past_cache(const Nest& nest, const char* address);

// Returns the number of bytes that one index tuple moves.
int64_t row_bytes(const Nest& nest);
// Returns the number of columns, of `column` bytes each, that are kept in cache. These columns fill whole
// cache lines.
int64_t columns_in_cache(int64_t column, int64_t item, int64_t most);

}  // namespace gatherum
