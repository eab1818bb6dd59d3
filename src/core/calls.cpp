#include "calls.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace gatherum {
namespace {

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
constexpr std::array kArrays = {kData, kIndices, kUpdates, kOut};

// What a plan depends on, as words: attributes, and dtype, shape and strides of every operand.
// Objects are compared by identity; the table keeps them alive.
struct Key {
  int n = 0;
  uint64_t hash = 0;
  int64_t words[8 + kArrays.size() * (2 + 2 * NPY_MAXDIMS)];

  void add(int64_t word) {
    words[n++] = word;
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  void add(const void* object) { add(static_cast<int64_t>(reinterpret_cast<intptr_t>(object))); }
  void add(PyArrayObject* array) {
    const int rank = PyArray_NDIM(array);
    add(PyArray_DESCR(array));
    add(int64_t{rank});
    for (int i = 0; i < rank; ++i) add(int64_t{PyArray_DIM(array, i)});
    for (int i = 0; i < rank; ++i) add(int64_t{PyArray_STRIDE(array, i)});
  }
};

bool is_bool(nb::handle h) { return h.ptr() == Py_True || h.ptr() == Py_False; }

// False when an argument is anything but a plain value or array, which Python then makes of it.
bool make_key(const nb::handle* a, bool normalised, Key& key) {
  if (!PyLong_CheckExact(a[kAxis].ptr()) || !PyUnicode_CheckExact(a[kReduction].ptr()) ||
      !PyUnicode_CheckExact(a[kMode].ptr()) || !is_bool(a[kIncludeSelf]) || !is_bool(a[kNegative]))
    return false;
  int overflow = 0;
  const int64_t axis = PyLong_AsLongLongAndOverflow(a[kAxis].ptr(), &overflow);
  if (overflow != 0) return false;
  key.add(a[kOp].ptr());
  key.add(axis);
  key.add(a[kReduction].ptr());
  key.add(a[kMode].ptr());
  key.add(int64_t{a[kIncludeSelf].ptr() == Py_True} * 2 + int64_t{a[kNegative].ptr() == Py_True});
  for (Argument i : kArrays) {
    const nb::handle h = a[i];
    if (h.is_none() && (i == kUpdates || i == kOut)) {
      key.add(int64_t{-1});
      continue;
    }
    const bool fits = PyArray_CheckExact(h.ptr()) || (normalised && i == kOut && PyArray_Check(h.ptr()));
    if (!fits) return false;
    key.add(as_array(h));
  }
  return true;
}

struct Entry {
  uint64_t hash;
  std::vector<int64_t> words;
  std::vector<nb::object> kept;  // what the words point at
  nb::object plan;

  bool matches(const Key& key) const {
    return hash == key.hash && words.size() == static_cast<size_t>(key.n) &&
           std::memcmp(words.data(), key.words, sizeof(int64_t) * words.size()) == 0;
  }
};

// Each plan has one place, so the table is bounded and a collision costs a new plan, never more.
constexpr size_t kPlaces = 1024;
using Table = std::array<std::unique_ptr<Entry>, kPlaces>;

Table& table() {
  static auto* t = new Table;  // never destroyed: Python may be gone by then
  return *t;
}
nb::ft_mutex table_mutex;

nb::object find_plan(const Key& key) {
  const nb::ft_lock_guard lock(table_mutex);
  const auto& entry = table()[key.hash % kPlaces];
  return entry && entry->matches(key) ? entry->plan : nb::object();
}

void keep_plan(const Key& key, const nb::handle* a, const nb::object& plan) {
  auto entry = std::make_unique<Entry>();
  entry->hash = key.hash;
  entry->words.assign(key.words, key.words + key.n);
  entry->plan = plan;
  for (Argument i : {kOp, kReduction, kMode}) entry->kept.push_back(nb::borrow(a[i]));
  for (Argument i : kArrays)
    if (!a[i].is_none())
      entry->kept.push_back(nb::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(as_array(a[i])))));
  {
    const nb::ft_lock_guard lock(table_mutex);
    table()[key.hash % kPlaces].swap(entry);
  }  // the old entry goes here, outside the lock: releasing objects may run Python code
}

struct Extent {
  intptr_t low, high;
};

Extent extent_of(PyArrayObject* array) {
  const auto start = reinterpret_cast<intptr_t>(PyArray_DATA(array));
  Extent e{start, start + PyArray_ITEMSIZE(array)};
  if (PyArray_SIZE(array) == 0) return {start, start};  // its strides may be anything
  for (int i = 0; i < PyArray_NDIM(array); ++i) {
    const intptr_t reach = (PyArray_DIM(array, i) - 1) * PyArray_STRIDE(array, i);
    (reach < 0 ? e.low : e.high) += reach;
  }
  return e;
}

bool may_overlap(PyArrayObject* out, nb::handle operand) {
  if (operand.is_none()) return false;
  const Extent a = extent_of(out), b = extent_of(as_array(operand));
  return a.low < b.high && b.low < a.high && a.low < a.high && b.low < b.high;
}

bool same_place(PyArrayObject* a, PyArrayObject* b) {
  const int rank = PyArray_NDIM(a);
  const size_t bytes = sizeof(npy_intp) * static_cast<size_t>(rank);
  return PyArray_DATA(a) == PyArray_DATA(b) && rank == PyArray_NDIM(b) &&
         (rank == 0 || (std::memcmp(PyArray_DIMS(a), PyArray_DIMS(b), bytes) == 0 &&
                        std::memcmp(PyArray_STRIDES(a), PyArray_STRIDES(b), bytes) == 0));
}

void raise_changed(nb::handle plan, int operand) {
  if (operand < 0) return;
  hooks().raise_changed(plan, operand);
  throw nb::value_error("gatherum: the hook for changed operands must raise");
}

// Where the operands lie and how: what a plan, the checks of `out` and the addresses rest upon. Python
// code that runs in between, such as a fill value's conversion, could change it under our feet.
class Looks {
 public:
  explicit Looks(const std::array<nb::handle, kArrays.size()>& operands) {
    for (nb::handle h : operands) {
      if (h.is_none()) {
        ends_.push_back(words_.size());
        continue;
      }
      PyArrayObject* a = as_array(h);
      words_.push_back(reinterpret_cast<intptr_t>(PyArray_DATA(a)));
      words_.push_back(reinterpret_cast<intptr_t>(PyArray_DESCR(a)));
      words_.push_back(PyArray_ISWRITEABLE(a) ? 1 : 0);
      words_.insert(words_.end(), PyArray_DIMS(a), PyArray_DIMS(a) + PyArray_NDIM(a));
      words_.insert(words_.end(), PyArray_STRIDES(a), PyArray_STRIDES(a) + PyArray_NDIM(a));
      ends_.push_back(words_.size());
    }
  }

  // The number of the first operand that looks different, -1 if all look the same.
  int first_change(const Looks& o) const {
    for (size_t i = 0; i < ends_.size(); ++i)
      if (ends_[i] != o.ends_[i] || !std::equal(words_.begin(), words_.begin() + ends_[i], o.words_.begin()))
        return static_cast<int>(i);
    return -1;
  }

 private:
  std::vector<int64_t> words_;
  std::vector<ptrdiff_t> ends_;
};

// Runs without the interpreter's lock while it lives. A thread that wants the lock back when the
// interpreter has ended is ended too, by unwinding its stack (CPython before 3.14), which neither the
// pool's other threads nor nanobind's functions would survive: it sleeps until the process is gone.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) { ++alive; }
  ~Released() {
    lock();
    --alive;
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

  bool signal_pending() {
    lock();
    const bool pending = PyErr_CheckSignals() != 0;
    state_ = PyEval_SaveThread();
    return pending;
  }

 private:
  void lock() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }

  PyThreadState* state_;

 public:
  static inline std::atomic<int> alive{0};
};

Outcome execute_released(const Program& program, const Operands& at, const char* source, bool fresh) {
  if (!is_long(program)) return execute(program, at, source, fresh, {});
  Released released;
  // Asked now and then during long calls: Ctrl-C is answered here.
  const auto ask = [](void* context) { return static_cast<Released*>(context)->signal_pending(); };
  return execute(program, at, source, fresh, {ask, &released});
}

// Narrow items that move as one block are filled as one: their fill is as wide as the block.
const char* fill_block(const Nest& nest, const char* item, std::array<char, kWidestBlock>& block) {
  if (nest.block > kWidestBlock) return item;
  for (int64_t r = 0; r < nest.block; r += nest.item)
    std::memcpy(block.data() + r, item, static_cast<size_t>(nest.item));
  return block.data();
}

nb::object run_program(const PlannedProgram& planned, nb::handle plan, nb::handle data, nb::handle indices,
                       nb::handle updates, nb::handle fill_value, nb::handle out) {
  const Program& program = planned.program;
  const std::array operands = {data, indices, updates, out};
  const bool fills = !program.scatter && program.nest.mode == Mode::drop;
  bool in_place = false, check_out = false;
  if (!out.is_none()) {
    PyArrayObject* o = as_array(out);
    in_place = program.scatter && same_place(o, as_array(data));
    check_out = !PyArray_ISWRITEABLE(o) || (!in_place && may_overlap(o, data)) || may_overlap(o, indices) ||
                may_overlap(o, updates);
  }
  nb::object fill;
  if (check_out || fills) {
    const Looks before(operands);
    if (check_out) hooks().check_out(plan, data, indices, updates, out);
    if (fills) fill = hooks().make_fill(plan, fill_value);
    raise_changed(plan, before.first_change(Looks(operands)));
  }
  nb::object result =
      out.is_none() ? new_array(PyArray_DESCR(as_array(data)), planned.rank, planned.shape) : nb::borrow(out);
  char* target = PyArray_BYTES(as_array(result));
  char* source = PyArray_BYTES(as_array(data));
  Operands at;
  at.index = PyArray_BYTES(as_array(indices));
  at.data = program.scatter ? target : source;
  at.other = program.scatter ? PyArray_BYTES(as_array(updates)) : target;
  std::array<char, kWidestBlock> filled;
  if (fills) at.fill = fill_block(program.nest, PyArray_BYTES(as_array(fill)), filled);
  const Outcome outcome =
      execute_released(program, at, program.scatter && !in_place ? source : nullptr, out.is_none());
  switch (outcome.status) {
    case Status::done:
      return result;
    case Status::interrupted:
      nb::raise_python_error();
    case Status::no_memory:
      PyErr_NoMemory();
      nb::raise_python_error();
    case Status::invalid_index:
      break;
  }
  hooks().raise_invalid(plan, outcome.invalid.position, outcome.invalid.component, outcome.invalid.value);
  throw nb::value_error("gatherum: the hook for invalid indices must raise");
}

const PlannedProgram& program_of(nb::handle plan) {
  static PyObject* name = PyUnicode_InternFromString("program");
  nb::object program = nb::steal(PyObject_GetAttr(plan.ptr(), name));
  if (!program.is_valid()) nb::raise_python_error();
  return *nb::inst_ptr<PlannedProgram>(program);  // the plan keeps it alive
}

}  // namespace

Hooks& hooks() {
  static auto* h = new Hooks;
  return *h;
}

nb::object run(nb::handle plan, nb::handle data, nb::handle indices, nb::handle updates,
               nb::handle fill_value, nb::handle out) {
  for (nb::handle h : {data, indices, updates, out})
    if (!h.is_none() && !PyArray_Check(h.ptr())) throw nb::type_error("gatherum: a plan runs on arrays");
  return run_program(program_of(plan), plan, data, indices, updates, fill_value, out);
}

nb::object call(nb::handle* a) {
  Key key;
  nb::object normalised;
  nb::handle plain[kArguments];
  if (!make_key(a, false, key)) {
    normalised = hooks().normalise(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
    for (int i = 0; i < kArguments; ++i) plain[i] = PyTuple_GET_ITEM(normalised.ptr(), i);
    a = plain;
    key.n = 0;
    key.hash = 0;
    if (!make_key(a, true, key)) throw nb::value_error("gatherum: arguments were not normalised");
  }
  nb::object plan = find_plan(key);
  if (!plan.is_valid()) {
    const std::array operands = {a[kData], a[kIndices], a[kUpdates], a[kOut]};
    const Looks before(operands);
    plan = hooks().make_plan(a[kOp], a[kData], a[kIndices], a[kUpdates], a[kAxis], a[kReduction],
                             a[kIncludeSelf], a[kMode], a[kNegative], a[kOut]);
    raise_changed(plan, before.first_change(Looks(operands)));
    keep_plan(key, a, plan);
  }
  return run_program(program_of(plan), plan, a[kData], a[kIndices], a[kUpdates], a[kFill], a[kOut]);
}

void clear_plans() {
  Table old;
  const nb::ft_lock_guard lock(table_mutex);
  old.swap(table());
}

void leave() {
  clear_plans();
  // What a daemon thread that is still in a call keeps alive is no leak to warn of.
  if (Released::alive.load() > 0) nb::set_leak_warnings(false);
}

}  // namespace gatherum
