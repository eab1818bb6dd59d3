#include "python/file_calls.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "disk/cached_reads.hpp"
#include "disk/row_reads.hpp"
#include "platform/system.hpp"
#include "python/bindings/bindings.hpp"
#include "python/gil_release.hpp"

namespace gatherum {

const int64_t* as_int64s(nb::handle h, int64_t& count, const char* caller, const char* name) {
  const bool fits = PyArray_Check(h.ptr()) && PyTypeNum_ISSIGNED(PyArray_TYPE(as_array(h))) &&
                    PyArray_ITEMSIZE(as_array(h)) == 8 && PyArray_NDIM(as_array(h)) == 1 &&
                    PyArray_ISCARRAY_RO(as_array(h));
  if (!fits)
    throw nb::type_error((std::string(caller) + ": `" + name + "` must be a flat array of int64").c_str());
  count = PyArray_SIZE(as_array(h));
  return reinterpret_cast<const int64_t*>(PyArray_BYTES(as_array(h)));
}

namespace {

// The bytes of an object, borrowed for the lifetime of this structure.
class Borrowed {
 public:
  Borrowed(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) nb::raise_python_error();
  }
  ~Borrowed() { PyBuffer_Release(&view_); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  char* start() const { return static_cast<char*>(view_.buf); }
  int64_t bytes() const { return view_.len; }

 private:
  Py_buffer view_ = {};
};

// Transfers the bytes of an object from or to a file, without the interpreter's lock.
template <class Transfer>
int64_t transfer(Transfer move, int file, nb::handle object, int flags, int64_t offset) {
  const Borrowed memory(object, flags);
  int error = 0;
  int64_t transferred = 0;
  {
    const GilRelease unlock;
    transferred = move(file, memory.start(), memory.bytes(), offset, error);
  }
  if (transferred >= 0) return transferred;
  errno = error;
  PyErr_SetFromErrno(PyExc_OSError);
  nb::raise_python_error();
}

}  // namespace

bool set_layout(gatherum_rows& reads, const nb::tuple& layout) {
  if (layout.size() != 4) return false;
  int64_t* const fields[] = {&reads.base, &reads.stride, &reads.item, &reads.extent};
  for (size_t i = 0; i < 4; ++i) {
    *fields[i] = PyLong_AsLongLong(nb::handle(layout[i]).ptr());
    if (*fields[i] == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  }
  return can_be_rows(reads);
}

void set_requests(gatherum_rows& reads, const char* caller, nb::handle numbers, nb::handle positions,
                  nb::handle out) {
  reads.numbers = as_int64s(numbers, reads.count, caller, "numbers");
  int64_t count = reads.count;
  if (!positions.is_none()) reads.positions = as_int64s(positions, count, caller, "positions");
  if (count != reads.count)
    throw nb::value_error((std::string(caller) + ": `positions` and `numbers` differ in length").c_str());
  if (!PyArray_Check(out.ptr()) || !PyArray_ISCARRAY(as_array(out)) ||
      PyArray_TYPE(as_array(out)) != NPY_UINT8)
    throw nb::type_error(
        (std::string(caller) + ": `out` must be a contiguous, writable array of bytes").c_str());
  reads.out = PyArray_BYTES(as_array(out));
  reads.capacity = PyArray_NBYTES(as_array(out)) / reads.item;
}

namespace {

constexpr int64_t kFewRows = 16, kFewBytes = int64_t{32} << 10;  // read in about 10 microseconds
constexpr int64_t kShortBytes = int64_t{256} << 10;              // read in less than kTurn
constexpr auto kTurn = std::chrono::milliseconds(1);

std::atomic<int> unlocked{0};  // threads that read without the interpreter's lock, or wait for it afterwards

// Returns the time at which the calling thread last released the lock for a read. Threads may share an entry:
// a time is only a hint. A thread_local of a loaded library is allocated at its first use, and glibc ends the
// process if that fails.
std::atomic<std::chrono::steady_clock::time_point>& last_unlocked() {
  static std::array<std::atomic<std::chrono::steady_clock::time_point>, 64> times;
  return times[std::hash<std::thread::id>()(std::this_thread::get_id()) % times.size()];
}

// Returns true if cached rows are read without releasing the interpreter's lock. A thread that releases the
// lock usually has to sleep until another thread releases it. This takes longer than reading a few rows. For
// more rows, releasing the lock is worthwhile while processors are idle. Otherwise each thread releases the
// lock once per kTurn.
bool keeps_lock(const gatherum_rows& reads) {
  const bool on_disk = reads.in_flight > 0 || reads.once != 0;
  if (on_disk || reads.count > CachedReads::kMostRows || reads.item > kShortBytes) return false;
  const int64_t bytes = reads.count * reads.item;
  if (reads.count <= kFewRows && bytes <= kFewBytes) return true;
  if (bytes > kShortBytes) return false;
  static const int processors = usable_processors();
  return unlocked.load(std::memory_order_relaxed) >= processors &&
         std::chrono::steady_clock::now() - last_unlocked().load(std::memory_order_relaxed) < kTurn;
}

}  // namespace

nb::tuple run_reads(const gatherum_rows& reads) {
  // pages between rows are read only to save time at the disk
  if (keeps_lock(reads) && gatherum_rows_bridge(&reads) == 0)
    if (const std::optional<ReadOutcome> o = CachedReads(reads).run())
      return nb::make_tuple(text(name_of(o->status)), o->error, o->position, o->until, o->bytes, o->runs, 0);
  gatherum_rows_read result;
  std::chrono::nanoseconds took{};
  unlocked.fetch_add(1, std::memory_order_relaxed);
  run_without_lock([&](const gatherum_poll* poll) {
    const auto begun = std::chrono::steady_clock::now();
    const gatherum_status status = gatherum_read_rows(&reads, poll, &result);
    took = std::chrono::steady_clock::now() - begun;
    return status;
  });
  unlocked.fetch_sub(1, std::memory_order_relaxed);
  last_unlocked().store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  if (std::strcmp(result.status, "interrupted") == 0) nb::raise_python_error();
  return nb::make_tuple(text(result.status), result.error, result.position, result.until, result.bytes,
                        result.runs, static_cast<int64_t>(took.count()));
}

namespace {

// Requests in the order of the file. NumPy would sort them without the interpreter's lock, and each time that
// a thread releases the lock, it may have to sleep until it gets the lock again.
class SortedRequests {
 public:
  // Sorts copies of the requests, and lets `reads` refer to them.
  explicit SortedRequests(gatherum_rows& reads) {
    const auto count = static_cast<size_t>(reads.count);
    std::vector<std::pair<int64_t, int64_t>> requests(count);
    for (size_t i = 0; i < count; ++i)
      requests[i] = {reads.numbers[i],
                     reads.positions == nullptr ? static_cast<int64_t>(i) : reads.positions[i]};
    std::sort(requests.begin(), requests.end());
    numbers_.resize(count);
    positions_.resize(count);
    for (size_t i = 0; i < count; ++i) std::tie(numbers_[i], positions_[i]) = requests[i];
    reads.numbers = numbers_.data();
    reads.positions = positions_.data();
  }

 private:
  std::vector<int64_t> numbers_, positions_;
};

// If `sorts` is true, sorts the requests while holding the interpreter's lock.
nb::tuple read_file_rows(int file, const nb::tuple& layout, nb::handle numbers, nb::handle positions,
                         nb::handle out, double waste, bool once, int64_t scratch, int in_flight,
                         bool sorts) {
  gatherum_rows reads = {};
  reads.file = file;
  const bool possible = set_layout(reads, layout) && scratch >= 0 && in_flight >= 0;
  if (!possible) throw nb::value_error("read_file_rows: `layout` describes no rows of a file");
  set_requests(reads, "read_file_rows", numbers, positions, out);
  reads.waste = waste;
  reads.once = once ? 1 : 0;
  reads.scratch = scratch;
  reads.in_flight = in_flight;
  std::optional<SortedRequests> sorted;
  if (sorts && reads.count > 1) sorted.emplace(reads);
  return run_reads(reads);
}

// Returns the largest number of whole pages between two of the rows `numbers` that read_file_rows reads with
// them.
int64_t file_rows_bridge(const nb::tuple& layout, nb::handle numbers, double waste) {
  gatherum_rows rows = {};
  if (!set_layout(rows, layout))
    throw nb::value_error("file_rows_bridge: `layout` describes no rows of a file");
  rows.numbers = as_int64s(numbers, rows.count, "file_rows_bridge", "numbers");
  rows.waste = waste;
  return gatherum_rows_bridge(&rows);
}

// Returns the number of bytes transferred. Raises OSError on failure.
int64_t read_file_at(int file, nb::handle buffer, int64_t offset) {
  return transfer(read_at, file, buffer, PyBUF_WRITABLE, offset);
}

int64_t write_file_at(int file, nb::handle data, int64_t offset) {
  return transfer(write_at, file, data, PyBUF_SIMPLE, offset);
}

}  // namespace

void bind_files(nb::module_& m) {
  m.def("read_file_rows", &read_file_rows, nb::arg("file"), nb::arg("layout"), nb::arg("numbers"),
        nb::arg("positions").none(), nb::arg("out"), nb::arg("waste"), nb::arg("once"), nb::arg("scratch"),
        nb::arg("in_flight"), nb::arg("sorts"));
  m.def("file_rows_bridge", &file_rows_bridge, nb::arg("layout"), nb::arg("numbers"), nb::arg("waste"));
  m.def(
      "start_writing",
      [](int file, int64_t offset, int64_t bytes) {
        const GilRelease unlock;
        start_writing(file, offset, bytes);
      },
      nb::arg("file"), nb::arg("offset"), nb::arg("nbytes"));
  m.def("read_at", &read_file_at, nb::arg("file"), nb::arg("buffer"), nb::arg("offset"));
  m.def("write_at", &write_file_at, nb::arg("file"), nb::arg("data"), nb::arg("offset"));
}

}  // namespace gatherum
