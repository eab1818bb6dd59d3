// The implementations that run a program, in two ordered lists: the first that applies runs. All of them give
// the same bits: each destination meets its updates in row-major order of the indices, or in any order where
// that gives the same bits. They differ in what they stream, what they keep in cache, and how much memory
// they need.
//
// To add one: a file with its functions, named in CMakeLists.txt; their declarations, at the end of this
// file; and a row in the list of gathers or scatters (list.cpp).
#pragma once

#include <functional>
#include <string>

#include "engine/schedule.hpp"

namespace gatherum {

// One run of a program. `source`: a functional scatter's data, where the implementation reads it itself, else
// null. `fresh`: nobody sees the output if the call fails.
struct Execution {
  const Operands& at;
  const char* source;
  bool fresh;
  int threads;
  const Poll& poll;
};

// What became of it: cut short by poll, or done, perhaps with invalid tuples skipped.
struct Run {
  bool finished = true, valid = true, memory = true;
};

// The outcome of a run: where it met an invalid index and that is an error, the first one that there is now.
Outcome outcome_of(const Run& run, const Program& program, const char* index, const Poll& poll);

// When an implementation finds an invalid index by itself.
enum class Finds : uint8_t { never, while_writing, before_writing };

// Whether the implementation can run the program on that many threads, and is worth it. The reason is
// appended to `why`, unless that is null; nothing is appended where it does not apply. The last of a list
// applies to every program.
using Applies = bool(const Program&, int threads, std::string* why);
// Bytes of working memory on that many threads, besides buffers of up to 4 MiB per thread.
using Scratch = int64_t(const Program&, int threads);
using Runs = Run(const Program&, const Execution&);

struct Implementation {
  const char* name;
  Applies* applies;
  Scratch* scratch;
  Runs* run;
  Finds finds;
  bool reads_source;  // a functional scatter's data need not be copied first, where `tiles`
};

// The first of the list that applies.
const Implementation& choose(const Program& program, int threads);

// Completes a program and chooses for it beforehand, where it is too small for several threads. Returns what
// is wrong with it, or null.
const char* prepare(Program& program);

// What runs on the present number of threads.
struct Choice {
  const char* name;
  std::string reason;
  int64_t scratch;
};
Choice describe(const Program& program);

// The name of the i-th, gathers first; null behind the last.
const char* implementation_name(int i);

// Bytes of a row for each of the threads that share its columns.
int64_t least_columns();

// Sizes, in bytes unless said otherwise, from which on implementations pay. Tests make them small.
struct Thresholds {
  int64_t own = 1 << 19;      // about what a core keeps to itself
  int64_t cache = 4 << 20;    // what it has of the cache that it shares
  int64_t stretch = 1 << 18;  // a stretch of data that is fetched ahead as a whole
  int64_t far = 8 << 20;      // from here on a scatter's random writes go to memory
  int64_t many = 1 << 18;     // updates from which on the two passes of a partition pay
  int64_t small = 1 << 16;    // a call that moves less is too small for another implementation to pay
  int64_t stream = 4 << 20;   // a result that is written past the cache
  int64_t tables = 4;  // updates a thread for each word of tables (exact_table.hpp), from which on these pay
  int64_t columns = least_columns();
};
Thresholds& thresholds();

struct NamedThreshold {
  const char* name;  // null: there is none of this number
  int64_t* value;
};
NamedThreshold threshold(int i);

// Appends text and numbers to a reason, unless it is null; numbers in groups of three digits.
void append(std::string& to, const char* text);
void append(std::string& to, int64_t number);
template <class... Parts>
void append(std::string* why, const Parts&... parts) {
  if (why != nullptr) (append(*why, parts), ...);
}

// A scratch function for those that need none.
inline int64_t no_scratch(const Program&, int) { return 0; }

// Whether blocks of that many bytes are loaded and stored as one value.
constexpr bool is_width(int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

// Whether each point is written where the one before it ends.
bool writes_in_order(const Nest& nest);
// Whether what a nest writes from `at` on (null: the best of addresses) goes past the cache: too much for it,
// and rows are whole cache lines, or follow one another and have 4, 8 or a multiple of 16 bytes.
bool streams_past_cache(const Nest& nest, const char* at);

// Bytes that one index tuple moves.
int64_t row_bytes(const Nest& nest);
// How many columns of so many bytes each to keep in cache: whole cache lines of them.
int64_t columns_in_cache(int64_t column, int64_t item, int64_t most);

// Collects from tasks whether all of them were content.
class All {
 public:
  void operator&=(bool one) {
    if (!one) all_.store(false, std::memory_order_relaxed);
  }
  explicit operator bool() const { return all_.load(); }

 private:
  std::atomic<bool> all_{true};
};

// Puts the updates of each unit in order of their destination, and shares the groups of those of one among
// threads, which `work` is done with: for folds, gradients and positions. Not valid: an index addresses
// nothing, and its update was left out.
using GroupWork = std::function<void(const GroupedScatter& groups, const GroupShare& share)>;
Run run_shares_of_groups(const Program& program, const Execution& call, const GroupWork& work);

// What the lists name; scratch only where it is not no_scratch.
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
