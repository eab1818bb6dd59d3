// The table of plans, for every framework's arrays: the key that a plan depends on, and the lookup.
#pragma once

#include <vector>

#include "python/call.hpp"
#include "python/programs.hpp"

namespace gatherum {

// Compares words with an equal number of stored words. It branches once, at the end, because a branch for
// each word takes longer.
class Comparison {
 public:
  explicit Comparison(const int64_t* words) : word_(words) {}
  void add(const Attributes& attributes) {
    each_word(attributes, [this](int64_t word) { compare(word); });
  }
  // An operand whose dtype has no number never compares equal.
  void add(const Views& operands) {
    for (const View& view : operands) {
      if (view.is_present() && view.dtype == kNoDType) differences_ |= 1;
      each_word(view, [this](int64_t word) { compare(word); });
    }
  }
  bool is_equal() const { return differences_ == 0; }

 private:
  void compare(int64_t word) { differences_ |= *word_++ ^ word; }

  const int64_t* word_;
  int64_t differences_ = 0;
};

// Returns a hash of words. Its upper bits depend on all words.
uint64_t hash_of(const int64_t* words, int n);

// The words that a plan depends on. A dtype without a number is represented by the address of its NumPy dtype
// object; the table keeps this object alive. The names of a structured dtype are part of the key, because its
// fields can be renamed.
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
      if (view.is_present() && view.dtype == kNoDType) add_numpy(view);
    }
  }

  int size() const { return n_; }
  uint64_t hash() const { return hash_of(words_, n_); }
  const int64_t* words() const { return words_; }
  bool identifies_call() const { return identifies_call_; }  // false: two calls may have these words
  bool is_lasting() const { return is_lasting_; }  // no word is an address, so the words stay valid forever

 private:
  static constexpr int kMostNames = 64;

  void add(int64_t word) { words_[n_++] = word; }
  void add_address(const void* object) { add(static_cast<int64_t>(reinterpret_cast<intptr_t>(object))); }
  void add_numpy(const View& view);

  int n_ = 0, names_ = 0;
  bool identifies_call_ = true, is_lasting_ = true;
  // Only the words that are needed are set.
  int64_t words_[kAttributeWords + kMostNames + kOperandCount * (3 + 2 * NPY_MAXDIMS)];
};

// A plan with its program, which exists as long as the plan.
struct CachedPlan {
  nb::object plan;  // Python's Plan, or a CallPlan
  const BoundProgram* program = nullptr;
};

// Returns the plan from the table, or an empty value if the table does not contain it.
CachedPlan find_plan(const Call& call);
// Calls Python to make the plan, with operands in the form that the callback accepts. Raises for an invalid
// call.
CachedPlan plan_in_python(const Attributes& attributes, const OperandHandles& operands);
// Stores a plan, unless the operands no longer match the key.
void keep_plan(const Key& key, const Call& call, const CachedPlan& cached);

// Returns the program of a plan. The plan keeps the program alive.
const BoundProgram& program_of(nb::handle plan);

// Clears the table of plans. Returns the plans.
std::vector<CachedPlan> take_plans();

}  // namespace gatherum
