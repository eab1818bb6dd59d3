// Lists of rows: for every destination the rows of a table that are folded into it, in order of their edges.
#pragma once

#include <utility>

#include "engine/engine.hpp"

namespace gatherum {

// The lengths and the number of the pieces that the units of a stage are counted out in, on so many threads.
void cut_in_pieces(ListStage& stage, int64_t edges, int threads);

// The outcome for edges: whether all were read, whether all were valid, and how many were kept.
struct Ordered {
  bool finished, valid;
  int64_t kept;
};
// Puts edges in order of their targets, by a stable counting sort. `starts`: where each destination's begin,
// and end; null: not wanted.
Ordered order_edges(ListStage stage, char* starts, const char* targets, const char* sources, int threads,
                    const Poll& poll);

// Memory that knows its size; large blocks lie on huge pages.
class OwnedMemory {
 public:
  OwnedMemory() = default;
  explicit OwnedMemory(int64_t bytes);  // throws std::bad_alloc
  ~OwnedMemory();
  OwnedMemory(OwnedMemory&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(other.bytes_) {}
  OwnedMemory& operator=(OwnedMemory&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  OwnedMemory(const OwnedMemory&) = delete;
  OwnedMemory& operator=(const OwnedMemory&) = delete;
  char* get() const { return start_; }
  int64_t bytes() const { return start_ == nullptr ? 0 : bytes_; }

 private:
  char* start_ = nullptr;
  int64_t bytes_ = 0;
};

// One end of the edges: a program whose `checks` walks the edges in order, with one component that numbers
// what they address. Null indices of null programs: an edge's own number.
struct EdgeEnds {
  const Program* program = nullptr;
  const char* indices = nullptr;
};

// Whether two programs describe a pointer and the sources of its edges.
bool fits_pointer(const Program& pointer, const Program& sources);

// Folds rows without lists, by a pointer: a program of one loop, and one component as large as there are
// edges, and one more. `call` says all but the table's size. `fresh`: nobody sees the result if an index is
// invalid. `invalid`: which end the outcome speaks of, 0 the pointer: it does not ascend from 0 to the number
// of edges. Throws std::bad_alloc.
Outcome fold_pointed(const EdgeEnds& pointer, const EdgeEnds& sources, ListFold call, bool fresh,
                     const Poll& poll, int& invalid);

class RowLists {
 public:
  // Whether two programs describe the two ends of the same edges.
  static bool fit(int64_t destinations, const Program& targets, const Program* sources);

  // Reads and checks every index once. `block`: how many destinations share a list; more than one for folds
  // of items alone, and without sources. `numbered`: the numbers of the edges are kept, for weights.
  // `invalid`: which end the outcome speaks of, 0 the targets. Throws std::bad_alloc.
  Outcome make(int64_t destinations, int64_t block, const EdgeEnds& targets, const EdgeEnds& sources,
               bool numbered, const Poll& poll, int& invalid);

  // Folds the rows of a table; `call` says all but the lists. False: cut short by poll.
  bool fold(ListFold call, const Poll& poll) const;

  int64_t destinations() const { return destinations_; }
  int64_t block() const { return block_; }
  int64_t table() const { return table_; }  // its rows
  int64_t kept() const { return kept_; }    // edges
  bool numbered() const { return edges_.get() != nullptr || kept_ == 0; }
  int64_t bytes() const { return starts_.bytes() + rows_.bytes() + edges_.bytes() + bounds_.bytes(); }

 private:
  bool is_narrow() const { return block_ <= kStretch; }
  bool pack(int64_t edges, int threads, const Poll& poll);
  bool fold_rows(ListFold& call, const Poll& poll) const;
  bool fold_blocks(const ListFold& call, const Poll& poll) const;

  int64_t destinations_ = 0, block_ = 1, lists_ = 0, kept_ = 0, table_ = 0;
  bool wide_ = false;
  OwnedMemory starts_, rows_, edges_;
  int64_t stretches_ = 0;  // of lists of blocks, as bounds_
  OwnedMemory bounds_;
};

}  // namespace gatherum
