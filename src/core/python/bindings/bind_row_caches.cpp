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

constexpr int64_t kLongRequestBytes = int64_t{1} << 20;  // from this number of bytes on, the lock is released

gatherum_rows request_of(const RowCache& cache, nb::handle numbers, nb::handle positions, nb::handle rows) {
  gatherum_rows request = {};
  request.item = cache.row_bytes();
  set_requests(request, "RowCache", numbers, positions, rows);
  return request;
}

template <class Work>
void run_without_lock_if_long(const gatherum_rows& request, const Work& work) {
  if (request.count < kLongRequestBytes / request.item) return work();
  const GilRelease unlock;
  work();
}

// Like RowCache::lookup, with space for the numbers of the missing requests.
int64_t find_missing(RowCache& cache, const gatherum_rows& request, std::vector<int64_t>& missing) {
  missing.resize(static_cast<size_t>(request.count));
  int64_t missing_count = 0;
  run_without_lock_if_long(request, [&] {
    missing_count = cache.lookup(request.numbers, request.positions, request.count,
                                 static_cast<char*>(request.out), request.capacity, missing.data());
  });
  return missing_count;
}

// Returns None if all rows were cached, False if a row number is invalid, otherwise the missing requests.
nb::object lookup(RowCache& cache, nb::handle numbers, nb::handle positions, nb::handle out) {
  std::vector<int64_t> missing;
  const int64_t missing_count = find_missing(cache, request_of(cache, numbers, positions, out), missing);
  if (missing_count == 0) return nb::none();
  if (missing_count == RowCache::kInvalidRequest) return nb::bool_(false);
  npy_intp extent = missing_count;
  nb::object result = checked(PyArray_SimpleNew(1, &extent, NPY_INT64));
  std::memcpy(PyArray_BYTES(as_array(result)), missing.data(),
              static_cast<size_t>(missing_count) * sizeof(int64_t));
  return result;
}

// Copies cached rows to their destinations, then reads and caches the missing rows. Returns None if all rows
// were cached, otherwise the result of read_file_rows.
nb::object read(RowCache& cache, int file, const nb::tuple& layout, nb::handle numbers, nb::handle positions,
                nb::handle out, double waste, int64_t scratch) {
  const gatherum_rows request = request_of(cache, numbers, positions, out);
  gatherum_rows reads = {};
  if (!set_layout(reads, layout) || reads.item != cache.row_bytes() || scratch < 0)
    throw nb::value_error("RowCache: `layout` describes no such rows of a file");
  std::vector<int64_t> missing;
  const uint64_t version = cache.version();
  const int64_t missing_count = find_missing(cache, request, missing);
  if (missing_count == 0) return nb::none();
  if (missing_count == RowCache::kInvalidRequest) return nb::make_tuple("outside", 0, 0, 0, 0, 0, 0);
  std::vector<std::pair<int64_t, int64_t>> wanted;  // numbers and positions, in the order of the file
  wanted.reserve(static_cast<size_t>(missing_count));
  for (int64_t i = 0; i < missing_count; ++i) {
    const int64_t k = missing[static_cast<size_t>(i)];
    wanted.emplace_back(request.numbers[k], request.positions == nullptr ? k : request.positions[k]);
  }
  std::sort(wanted.begin(), wanted.end());
  for (size_t i = 0; i < wanted.size(); ++i) missing[i] = wanted[i].first;
  // A private buffer: bytes that another thread writes to `out` must not be cached.
  const std::unique_ptr<char[]> fresh(
      new char[static_cast<size_t>(missing_count) * static_cast<size_t>(cache.row_bytes())]);
  reads.file = file;
  reads.numbers = missing.data();
  reads.count = reads.capacity = missing_count;
  reads.out = fresh.get();
  reads.waste = waste;
  reads.scratch = scratch;
  nb::tuple result = run_reads(reads);
  if (PyUnicode_CompareWithASCIIString(nb::handle(result[0]).ptr(), "done") != 0) return result;
  run_without_lock_if_long(request, [&] {
    cache.insert(missing.data(), nullptr, missing_count, fresh.get(), missing_count, version);
    for (int64_t i = 0; i < missing_count; ++i) {
      const int64_t position = wanted[static_cast<size_t>(i)].second;
      if (position < 0 || position >= request.capacity) continue;  // changed since the check
      std::memcpy(static_cast<char*>(request.out) + position * cache.row_bytes(),
                  fresh.get() + i * cache.row_bytes(), static_cast<size_t>(cache.row_bytes()));
    }
  });
  return result;
}

void insert(RowCache& cache, nb::handle numbers, nb::handle positions, nb::handle rows, uint64_t version) {
  const gatherum_rows request = request_of(cache, numbers, positions, rows);
  run_without_lock_if_long(request, [&] {
    cache.insert(request.numbers, request.positions, request.count, static_cast<const char*>(request.out),
                 request.capacity, version);
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
      .def_prop_ro("cached_rows", &RowCache::cached_rows)
      .def_prop_ro("row_bytes", &RowCache::row_bytes)
      .def_prop_ro("holds_table", &RowCache::holds_table)
      .def_prop_ro("version", &RowCache::version)
      .def("lookup", lookup, nb::arg("numbers"), nb::arg("positions").none(), nb::arg("out"))
      .def("read", read, nb::arg("file"), nb::arg("layout"), nb::arg("numbers"), nb::arg("positions").none(),
           nb::arg("out"), nb::arg("waste"), nb::arg("scratch"))
      .def("insert", insert, nb::arg("numbers"), nb::arg("positions").none(), nb::arg("rows"),
           nb::arg("version"))
      .def("forget", forget, nb::arg("numbers"));
  m.def(
      "make_row_cache",
      [](int64_t slots, int64_t table_rows, int64_t row_bytes) {
        const bool possible = slots >= 1 && table_rows >= 1 && row_bytes >= 1 &&
                              slots < std::numeric_limits<int64_t>::max() / row_bytes;
        if (!possible) throw nb::value_error("make_row_cache: sizes must be at least 1");
        return make_bound<RowCache>(slots, table_rows, row_bytes);
      },
      nb::arg("slots"), nb::arg("table_rows"), nb::arg("row_bytes"));
}

}  // namespace gatherum
