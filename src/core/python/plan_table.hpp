// The table of plans, for every framework's arrays: what a plan depends on, and where it is found.
#pragma once

#include <vector>

#include "python/call.hpp"
#include "python/programs.hpp"

namespace gatherum {

// Compares words with as many that were kept. There is one branch at the end: a branch for each word takes
// longer.
class Comparison {
 public:
  explicit Comparison(const int64_t* words) : at_(words) {}
  void add(const Attributes& attributes) {
    each_word(attributes, [this](int64_t word) { compare(word); });
  }
  // No operand of a dtype without a number is the same.
  void add(const Views& operands) {
    for (const View& view : operands) {
      if (view.given() && view.dtype == kNoDType) differences_ |= 1;
      each_word(view, [this](int64_t word) { compare(word); });
    }
  }
  bool same() const { return differences_ == 0; }

 private:
  void compare(int64_t word) { differences_ |= *at_++ ^ word; }

  const int64_t* at_;
  int64_t differences_ = 0;
};

// What a plan depends on, as words. A dtype that has no number is the address of NumPy's object, which the
// table keeps alive. The fields of a structured dtype can be renamed, which gives it another tuple of names.
class Key {
 public:
  Key() = default;
  explicit Key(const Call& call) {
    each_word(call.attributes, [this](int64_t word) { add(word); });
    add(call.operands);
  }
  void add(const Views& operands) {
    for (const View& view : operands) {
      each_word(view, [this](int64_t word) { add(word); });
      if (view.given() && view.dtype == kNoDType) add_numpy(view);
    }
  }

  int size() const { return n_; }
  uint64_t hash() const;
  const int64_t* words() const { return words_; }
  bool whole() const { return whole_; }      // false: the words do not say everything
  bool lasting() const { return lasting_; }  // no word is an address: they mean the same for ever

 private:
  static constexpr int kMostNames = 64;

  void add(int64_t word) { words_[n_++] = word; }
  void add_address(const void* object) { add(static_cast<int64_t>(reinterpret_cast<intptr_t>(object))); }
  void add_numpy(const View& view);

  int n_ = 0, names_ = 0;
  bool whole_ = true, lasting_ = true;
  int64_t words_[3 + kMostNames + kOperands * (3 + 2 * NPY_MAXDIMS)];  // as many as are needed are set
};

// A plan with its program, which lives as long.
struct CachedPlan {
  nb::object plan;
  const BoundProgram* program = nullptr;
};

// The plan of the table; none where it is not there.
CachedPlan find_plan(const Call& call);
// Has Python make the plan, of operands as its callback takes them. It raises for a call that cannot be.
CachedPlan make_plan(const Attributes& attributes, const OperandHandles& operands);
// Keeps a plan, unless the operands have become others than the key says.
void keep_plan(const Key& key, const Call& call, const CachedPlan& found);

// The program of a Python Plan, which keeps it alive.
const BoundProgram& program_of(nb::handle plan);

// Forgets every plan of the table.
void clear_plans();

}  // namespace gatherum
