// Binds gathers from open tables whose rows are in memory.
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "disk/row_cache.hpp"
#include "python/bindings/bindings.hpp"
#include "python/numpy/array_calls.hpp"
#include "python/positional.hpp"

namespace gatherum {
namespace {

using Clock = std::chrono::steady_clock;

// The requests to an open table.
class RequestCounts {
 public:
  void add(int64_t rows, int64_t bytes, int64_t nanoseconds) {
    const std::scoped_lock lock(mutex_);
    times_[static_cast<size_t>(requests_ % kKeptTimes)] = nanoseconds;
    ++requests_;
    rows_ += rows;
    bytes_ += bytes;
  }

  // Returns the numbers of requests, rows and bytes, and the nanoseconds of the last requests.
  nb::tuple totals() const {
    npy_intp extent = kKeptTimes;
    const nb::object times = checked(PyArray_SimpleNew(1, &extent, NPY_INT64));
    int64_t requests = 0, rows = 0, bytes = 0;
    {
      const std::scoped_lock lock(mutex_);
      requests = requests_, rows = rows_, bytes = bytes_;
      std::memcpy(PyArray_BYTES(as_array(times)), times_.data(), sizeof(times_));
    }
    const nb::object kept = times[nb::slice(std::min(requests, kKeptTimes))];
    return nb::make_tuple(requests, rows, bytes, kept);
  }

 private:
  static constexpr int64_t kKeptTimes = int64_t{1} << 13;
  mutable std::mutex mutex_;
  int64_t requests_ = 0, rows_ = 0, bytes_ = 0;
  std::array<int64_t, kKeptTimes> times_ = {};
};

// A table whose rows are in an array, or in a row cache for the whole table.
class MemoryTable {
 public:
  MemoryTable(nb::object array, nb::object cache, nb::object dtype, std::vector<npy_intp> row_shape)
      : array_(std::move(array)),
        cache_(std::move(cache)),
        dtype_(std::move(dtype)),
        row_shape_(std::move(row_shape)),
        rows_(cache_.is_none() ? nullptr : nb::inst_ptr<RowCache>(cache_)) {}

  // Lets the core run calls for this time, in which the file is not checked for changes.
  void allow(double seconds) {
    const std::chrono::duration<double> limited(std::min(seconds, kLongestSeconds));
    until_.store(Clock::now() + std::chrono::duration_cast<Clock::duration>(limited));
  }
  // Odd while rows are written.
  int64_t changes() const { return changes_.load(); }
  void set_changes(int64_t changes) { changes_.store(changes); }

  // Returns an empty object if Python has to run the call.
  nb::object gather(const Arguments& arguments, const Attributes& attributes, Clock::time_point begun) {
    if (rows_ == nullptr) return gather_from_array(arguments, attributes);
    const int64_t changes = changes_.load();
    const bool is_current = changes % 2 == 0 && begun < until_.load();
    if (!is_current || attributes.axis != 0 || kModes[attributes.mode].mode != Mode::raise) return {};
    nb::object result = gather_from_cache(arguments[kIndices], arguments[kOut], attributes.negative);
    const bool is_still = changes_.load() == changes && Clock::now() < until_.load();
    if (!result.is_valid() || !is_still) return {};
    rows_->add_hits(PyArray_SIZE(as_array(arguments[kIndices])));
    return result;
  }

 private:
  static constexpr double kLongestSeconds = 1e6;
  static constexpr int64_t kMostRows = RowCache::kRowsPerLock * 16;  // for more, time in Python is negligible
  static constexpr int64_t kMostLockedBytes = 1 << 18;  // of rows that are copied with the interpreter's lock
  using RowNumbers = std::array<int64_t, kMostRows>;

  // If a call raises an error, Python repeats the call, because messages for tables differ. An error must not
  // change `out`, so a call with `out` runs here only if its indices are valid.
  nb::object gather_from_array(const Arguments& arguments, const Attributes& attributes) const {
    if (!arguments[kOut].is_none() && (attributes.axis != 0 || kModes[attributes.mode].mode != Mode::raise))
      return {};
    RowNumbers numbers;
    if (!arguments[kOut].is_none() &&
        !read_numbers(arguments[kIndices], attributes.negative, PyArray_DIM(as_array(array_), 0), numbers))
      return {};
    Arguments with_table = arguments;
    with_table[kData] = array_;
    try {
      return call_on_arrays(with_table.data());
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) throw;
      return {};
    }
  }

  nb::object gather_from_cache(nb::handle indices, nb::handle out, bool negative) {
    RowNumbers numbers;
    const std::optional<int64_t> count = read_numbers(indices, negative, rows_->table_rows(), numbers);
    if (!count || *count * rows_->row_bytes() > kMostLockedBytes) return {};
    nb::object result;
    if (out.is_none())
      result = new_result(indices);
    else if (is_result(out, indices))
      result = nb::borrow(out);
    if (!result.is_valid()) return {};
    char* to = PyArray_BYTES(as_array(result));
    for (int64_t i = 0; i < *count; i += RowCache::kRowsPerLock) {
      const int64_t some = std::min(*count - i, RowCache::kRowsPerLock);
      if (!rows_->copy_cached(numbers.data() + i, some, to + i * rows_->row_bytes())) return {};
    }
    return result;
  }

  // Copies the indices, which other threads cannot change after the checks. Returns nothing if an index is
  // invalid, or if Python has to convert the indices.
  static std::optional<int64_t> read_numbers(nb::handle indices, bool negative, int64_t extent,
                                             RowNumbers& numbers) {
    PyArrayObject* array = as_array(indices);
    const int64_t count = PyArray_SIZE(array);
    if (count > kMostRows || !PyArray_ISCARRAY_RO(array) || !PyTypeNum_ISSIGNED(PyArray_TYPE(array)))
      return {};
    const char* from = PyArray_BYTES(array);
    switch (PyArray_ITEMSIZE(array)) {
      case 4:
        return read_numbers_as<int32_t>(from, count, negative, extent, numbers);
      case 8:
        return read_numbers_as<int64_t>(from, count, negative, extent, numbers);
      default:
        return {};
    }
  }

  template <class Index>
  static std::optional<int64_t> read_numbers_as(const char* from, int64_t count, bool negative,
                                                int64_t extent, RowNumbers& numbers) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t number = reinterpret_cast<const Index*>(from)[i];
      if (negative && number < 0) number += extent;
      if (number < 0 || number >= extent) return {};
      numbers[static_cast<size_t>(i)] = number;
    }
    return count;
  }

  int rank_of_result(nb::handle indices) const {
    return PyArray_NDIM(as_array(indices)) + static_cast<int>(row_shape_.size());
  }

  // Returns memory for the rows, or an empty object if there are too many dimensions.
  nb::object new_result(nb::handle indices) const {
    std::array<npy_intp, NPY_MAXDIMS> shape;
    const int rank = rank_of_result(indices);
    if (rank > NPY_MAXDIMS) return {};
    std::copy_n(PyArray_DIMS(as_array(indices)), PyArray_NDIM(as_array(indices)), shape.begin());
    std::copy(row_shape_.begin(), row_shape_.end(), shape.begin() + PyArray_NDIM(as_array(indices)));
    return new_array(reinterpret_cast<PyArray_Descr*>(dtype_.ptr()), rank, shape.data());
  }

  // Returns true if rows can be copied to `out` directly.
  bool is_result(nb::handle out, nb::handle indices) const {
    PyArrayObject *to = as_array(out), *array = as_array(indices);
    const int rank = PyArray_NDIM(array);
    const bool fits = PyArray_ISCARRAY(to) && PyArray_NDIM(to) == rank_of_result(indices) &&
                      std::equal(PyArray_DIMS(array), PyArray_DIMS(array) + rank, PyArray_DIMS(to)) &&
                      std::equal(row_shape_.begin(), row_shape_.end(), PyArray_DIMS(to) + rank) &&
                      PyArray_EquivTypes(PyArray_DESCR(to), reinterpret_cast<PyArray_Descr*>(dtype_.ptr()));
    return fits && (PyArray_BYTES(to) + PyArray_NBYTES(to) <= PyArray_BYTES(array) ||
                    PyArray_BYTES(array) + PyArray_NBYTES(array) <= PyArray_BYTES(to));
  }

  const nb::object array_, cache_, dtype_;  // `array_` or `cache_` is None
  const std::vector<npy_intp> row_shape_;
  RowCache* const rows_;
  std::atomic<int64_t> changes_{0};
  std::atomic<Clock::time_point> until_{Clock::time_point::min()};
};

template <class T>
T* instance_of(nb::handle h) {
  static const nb::handle type = nb::type<T>();  // faster than isinstance
  if (!h.type().is(type)) throw nb::type_error("gatherum: not the state of an open table");
  return nb::inst_ptr<T>(h);
}

// Returns None if Python has to run the call.
nb::object gather_in_memory(const nb::handle* a) {
  static PyObject* const op = kept_text("gather");
  static PyObject* const none = kept_text("none");
  const Clock::time_point begun = Clock::now();
  auto& table = *instance_of<MemoryTable>(a[0]);
  auto& counts = *instance_of<RequestCounts>(a[1]);
  const auto [indices, axis, mode, negative, fill, out] = std::array{a[2], a[3], a[4], a[5], a[6], a[7]};
  const Arguments arguments = {op, {}, indices, Py_None, axis, none, Py_True, mode, negative, fill, out};
  Attributes attributes;
  if (!PyArray_CheckExact(indices.ptr()) || !(out.is_none() || PyArray_CheckExact(out.ptr())) ||
      !read_attributes(arguments.data(), attributes))
    return nb::none();
  nb::object result = table.gather(arguments, attributes, begun);
  if (!result.is_valid()) return nb::none();
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun);
  counts.add(PyArray_SIZE(as_array(indices)), PyArray_NBYTES(as_array(result)), took.count());
  return result;
}

nb::object make_memory_table(const nb::object& array, const nb::object& cache, const nb::object& dtype,
                             const nb::tuple& row_shape) {
  const bool has_cache = nb::isinstance<RowCache>(cache) && nb::inst_ptr<RowCache>(cache)->holds_table();
  if (has_cache == PyArray_CheckExact(array.ptr()) || !PyArray_DescrCheck(dtype.ptr()))
    throw nb::type_error("make_memory_table: needs an array or a row cache for the whole table");
  std::vector<npy_intp> extents;
  int64_t bytes = PyDataType_ELSIZE(reinterpret_cast<PyArray_Descr*>(dtype.ptr()));
  for (const nb::handle extent : row_shape) {
    extents.push_back(nb::cast<npy_intp>(extent));
    bytes *= extents.back();
  }
  if (has_cache && bytes != nb::inst_ptr<RowCache>(cache)->row_bytes())
    throw nb::value_error("make_memory_table: the cache has other rows");
  return make_bound<MemoryTable>(array, cache, dtype, std::move(extents));
}

}  // namespace

void bind_memory_tables(nb::module_& m) {
  nb::class_<RequestCounts>(m, "RequestCounts", nb::type_slots(guarded_slots))
      .def("add", &RequestCounts::add, nb::arg("rows"), nb::arg("nbytes"), nb::arg("nanoseconds"))
      .def("totals", &RequestCounts::totals);
  m.def("make_request_counts", [] { return make_bound<RequestCounts>(); });
  nb::class_<MemoryTable>(m, "MemoryTable", nb::type_slots(guarded_slots))
      .def_prop_rw("changes", &MemoryTable::changes, &MemoryTable::set_changes)
      .def("allow", &MemoryTable::allow, nb::arg("seconds"));
  m.def("make_memory_table", &make_memory_table, nb::arg("array").none(), nb::arg("cache").none(),
        nb::arg("dtype"), nb::arg("row_shape"));
  def_positional<8, gather_in_memory>(
      m, "gather_in_memory",
      "gather_in_memory(table, counts, indices, axis, mode, negative, fill_value, out, /)\n--\n\n");
}

}  // namespace gatherum
