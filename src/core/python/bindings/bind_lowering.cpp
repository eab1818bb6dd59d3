// Binds the checks of operator calls, the roles of dimensions, and the loops.
#include <utility>

#include "engine/overlaps.hpp"
#include "model/plan_call.hpp"
#include "model/shape_rules.hpp"
#include "python/bindings/bindings.hpp"
#include "python/guarded.hpp"
#include "python/numpy/arrays.hpp"
#include "python/programs.hpp"
#include "python/views.hpp"

namespace gatherum {
namespace {

std::vector<int64_t> read_integers(const char* name, nb::handle sequence) {
  std::vector<int64_t> integers;
  for (nb::handle item : sequence) integers.push_back(read_integer(name, item));
  return integers;
}

nb::object as_tuple(const std::vector<int64_t>& integers) {
  return tuple_of(integers.data(), static_cast<int64_t>(integers.size()));
}

// Reads (shape, strides), Python's `shape_limits.OperandLayout`.
OperandLayout read_layout(nb::handle pair) {
  const auto parts = nb::cast<nb::tuple>(pair);
  if (parts.size() != 2) throw nb::type_error("gatherum: not a layout");
  OperandLayout layout{read_integers("shape", parts[0]), read_integers("strides", parts[1])};
  if (layout.shape.size() != layout.strides.size()) throw nb::type_error("gatherum: not a layout");
  return layout;
}

// Reads (takes_tuples, shares_front, shares_back), Python's `operators.Addressing`.
Addressing read_addressing(const nb::tuple& facts) {
  if (facts.size() != 3) throw nb::type_error("gatherum: not the facts of an addressing");
  return {nb::cast<bool>(facts[0]), nb::cast<bool>(facts[1]), nb::cast<bool>(facts[2])};
}

// Calls `each(n, ...)` for tuples of N integers.
template <size_t N, class Each>
void each_row(const char* name, nb::handle rows, const Each& each) {
  for (nb::handle row : rows) {
    const std::vector<int64_t> integers = read_integers(name, row);
    if (integers.size() != N) throw nb::type_error("gatherum: a tuple of another size");
    each(integers);
  }
}

nb::object fault_tuple(const Finding& f) {
  return nb::make_tuple(text(name_of(f.fault)), text(name_of(f.operand)), f.dimension, f.expected, f.found,
                        as_tuple(f.wanted));
}

// Returns (program, the moved shape), or a description of the error.
nb::object lower(const nb::tuple& facts, int64_t axis, nb::handle data, nb::handle indices,
                 nb::handle updates, nb::handle out, const nb::dict& fields) {
  Program program = fields_of(fields.ptr());
  ShapedCall call{read_addressing(facts), axis, read_layout(data), read_layout(indices)};
  OperandLayout of_updates, of_out;
  if (program.scatter) call.updates = &(of_updates = read_layout(updates));
  if (!out.is_none()) call.out = &(of_out = read_layout(out));
  std::vector<int64_t> moved;
  if (const Finding f = lower_checked(call, program, moved)) return fault_tuple(f);
  return nb::make_tuple(make_bound<BoundProgram>(to_bytes(program)), as_tuple(moved));
}

nb::object find_roles(const nb::tuple& facts, int64_t rank, int64_t indices_rank, int64_t components,
                      int64_t axis) {
  const Roles roles = roles_of(read_addressing(facts), rank, indices_rank, components, axis);
  const auto or_none = [](int64_t d) -> nb::object {
    if (d == kNowhere) return nb::none();
    return nb::int_(d);
  };
  const auto pair = [](const DimensionRange& r) { return nb::make_tuple(r.begin, r.end); };
  nb::list moved;
  for (const Source& source : roles.moved)
    moved.append(nb::make_tuple(or_none(source.data), or_none(source.indices)));
  return nb::make_tuple(nb::tuple(moved), pair(roles.entries), pair(roles.indexed), pair(roles.addressed));
}

// Returns a description of the size conflict between data and indices, or None if there is none. `holds`
// decides comparisons of sizes, which may be symbols.
nb::object find_wrong_sizes(const nb::tuple& facts, const nb::tuple& data, const nb::tuple& indices,
                            int64_t axis, nb::handle holds) {
  const Addressing addressing = read_addressing(facts);
  const auto rank = static_cast<int64_t>(data.size()), entries = static_cast<int64_t>(indices.size());
  const auto fits = [&](int64_t d, bool equal) {
    const auto at = static_cast<size_t>(d);
    const nb::object one = nb::borrow(indices[at]), other = nb::borrow(data[at]);
    const nb::object condition = checked(PyObject_RichCompare(one.ptr(), other.ptr(), equal ? Py_EQ : Py_LE));
    return nb::cast<bool>(holds(condition));
  };
  int64_t components = 1;
  if (addressing.takes_tuples) {
    if (entries == 0) throw nb::value_error("gatherum: no dimension of tuples");
    components = read_integer("indices", indices[static_cast<size_t>(entries - 1)]);
  }
  const Finding f = find_misfit(addressing, rank, entries, components, axis, fits);
  return f ? fault_tuple(f) : nb::none();
}

// Returns loops that assign row-major numbers to the elements of a space that index tuples address.
nb::object lower_numbering(const nb::tuple& facts, int64_t axis, nb::handle space, nb::handle indices) {
  const Addressing addressing = read_addressing(facts);
  const OperandLayout numbering = contiguous_layout(read_integers("space", space), 1),
                      of = read_layout(indices);
  if (addressing.takes_tuples && of.shape.empty()) throw nb::value_error("gatherum: no dimension of tuples");
  const int64_t components = addressing.takes_tuples ? of.shape.back() : 1;
  const Roles roles = roles_of(addressing, numbering.rank(), of.rank(), components, axis);
  const bool fits = axis >= 0 && components >= 0 && roles.indexed.end <= numbering.rank() &&
                    components <= kMaxComponents &&
                    roles.moved.size() == entries_of(addressing, of).shape.size();
  if (!fits) throw nb::value_error("gatherum: not the space of these indices");
  return nest_tuple(lower_numbers(addressing, axis, numbering, of));
}

nb::object collapse_loops(nb::handle loops) {
  Loops parsed;
  each_row<4>("loops", loops, [&](const auto& n) { parsed.push_back({n[0], n[1], n[2], n[3]}); });
  nb::list merged;
  for (const Loop& l : collapse(parsed)) merged.append(nb::make_tuple(l.extent, l.data, l.index, l.moved));
  return merged;
}

nb::object checks_nest(nb::handle entries, nb::handle components) {
  Components parsed;
  each_row<3>("components", components, [&](const auto& n) { parsed.push_back({n[0], n[1], n[2]}); });
  if (parsed.size() > kMaxComponents) throw nb::value_error("gatherum: too many components");
  return nest_tuple(lower_checks(read_layout(entries), parsed));
}

nb::object copy_nest(nb::handle source, nb::handle target, int64_t item) {
  const OperandLayout from = read_layout(source), to = read_layout(target);
  if (from.shape != to.shape) throw nb::value_error("gatherum: layouts of two shapes");
  return nest_tuple(lower_copy(from, to, item));
}

Footprint footprint_of_array(nb::handle array) { return footprint_of(view_of(checked_array(array))); }

}  // namespace

void bind_lowering(nb::module_& m) {
  m.def("lower", &lower, nb::arg("addressing"), nb::arg("axis"), nb::arg("data"), nb::arg("indices"),
        nb::arg("updates").none(), nb::arg("out").none(), nb::arg("fields"));
  m.def("find_roles", &find_roles, nb::arg("addressing"), nb::arg("rank"), nb::arg("indices_rank"),
        nb::arg("components"), nb::arg("axis"));
  m.def("find_misfit", &find_wrong_sizes, nb::arg("addressing"), nb::arg("data"), nb::arg("indices"),
        nb::arg("axis"), nb::arg("holds"));
  m.def("lower_numbers", &lower_numbering, nb::arg("addressing"), nb::arg("axis"), nb::arg("space"),
        nb::arg("indices"));
  m.def("collapse", &collapse_loops, nb::arg("loops"));
  m.def("lower_checks", &checks_nest, nb::arg("entries"), nb::arg("components"));
  m.def("lower_copy", &copy_nest, nb::arg("source"), nb::arg("target"), nb::arg("item"));
  m.def(
      "overlaps_itself",
      [](nb::handle shape, nb::handle strides, int64_t item, bool searches) {
        return overlaps_itself({read_integers("shape", shape), read_integers("strides", strides)}, item,
                               searches ? 0 : kFewElements);
      },
      nb::arg("shape"), nb::arg("strides"), nb::arg("item"), nb::arg("searches"));
  m.def(
      "shares_memory",
      [](nb::handle one, nb::handle other) {
        return shares_memory(footprint_of_array(one), footprint_of_array(other));
      },
      nb::arg("one"), nb::arg("other"));
  // The name of the first operand that shares memory with `out`, or None.
  m.def(
      "first_overlap",
      [](nb::handle data, nb::handle indices, nb::handle updates, nb::handle out) -> nb::object {
        for (nb::handle array : {data, indices, out}) checked_array(array);
        if (!updates.is_none()) checked_array(updates);
        const int operand = first_overlap(views_of({data, indices, updates, out}));
        return operand < 0 ? nb::none() : text(name_of(static_cast<Operand>(operand)));
      },
      nb::arg("data"), nb::arg("indices"), nb::arg("updates").none(), nb::arg("out"));
  // For each operator: whether it is a scatter, its dimension attribute, and the facts of its addressing.
  m.def("operator_rows", [] {
    nb::dict rows;
    for (const OperatorRow& row : kOperators) {
      const auto [takes_tuples, shares_front, shares_back] = row.addressing;
      rows[row.name] = nb::make_tuple(row.is_scatter, row.attribute,
                                      nb::make_tuple(takes_tuples, shares_front, shares_back));
    }
    return rows;
  });
}

}  // namespace gatherum
