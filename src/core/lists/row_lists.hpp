// Lists of rows. Each destination has a list of the table rows that are reduced into it, in the order of
// their edges.
#pragma once

#include "engine/outcome.hpp"
#include "engine/owned_memory.hpp"
#include "kernels/calls.hpp"
#include "model/program.hpp"

namespace gatherum {

// Divides the units of a stage into pieces for counting: sets the length and the number of pieces for this
// number of threads.
void cut_in_pieces(ListStage& stage, int64_t edges, int threads);

// The result of ordering edges: whether the work finished, whether all edges were valid, how many were kept,
// and whether the edges were already in order, so that their rows serve as the lists.
struct Ordered {
  bool finished, valid;
  int64_t kept_edges;
  bool in_place = false;
};
// Sorts edges by target with a stable counting sort. `starts` receives the position of the first edge of each
// destination, and the end position; it may be null.
Ordered order_edges(ListStage stage, char* starts, const char* targets, const char* sources, int threads,
                    const Poll& poll);

// The sources or the targets of the edges, as a program. The nest `checks` of the program visits the edges in
// order. This nest has one component: the number of the addressed element. If both members are null, edge i
// addresses element i.
struct EdgeEnds {
  const Program* program = nullptr;
  const char* indices = nullptr;
};

// Returns true if a program describes the indices of one end of the edges with a single loop.
bool is_one_line(const Program& end);

// Writes the CSR pointer array of edges to `starts`. The targets are one line. Entry d is the number of edges
// with targets below d, and the last entry is the number of edges. If a target is invalid or less than the
// target before it, `ascends` is false, and the entries are undefined.
Outcome make_pointer(const EdgeEnds& targets, int64_t* starts, bool& ascends, const Poll& poll);

// Returns true if two programs describe a CSR pointer array and the sources of its edges.
bool are_pointer_and_sources(const Program& pointer, const Program& sources);

// Reduces rows by a CSR pointer array, without lists. A program of one loop, with one component of size edges
// + 1, describes this array. Every field of `call` is set except the size of the table. `fresh` is true if
// the result is discarded after an invalid index. If the outcome is an error, `invalid` is 1 for an invalid
// source, and 0 for a pointer array that does not ascend from 0 to the number of edges. Throws
// std::bad_alloc.
Outcome fold_pointed(const EdgeEnds& pointer, const EdgeEnds& sources, ListFold call, bool fresh,
                     const Poll& poll, int& invalid);

class RowLists {
 public:
  // Returns true if two programs describe the two ends of the same edges.
  static bool are_ends_of_edges(int64_t destinations, const Program& targets, const Program* sources);

  // Reads and checks every index once. `bucket_size` is the number of destinations that share a list; it is
  // above 1 only for reductions of single items without sources. `numbered` is true if the edge numbers are
  // kept, for weights. If the outcome is an error, `invalid` is 1 for the sources and 0 for the targets.
  // Throws std::bad_alloc.
  Outcome make(int64_t destinations, int64_t bucket_size, const EdgeEnds& targets, const EdgeEnds& sources,
               bool numbered, const Poll& poll, int& invalid);

  // Reduces the rows of a table. Every field of `call` is set except the lists. Returns false if poll
  // interrupted it.
  bool fold(ListFold call, const Poll& poll) const;

  int64_t destinations() const { return destinations_; }
  int64_t bucket_size() const { return bucket_size_; }
  int64_t table_rows() const { return table_rows_; }
  int64_t kept_edges() const { return kept_edges_; }
  bool has_edge_numbers() const { return edges_.get() != nullptr || kept_edges_ == 0; }
  // The position of a destination's first edge in the lists, and the memory of the numbers of the rows from
  // there on. These numbers have 8 bytes if is_wide(), or else 4 bytes.
  int64_t start_of(int64_t destination) const;
  const char* rows_of(int64_t destination) const {
    return rows_.get() + start_of(destination) * (wide_ ? 8 : 4);
  }
  int64_t row_at(int64_t position) const;
  bool is_wide() const { return wide_; }
  int64_t bytes() const { return starts_.bytes() + rows_.bytes() + edges_.bytes() + bounds_.bytes(); }

 private:
  bool is_narrow() const { return bucket_size_ <= kUpdatesPerStretch; }
  bool pack(int64_t edges, int threads, const Poll& poll);
  bool fold_rows(ListFold& call, const Poll& poll) const;
  ListStage stage_of(const EdgeEnds& targets, const EdgeEnds& sources, int threads) const;
  bool fold_buckets(const ListFold& call, const Poll& poll) const;

  int64_t destinations_ = 0, bucket_size_ = 1, lists_ = 0, kept_edges_ = 0, table_rows_ = 0;
  bool wide_ = false;
  OwnedMemory starts_, rows_, edges_;
  int64_t stretches_ = 0;  // for lists of buckets, like bounds_
  OwnedMemory bounds_;
};

}  // namespace gatherum
