// Binds scatters in batches: the class `Fold`.
#include <algorithm>
#include <cstring>

#include "python/bindings/bindings.hpp"
#include "python/guarded.hpp"
#include "python/runs.hpp"

namespace gatherum {
namespace {

// The type of a fold, with the properties that the core reports for it.
struct BoundFold {
  gatherum_fold type;
  bool any_order;
  int64_t sum_bytes;
};

void make_fold(BoundFold* self, Reduction reduction, Value value, bool include_self, int64_t item) {
  BoundFold fold{{name_of(reduction), name_of(value), include_self ? 1 : 0, item}, false, 0};
  int32_t any_order = 0;
  if (gatherum_fold_describe(&fold.type, &any_order, &fold.sum_bytes) != GATHERUM_OK)
    throw nb::value_error("gatherum: not a fold");
  fold.any_order = any_order != 0;
  new (self) BoundFold(fold);
}

// The memory of n elements of an array in C order.
char* memory_of(nb::handle h, int64_t n, int64_t bytes) {
  if (!PyArray_Check(h.ptr()) || !PyArray_IS_C_CONTIGUOUS(as_array(h)) ||
      PyArray_NBYTES(as_array(h)) != n * bytes)
    throw nb::value_error("gatherum: not an array of this fold");
  return PyArray_BYTES(as_array(h));
}

int64_t size_of(nb::handle counts) {
  if (!PyArray_Check(counts.ptr()) || PyArray_TYPE(as_array(counts)) != NPY_INT64)
    throw nb::value_error("gatherum: not the counts of a fold");
  return PyArray_SIZE(as_array(counts));
}

struct State {
  void* sums;
  int64_t* counts;
  int64_t n;
};

// Returns true if a program has this fold's reduction, and accumulators of the same form.
bool is_fold_of(const BoundFold& fold, const Program& p) {
  const auto& [reduction, value, include_self, skips_nan] = p.fold_rule;
  const bool alike = reduction == Reduction::none || std::strcmp(name_of(value), fold.type.value) == 0;
  return p.scatter && alike && std::strcmp(name_of(reduction), fold.type.reduction) == 0 &&
         (p.item == fold.type.item || !p.has_points);
}

State state_of(const BoundFold& fold, nb::handle sums, nb::handle counts) {
  const int64_t n = size_of(counts);
  return {memory_of(sums, n, fold.sum_bytes),
          reinterpret_cast<int64_t*>(memory_of(counts, n, sizeof(int64_t))), n};
}

// Runs a body that returns a status. Releases the interpreter's lock if the body takes long.
template <class Body>
void run_fold(int64_t bytes, const Body& body) {
  run_without_lock_if_long(bytes >= kLongBytes, error_of("gatherum: not a fold"),
                           [&](const gatherum_poll*) { return body(); });
}

void begin(const BoundFold& fold, nb::handle data, nb::handle sums) {
  const int64_t n = PyArray_SIZE(as_array(data));
  const char* from = memory_of(data, n, fold.type.item);
  char* to = memory_of(sums, n, fold.sum_bytes);
  run_fold(n * fold.sum_bytes, [&] { return gatherum_fold_begin(&fold.type, from, to, n); });
}

// If `out` is None, the result is a new array of the given dtype.
nb::object finish(const BoundFold& fold, nb::handle data, nb::handle sums, nb::handle counts,
                  nb::handle dtype, nb::handle out) {
  const State from = state_of(fold, sums, counts);
  const char* old = data.is_none() ? nullptr : memory_of(data, from.n, fold.type.item);
  if (fold.any_order == data.is_none() || !PyArray_DescrCheck(dtype.ptr()))
    throw nb::value_error("gatherum: not the data of this fold");
  nb::object result = nb::borrow(out);
  if (out.is_none())
    result = new_array(reinterpret_cast<PyArray_Descr*>(dtype.ptr()), PyArray_NDIM(as_array(counts)),
                       PyArray_DIMS(as_array(counts)));
  char* to = memory_of(result, from.n, fold.type.item);
  run_fold(from.n * fold.sum_bytes,
           [&] { return gatherum_fold_finish(&fold.type, old, from.sums, from.counts, to, from.n); });
  return result;
}

void merge(const BoundFold& fold, nb::handle sums, nb::handle counts, nb::handle other_sums,
           nb::handle other_counts) {
  const State to = state_of(fold, sums, counts), from = state_of(fold, other_sums, other_counts);
  const int64_t n = std::min(to.n, from.n);
  run_fold(n * fold.sum_bytes,
           [&] { return gatherum_fold_merge(&fold.type, to.sums, to.counts, from.sums, from.counts, n); });
}

// Applies one batch, with the plan of a scatter without `out`.
void accumulate(const BoundFold& fold, nb::handle plan, nb::handle sums, nb::handle counts,
                nb::handle indices, nb::handle updates) {
  for (nb::handle h : {indices, updates})
    if (!PyArray_Check(h.ptr())) throw nb::type_error("gatherum: a plan runs on arrays");
  const BoundProgram& program = program_of(plan);
  const State to = state_of(fold, sums, counts);
  gatherum_operands operands = {};
  operands.indices = memory_of(view_of(as_array(indices)));
  operands.updates = memory_of(view_of(as_array(updates)));
  operands.data = operands.out = gatherum_memory(to.sums, to.n * fold.type.item);
  if (!is_fold_of(fold, program.fields())) throw nb::value_error("gatherum: not a plan of this fold");
  refuse_too_small(program, operands);
  run_without_lock_if_long(plan, program, [&](const gatherum_poll* poll, gatherum_error* error) {
    return gatherum_fold_take(program.core(), &operands, to.sums, to.counts, poll, error);
  });
}

}  // namespace

void bind_folds(nb::module_& m) {
  nb::class_<BoundFold>(m, "Fold", nb::type_slots(guarded_slots))
      .def("__init__", make_fold, nb::arg("reduction"), nb::arg("value"), nb::arg("include_self"),
           nb::arg("item"))
      .def_ro("any_order", &BoundFold::any_order)
      .def_ro("sum_bytes", &BoundFold::sum_bytes)
      .def("begin", begin, nb::arg("data"), nb::arg("sums"))
      .def("accumulate", accumulate, nb::arg("plan"), nb::arg("sums"), nb::arg("counts"), nb::arg("indices"),
           nb::arg("updates"))
      .def("merge", merge, nb::arg("sums"), nb::arg("counts"), nb::arg("other_sums"), nb::arg("other_counts"))
      .def("finish", finish, nb::arg("data").none(), nb::arg("sums"), nb::arg("counts"), nb::arg("dtype"),
           nb::arg("out").none());
}

}  // namespace gatherum
