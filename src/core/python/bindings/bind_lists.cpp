// Binds lists of rows.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "python/bindings/bindings.hpp"
#include "python/guarded.hpp"
#include "python/runs.hpp"

namespace gatherum {
namespace {

using OwnedLists = std::unique_ptr<gatherum_lists, decltype(&gatherum_lists_free)>;
struct BoundLists {
  explicit BoundLists(OwnedLists owned) : lists(std::move(owned)) {}
  const gatherum_lists* get() const { return lists.get(); }
  OwnedLists lists;
};

char* memory_of(nb::handle array) { return PyArray_BYTES(checked_array(array)); }

// Returns the lists, or (operand, position, value) of an invalid index.
nb::object make(int64_t destinations, int64_t block, const BoundProgram& targets, nb::handle target_indices,
                nb::handle sources, nb::handle source_indices, bool numbered) {
  const gatherum_edge_ends to{targets.core(), memory_of(target_indices)};
  gatherum_edge_ends from{};
  if (!sources.is_none()) from = {nb::cast<const BoundProgram&>(sources).core(), memory_of(source_indices)};
  gatherum_lists* lists = nullptr;
  gatherum_error error{};
  const bool is_long = gatherum_program_is_long(targets.core()) != 0;
  const gatherum_status status = run_without_lock_if_long(is_long, error, [&](const gatherum_poll* poll) {
    return gatherum_lists_make(destinations, block, &to, from.program == nullptr ? nullptr : &from,
                               numbered ? 1 : 0, poll, &lists, &error);
  });
  if (status == GATHERUM_INVALID_INDEX) {
    const bool of_sources = std::strcmp(error.operand, "sources") == 0;
    const auto& end = of_sources ? nb::cast<const BoundProgram&>(sources) : targets;
    return nb::make_tuple(text(error.operand), error.position, index_value(end, error.value));
  }
  return make_bound<BoundLists>(OwnedLists(lists, &gatherum_lists_free));
}

gatherum_row_operands row_operands(nb::handle table, nb::handle weights, nb::handle start, nb::handle fill,
                                   nb::handle out, bool fresh) {
  gatherum_row_operands operands{};
  operands.table = memory_of(table);
  operands.table_step = PyArray_STRIDE(as_array(table), 0);
  if (!weights.is_none()) operands.weights = memory_of(weights);
  if (!start.is_none()) operands.start = memory_of(start);
  operands.fill = memory_of(fill);
  operands.out = memory_of(out);
  operands.out_step = PyArray_STRIDE(as_array(out), 0);
  operands.fresh = fresh ? 1 : 0;
  return operands;
}

void fold(const BoundLists& lists, const BoundProgram& rows, nb::handle table, nb::handle weights,
          nb::handle start, nb::handle fill, nb::handle out, bool fresh) {
  const gatherum_row_operands operands = row_operands(table, weights, start, fill, out, fresh);
  gatherum_error error{};
  const bool is_long =
      PyArray_NBYTES(as_array(table)) + PyArray_NBYTES(as_array(out)) + gatherum_lists_bytes(lists.get()) >=
      kLongBytes;
  run_without_lock_if_long(is_long, error, [&](const gatherum_poll* poll) {
    return gatherum_lists_fold(lists.get(), rows.core(), &operands, poll, &error);
  });
}

// Returns None, or (operand, position, value) of an invalid index.
nb::object fold_pointed(const BoundProgram& pointer, nb::handle indptr, const BoundProgram& sources,
                        nb::handle indices, const BoundProgram& rows, nb::handle table, nb::handle weights,
                        nb::handle fill, nb::handle out, bool fresh) {
  const gatherum_edge_ends to{pointer.core(), memory_of(indptr)}, from{sources.core(), memory_of(indices)};
  const gatherum_row_operands operands = row_operands(table, weights, nb::none(), fill, out, fresh);
  gatherum_error error{};
  const bool is_long = PyArray_NBYTES(as_array(table)) + PyArray_NBYTES(as_array(out)) >= kLongBytes ||
                       gatherum_program_is_long(sources.core()) != 0;
  const gatherum_status status = run_without_lock_if_long(is_long, error, [&](const gatherum_poll* poll) {
    return gatherum_fold_pointed(&to, &from, rows.core(), &operands, poll, &error);
  });
  if (status != GATHERUM_INVALID_INDEX) return nb::none();
  return nb::make_tuple(text(error.operand), error.position, index_value(sources, error.value));
}

// Writes the pointer array of edges whose targets ascend. Returns false for other edges.
bool make_pointer(const BoundProgram& targets, nb::handle target_indices, nb::handle pointer) {
  const gatherum_edge_ends to{targets.core(), memory_of(target_indices)};
  auto* const entries = reinterpret_cast<int64_t*>(memory_of(pointer));
  int32_t ascends = 0;
  gatherum_error error{};
  const bool is_long = gatherum_program_is_long(targets.core()) != 0;
  run_without_lock_if_long(is_long, error, [&](const gatherum_poll* poll) {
    return gatherum_make_pointer(&to, entries, &ascends, poll, &error);
  });
  return ascends != 0;
}

}  // namespace

void bind_lists(nb::module_& m) {
  nb::class_<BoundLists>(m, "RowLists", nb::type_slots(guarded_slots))
      .def_prop_ro("nbytes", [](const BoundLists& lists) { return gatherum_lists_bytes(lists.get()); })
      .def("fold", fold, nb::arg("rows"), nb::arg("table"), nb::arg("weights").none(),
           nb::arg("start").none(), nb::arg("fill"), nb::arg("out"), nb::arg("fresh"));
  m.def("make_lists", make, nb::arg("destinations"), nb::arg("block"), nb::arg("targets"),
        nb::arg("target_indices"), nb::arg("sources").none(), nb::arg("source_indices").none(),
        nb::arg("numbered"));
  m.def("fold_pointed", fold_pointed, nb::arg("pointer"), nb::arg("indptr"), nb::arg("sources"),
        nb::arg("indices"), nb::arg("rows"), nb::arg("table"), nb::arg("weights").none(), nb::arg("fill"),
        nb::arg("out"), nb::arg("fresh"));
  m.def("make_pointer", make_pointer, nb::arg("targets"), nb::arg("target_indices"), nb::arg("pointer"));
  // Allocates an array like the results of operators: a large one uses huge pages.
  m.def(
      "new_result",
      [](nb::handle dtype, const nb::tuple& shape) {
        if (!PyArray_DescrCheck(dtype.ptr())) throw nb::type_error("gatherum: not a dtype");
        std::vector<npy_intp> extents;
        for (nb::handle extent : shape) extents.push_back(nb::cast<npy_intp>(extent));
        return new_array(reinterpret_cast<PyArray_Descr*>(dtype.ptr()), static_cast<int>(extents.size()),
                         extents.data());
      },
      nb::arg("dtype"), nb::arg("shape"));
}

}  // namespace gatherum
