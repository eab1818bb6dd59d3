// The algorithms that run a program, in two ordered lists; the first applicable one runs. All of them
// give bit-for-bit equal results: each destination folds its updates in row-major order of the indices, or in
// any order if the result does not depend on it. They differ in streaming stores, use of the cache, and
// memory.
//
// To add an algorithm: create a file with its functions and add it to CMakeLists.txt, declare the
// functions at the end of this file, and add a row to the list of gathers or scatters (list.cpp).
#pragma once

#include <functional>
#include <string>

#include "engine/schedule.hpp"

namespace gatherum {

// One run of a program. `source`: the data of a functional scatter if the algorithm reads them directly,
// else null. `fresh`: the output is discarded if the call fails.
struct Execution {
  const Operands& at;
  const char* source;
  bool fresh;
  int threads;
  const Poll& poll;
};

// The result of a run. `finished` is false if poll interrupted it, `valid` is false if invalid tuples were
// skipped.
struct Run {
  bool finished = true, valid = true, memory = true;
};

// Returns the outcome of a run. If an invalid index is an error, this is the first invalid index now present.
Outcome outcome_of(const Run& run, const Program& program, const char* index, const Poll& poll);

// When an algorithm detects invalid indices itself.
enum class InvalidIndexCheck : uint8_t { never, while_writing, before_writing };

// Returns true if the algorithm can run the program on this number of threads and is worthwhile. If so,
// appends the reason to `why`, unless that is null. The last algorithm of a list applies to every
// program.
using Applies = bool(const Program&, int threads, std::string* why);
// Returns the bytes of working memory on this number of threads, besides buffers of up to 4 MiB per thread.
using Scratch = int64_t(const Program&, int threads);
using Runs = Run(const Program&, const Execution&);

struct Algorithm {
  const char* name;
  Applies* applies;
  Scratch* scratch;
  Runs* run;
  InvalidIndexCheck invalid_index_check;
  bool reads_source;  // functional scatter, if `tiles`: the data need not be copied first
};

// Returns the first algorithm of the list that applies.
const Algorithm& choose(const Program& program, int threads);

// Completes a program. If it is too small for several threads, also chooses its algorithm. Returns an
// error message or null.
const char* prepare(Program& program);

// The algorithm that runs on the current number of threads.
struct Choice {
  const char* name;
  std::string reason;
  int64_t scratch;
};
Choice describe(const Program& program);

// Returns the name of the i-th algorithm, gathers first; null after the last.
const char* algorithm_name(int i);

// Returns the least bytes of a row for each thread if threads share the columns.
int64_t least_columns();

// The sizes from which algorithms are worthwhile, in bytes unless noted otherwise. Tests lower them.
struct Thresholds {
  int64_t own = 1 << 19;      // about the size of a core's private cache
  int64_t cache = 4 << 20;    // a core's part of the shared cache
  int64_t stretch = 1 << 18;  // a stretch of data that is prefetched as a whole
  int64_t far = 8 << 20;      // from here on a scatter's random writes reach memory
  int64_t many = 1 << 18;     // updates from which the two passes of a partition are worthwhile
  int64_t small = 1 << 16;    // calls that move fewer bytes use the simple algorithms
  int64_t stream = 4 << 20;   // results from this size use streaming stores
  int64_t tables = 4;  // updates per thread for each word of tables (exact_table.hpp) from which tables pay
  int64_t columns = least_columns();
};
Thresholds& thresholds();

struct NamedThreshold {
  const char* name;  // null: i is out of range
  int64_t* value;
};
NamedThreshold threshold(int i);

// Appends text and numbers to a reason, unless it is null. Digits are grouped in threes.
void append(std::string& to, const char* text);
void append(std::string& to, int64_t number);
template <class... Parts>
void append(std::string* why, const Parts&... parts) {
  if (why != nullptr) (append(*why, parts), ...);
}

// The scratch function of algorithms that need none.
inline int64_t no_scratch(const Program&, int) { return 0; }

// Returns true if blocks of this many bytes are loaded and stored as one value.
constexpr bool is_width(int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

// Returns true if each point is written directly after the previous one.
bool writes_in_order(const Nest& nest);
// Returns true if a nest writes from `at` on with streaming stores (null: for the best alignment). That
// requires a result too large for the cache, and rows that are whole cache lines, or contiguous rows of 4, 8
// or a multiple of 16 bytes.
bool streams_past_cache(const Nest& nest, const char* at);

// Returns the number of bytes that one index tuple moves.
int64_t row_bytes(const Nest& nest);
// Returns the number of columns, of `column` bytes each, to keep in cache: whole cache lines.
int64_t columns_in_cache(int64_t column, int64_t item, int64_t most);

// True if all tasks reported true.
class All {
 public:
  void operator&=(bool one) {
    if (!one) all_.store(false, std::memory_order_relaxed);
  }
  explicit operator bool() const { return all_.load(); }

 private:
  std::atomic<bool> all_{true};
};

// Sorts the updates of each unit by destination. If there is only one unit, shares its groups among threads.
// Calls `work` for each share; it computes folds, gradients or positions. The run is not valid if an index is
// invalid; its update was skipped.
using GroupWork = std::function<void(const GroupedScatter& groups, const GroupShare& share)>;
Run run_shares_of_groups(const Program& program, const Execution& call, const GroupWork& work);

// The functions that the lists name. Algorithms without scratch use no_scratch.
Applies applies_gather_stretches, applies_gather_packed, applies_streamed, applies_gather_units;
Scratch scratch_gather_stretches, scratch_gather_packed;
Runs run_gather_stretches, run_gather_packed, run_streamed, run_gather_units;

Applies applies_partition, applies_uncounted_slabs, applies_private_slabs, applies_shared_slabs,
    applies_one_slab, applies_slabs, applies_counted_groups, applies_sorted_groups, applies_columns,
    applies_owned, applies_scatter_units;
Scratch scratch_uncounted_slabs, scratch_partition, scratch_private_slabs, scratch_shared_slabs,
    scratch_one_slab, scratch_slabs, scratch_groups;
Runs run_uncounted_slabs, run_partition, run_private_slabs, run_ranges, run_slabs, run_groups, run_columns,
    run_owned, run_scatter_units;

}  // namespace gatherum
