#include "row_caches.hpp"

#include <vector>

#include "../row_cache.hpp"
#include "gil_release.hpp"
#include "guarded.hpp"

namespace gatherum {
namespace {

constexpr int64_t kLong = int64_t{1} << 20;  // bytes, for which the interpreter's lock is released

struct Asked {
  const int64_t* numbers;
  const int64_t* places;
  int64_t count;
  char* rows;
  int64_t capacity;
};

const int64_t* int64s(nb::handle h, int64_t& count) {
  const bool fits = PyArray_Check(h.ptr()) && PyArray_TYPE(as_array(h)) == NPY_INT64 &&
                    PyArray_NDIM(as_array(h)) == 1 && PyArray_ISCARRAY_RO(as_array(h));
  if (!fits) throw nb::type_error("RowCache: numbers and places must be flat arrays of int64");
  count = PyArray_SIZE(as_array(h));
  return reinterpret_cast<const int64_t*>(PyArray_BYTES(as_array(h)));
}

Asked asked(const RowCache& cache, nb::handle numbers, nb::handle places, nb::handle rows) {
  Asked found{};
  found.numbers = int64s(numbers, found.count);
  int64_t count = found.count;
  if (!places.is_none()) found.places = int64s(places, count);
  if (count != found.count) throw nb::value_error("RowCache: numbers and places differ in length");
  if (!PyArray_Check(rows.ptr()) || !PyArray_ISCARRAY(as_array(rows)) ||
      PyArray_TYPE(as_array(rows)) != NPY_UINT8)
    throw nb::type_error("RowCache: the rows must be a contiguous, writable array of bytes");
  found.rows = PyArray_BYTES(as_array(rows));
  found.capacity = PyArray_NBYTES(as_array(rows)) / cache.item();
  return found;
}

template <class Work>
void run(const RowCache& cache, const Asked& a, const Work& work) {
  if (a.count < kLong / cache.item()) return work();
  const GilRelease unlock;
  work();
}

// None where all rows were here, False where a number is no row's, otherwise which were not here.
nb::object lookup(RowCache& cache, nb::handle numbers, nb::handle places, nb::handle out) {
  const Asked a = asked(cache, numbers, places, out);
  std::vector<int64_t> missing(static_cast<size_t>(a.count));
  int64_t found = 0;
  run(cache, a,
      [&] { found = cache.lookup(a.numbers, a.places, a.count, a.rows, a.capacity, missing.data()); });
  if (found == 0) return nb::none();
  if (found == RowCache::kOutside) return nb::bool_(false);
  npy_intp extent = found;
  nb::object made = checked(PyArray_SimpleNew(1, &extent, NPY_INT64));
  std::memcpy(PyArray_BYTES(as_array(made)), missing.data(), static_cast<size_t>(found) * sizeof(int64_t));
  return made;
}

void insert(RowCache& cache, nb::handle numbers, nb::handle places, nb::handle rows) {
  const Asked a = asked(cache, numbers, places, rows);
  run(cache, a, [&] { cache.insert(a.numbers, a.places, a.count, a.rows, a.capacity); });
}

}  // namespace

void bind_row_caches(nb::module_& m) {
  nb::class_<RowCache>(m, "RowCache", nb::type_slots(guarded_slots))
      .def_prop_ro("hits", &RowCache::hits)
      .def_prop_ro("misses", &RowCache::misses)
      .def_prop_ro("held", &RowCache::held)
      .def("lookup", lookup, nb::arg("numbers"), nb::arg("places").none(), nb::arg("out"))
      .def("insert", insert, nb::arg("numbers"), nb::arg("places").none(), nb::arg("rows"));
  m.def(
      "make_row_cache",
      [](int64_t places, int64_t extent, int64_t item) {
        const bool possible =
            places >= 1 && extent >= 1 && item >= 1 && places < std::numeric_limits<int64_t>::max() / item;
        if (!possible) throw nb::value_error("make_row_cache: sizes must be at least 1");
        return make_bound<RowCache>(places, extent, item);
      },
      nb::arg("places"), nb::arg("extent"), nb::arg("item"));
}

}  // namespace gatherum
