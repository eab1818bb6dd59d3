// Binds a cache of rows.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "disk/row_cache.hpp"
#include "python/bindings/bindings.hpp"
#include "python/file_calls.hpp"
#include "python/gil_release.hpp"
#include "python/guarded.hpp"

namespace gatherum {
namespace {

constexpr int64_t kLong = int64_t{1} << 20;  // bytes, from which on the interpreter's lock is released

gatherum_rows asked(const RowCache& cache, nb::handle numbers, nb::handle positions, nb::handle rows) {
  gatherum_rows request = {};
  request.item = cache.item();
  set_requests(request, "RowCache", numbers, positions, rows);
  return request;
}

template <class Work>
void run(const gatherum_rows& a, const Work& work) {
  if (a.count < kLong / a.item) return work();
  const GilRelease unlock;
  work();
}

// Like RowCache::lookup, with space for the numbers of the missing requests.
int64_t find_missing(RowCache& cache, const gatherum_rows& a, std::vector<int64_t>& missing) {
  missing.resize(static_cast<size_t>(a.count));
  int64_t missed = 0;
  run(a, [&] {
    missed =
        cache.lookup(a.numbers, a.positions, a.count, static_cast<char*>(a.out), a.capacity, missing.data());
  });
  return missed;
}

// Returns None if all rows were cached, False if a row number is invalid, otherwise the missing requests.
nb::object lookup(RowCache& cache, nb::handle numbers, nb::handle positions, nb::handle out) {
  std::vector<int64_t> missing;
  const int64_t missed = find_missing(cache, asked(cache, numbers, positions, out), missing);
  if (missed == 0) return nb::none();
  if (missed == RowCache::kOutside) return nb::bool_(false);
  npy_intp extent = missed;
  nb::object result = checked(PyArray_SimpleNew(1, &extent, NPY_INT64));
  std::memcpy(PyArray_BYTES(as_array(result)), missing.data(), static_cast<size_t>(missed) * sizeof(int64_t));
  return result;
}

// Copies cached rows to their destinations, then reads and caches the missing rows. Returns None if all rows
// were cached, otherwise the result of read_file_rows.
nb::object read(RowCache& cache, int file, const nb::tuple& where, nb::handle numbers, nb::handle positions,
                nb::handle out, double waste, int64_t scratch) {
  const gatherum_rows a = asked(cache, numbers, positions, out);
  gatherum_rows reads = {};
  if (!set_where(reads, where) || reads.item != cache.item() || scratch < 0)
    throw nb::value_error("RowCache: `where` describes no such rows of a file");
  std::vector<int64_t> missing;
  const uint64_t version = cache.version();
  const int64_t missed = find_missing(cache, a, missing);
  if (missed == 0) return nb::none();
  if (missed == RowCache::kOutside) return nb::make_tuple("outside", 0, 0, 0, 0, 0, 0);
  std::vector<std::pair<int64_t, int64_t>> wanted;  // numbers and positions, in the order of the file
  wanted.reserve(static_cast<size_t>(missed));
  for (int64_t i = 0; i < missed; ++i) {
    const int64_t request = missing[static_cast<size_t>(i)];
    wanted.emplace_back(a.numbers[request], a.positions == nullptr ? request : a.positions[request]);
  }
  std::sort(wanted.begin(), wanted.end());
  for (size_t i = 0; i < wanted.size(); ++i) missing[i] = wanted[i].first;
  // A private buffer: bytes that another thread writes to `out` must not be cached.
  const std::unique_ptr<char[]> fresh(
      new char[static_cast<size_t>(missed) * static_cast<size_t>(cache.item())]);
  reads.file = file;
  reads.numbers = missing.data();
  reads.count = reads.capacity = missed;
  reads.out = fresh.get();
  reads.waste = waste;
  reads.scratch = scratch;
  nb::tuple result = run_reads(reads);
  if (PyUnicode_CompareWithASCIIString(nb::handle(result[0]).ptr(), "done") != 0) return result;
  run(a, [&] {
    cache.insert(missing.data(), nullptr, missed, fresh.get(), missed, version);
    for (int64_t i = 0; i < missed; ++i) {
      const int64_t position = wanted[static_cast<size_t>(i)].second;
      if (position < 0 || position >= a.capacity) continue;  // changed since the check
      std::memcpy(static_cast<char*>(a.out) + position * cache.item(), fresh.get() + i * cache.item(),
                  static_cast<size_t>(cache.item()));
    }
  });
  return result;
}

void insert(RowCache& cache, nb::handle numbers, nb::handle positions, nb::handle rows, uint64_t version) {
  const gatherum_rows a = asked(cache, numbers, positions, rows);
  run(a, [&] {
    cache.insert(a.numbers, a.positions, a.count, static_cast<const char*>(a.out), a.capacity, version);
  });
}

void forget(RowCache& cache, nb::handle numbers) {
  int64_t count = 0;
  const int64_t* const changed = as_int64s(numbers, count, "RowCache", "numbers");
  const GilRelease unlock;
  cache.forget(changed, count);
}

}  // namespace

void bind_row_caches(nb::module_& m) {
  nb::class_<RowCache>(m, "RowCache", nb::type_slots(guarded_slots))
      .def_prop_ro("hits", &RowCache::hits)
      .def_prop_ro("misses", &RowCache::misses)
      .def_prop_ro("held", &RowCache::held)
      .def_prop_ro("item", &RowCache::item)
      .def_prop_ro("version", &RowCache::version)
      .def("lookup", lookup, nb::arg("numbers"), nb::arg("positions").none(), nb::arg("out"))
      .def("read", read, nb::arg("file"), nb::arg("where"), nb::arg("numbers"), nb::arg("positions").none(),
           nb::arg("out"), nb::arg("waste"), nb::arg("scratch"))
      .def("insert", insert, nb::arg("numbers"), nb::arg("positions").none(), nb::arg("rows"),
           nb::arg("version"))
      .def("forget", forget, nb::arg("numbers"));
  m.def(
      "make_row_cache",
      [](int64_t slots, int64_t extent, int64_t item) {
        const bool possible =
            slots >= 1 && extent >= 1 && item >= 1 && slots < std::numeric_limits<int64_t>::max() / item;
        if (!possible) throw nb::value_error("make_row_cache: sizes must be at least 1");
        return make_bound<RowCache>(slots, extent, item);
      },
      nb::arg("slots"), nb::arg("extent"), nb::arg("item"));
}

}  // namespace gatherum
