// A call as plans see it: attributes and the views of its operands, like call.py in Python.
#pragma once

#include <algorithm>

#include "model/types.hpp"
#include "python/views.hpp"

namespace gatherum {

// The arguments of the functions that run a call, in their order. kOp is the operator's name, interned.
inline constexpr int kArgumentCount = 11;
enum Argument {
  kOp,
  kData,
  kIndices,
  kUpdates,
  kAxis,
  kReduction,
  kIncludeSelf,
  kMode,
  kNegative,
  kFill,
  kOut
};
using Arguments = std::array<nb::handle, kArgumentCount>;

// The first arguments of a call, with the operator's name interned. Arguments behind them are None.
class NamedArguments {
 public:
  NamedArguments(const nb::handle* arguments, int count) : op_(interned(arguments[kOp])) {
    arguments_.fill(nb::handle(Py_None));
    std::copy_n(arguments, count, arguments_.begin());
    arguments_[kOp] = op_;
  }
  const nb::handle* arguments() const { return arguments_.data(); }

 private:
  nb::object op_;
  Arguments arguments_;
};

inline OperandHandles operands_of(const nb::handle* arguments) {
  return {arguments[kData], arguments[kIndices], arguments[kUpdates], arguments[kOut]};
}

// The operator and all arguments except arrays.
struct Attributes {
  nb::handle op;  // the operator's name, interned
  int64_t axis = 0;
  int mode = 0;  // the number of its row in kModes
  Reduction reduction = Reduction::none;
  bool include_self = true;
  bool negative = true;
};

// Everything that a plan depends on. It is on the stack, and valid as long as the operands do not change
// their form.
struct Call {
  Attributes attributes;
  Views operands;
};

// Reads attributes that are plain values. Returns false for any other value, which Python then converts or
// rejects.
bool read_attributes(const nb::handle* arguments, Attributes& attributes);
// Reads attributes that must be plain values, because the caller has converted them.
Attributes plain_attributes(const nb::handle* arguments);

// The names of attributes as Python strings.
nb::handle mode_name(const Attributes& attributes);
nb::handle reduction_name(const Attributes& attributes);

// Calls `take(word)` for the words that distinguish calls: the words of the attributes, and of each operand's
// dtype, shape and strides. A dtype is represented by its number in dtypes.hpp. `Key` adds words for a dtype
// without a number.
template <class Take>
void each_word(const Attributes& attributes, const Take& take) {
  take(static_cast<int64_t>(reinterpret_cast<intptr_t>(attributes.op.ptr())));
  take(attributes.axis);
  static_assert(kEnumerators<Reduction> <= 16);
  const int words = attributes.mode * 16 + static_cast<int>(attributes.reduction);
  take(int64_t{words * 4 + (attributes.include_self ? 2 : 0) + (attributes.negative ? 1 : 0)});
}
template <class Take>
void each_word(const View& view, const Take& take) {
  take((int64_t{view.dtype} + 1) * 256 + view.rank + 1);
  for (int i = 0; i < view.rank; ++i) take(int64_t{view.shape[i]});
  for (int i = 0; i < view.rank; ++i) take(int64_t{view.strides[i]});
}

// The number of words that each_word produces.
inline constexpr int kAttributeWords = 3;
inline int words_of(const Views& operands) {
  int n = 0;
  for (const View& view : operands) n += view.is_present() ? 1 + 2 * view.rank : 1;
  return n;
}

}  // namespace gatherum
