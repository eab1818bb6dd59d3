#include "python/call.hpp"

#include <string_view>

namespace gatherum {
namespace {

constexpr auto kModeNames = [] {
  std::array<const char*, kModeCount> names{};
  for (size_t i = 0; i < names.size(); ++i) names[i] = kModes[i].name;
  return names;
}();
constexpr auto kReductionNames = [] {
  std::array<const char*, kEnumerators<Reduction>> names{};
  for (size_t i = 0; i < names.size(); ++i) names[i] = name_of(static_cast<Reduction>(i));
  return names;
}();

// Names as interned Python strings.
template <size_t N>
const std::array<PyObject*, N>& texts_of(const std::array<const char*, N>& names) {
  static const auto strings = [&] {
    std::array<PyObject*, N> kept{};
    for (size_t i = 0; i < N; ++i) kept[i] = kept_text(names[i]);
    return kept;
  }();
  return strings;
}

// The position of a name among the names of the core or Python, or -1 if it is not one of them. Names in a
// program's text are interned and compared by address; others are compared by value.
template <size_t N>
int number_of(PyObject* name, const std::array<const char*, N>& names) {
  const auto& strings = texts_of(names);
  for (size_t i = 0; i < N; ++i)
    if (name == strings[i]) return static_cast<int>(i);
  if (!PyUnicode_IS_COMPACT_ASCII(name)) return -1;
  const std::string_view text(reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(name)),
                              static_cast<size_t>(PyUnicode_GET_LENGTH(name)));
  for (size_t i = 0; i < N; ++i)
    if (text == names[i]) return static_cast<int>(i);
  return -1;
}

bool is_bool(nb::handle h) { return h.ptr() == Py_True || h.ptr() == Py_False; }

}  // namespace

bool read_attributes(const nb::handle* arguments, Attributes& attributes) {
  const auto [axis, reduction, include_self, mode, negative] =
      std::array{arguments[kAxis].ptr(), arguments[kReduction].ptr(), arguments[kIncludeSelf].ptr(),
                 arguments[kMode].ptr(), arguments[kNegative].ptr()};
  if (!PyLong_CheckExact(axis) || !PyUnicode_CheckExact(reduction) || !PyUnicode_CheckExact(mode) ||
      !is_bool(include_self) || !is_bool(negative))
    return false;
  int overflow = 0;
  attributes.op = arguments[kOp];
  static PyObject* const zero = PyLong_FromLong(0);  // the usual value, a single object in Python
  attributes.axis = axis == zero ? 0 : PyLong_AsLongLongAndOverflow(axis, &overflow);
  attributes.mode = number_of(mode, kModeNames);
  const int number = number_of(reduction, kReductionNames);
  attributes.reduction = static_cast<Reduction>(number);
  attributes.include_self = include_self == Py_True;
  attributes.negative = negative == Py_True;
  return overflow == 0 && attributes.mode >= 0 && number >= 0;
}

Attributes plain_attributes(const nb::handle* arguments) {
  Attributes attributes;
  if (!read_attributes(arguments, attributes))
    throw nb::value_error("gatherum: attributes were not normalized");
  return attributes;
}

nb::handle mode_name(const Attributes& attributes) {
  return texts_of(kModeNames)[static_cast<size_t>(attributes.mode)];
}

nb::handle reduction_name(const Attributes& attributes) {
  return texts_of(kReductionNames)[static_cast<size_t>(attributes.reduction)];
}

}  // namespace gatherum
