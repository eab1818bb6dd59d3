#include "calls.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "looks.hpp"
#include "programs.hpp"
#include "released.hpp"

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

constexpr int kMostNames = 64;
constexpr int kDeepestNames = 16;

// Calls visit(names) for the names of a structured dtype, and for those of every structure inside. False:
// there are too many, or they lie too deep.
template <class Visit>
bool visit_names(PyArray_Descr* dtype, const Visit& visit, int depth = 0) {
  while (PyDataType_HASSUBARRAY(dtype)) dtype = PyDataType_SUBARRAY(dtype)->base;
  if (dtype->type_num != NPY_VOID || !PyDataType_HASFIELDS(dtype)) return true;
  if (depth == kDeepestNames || !visit(PyDataType_NAMES(dtype))) return false;
  PyObject *name = nullptr, *field = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(PyDataType_FIELDS(dtype), &at, &name, &field) != 0;)
    if (!visit_names(reinterpret_cast<PyArray_Descr*>(PyTuple_GET_ITEM(field, 0)), visit, depth + 1))
      return false;
  return true;
}

// The number of a name among those that the core or Python gives it, -1 if it is none. Names in a program's
// text are interned, so that their address is enough; others are compared.
template <size_t N>
int number_of(PyObject* name, const std::array<const char*, N>& names) {
  static const auto interned = [&] {
    std::array<PyObject*, N> made{};
    for (size_t i = 0; i < N; ++i) made[i] = PyUnicode_InternFromString(names[i]);
    return made;
  }();
  for (size_t i = 0; i < N; ++i)
    if (name == interned[i]) return static_cast<int>(i);
  for (size_t i = 0; i < N; ++i)
    if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0) return static_cast<int>(i);
  return -1;
}

constexpr std::array kModes = {"raise", "clip", "wrap", "fill", "drop"};
constexpr auto kReductions = [] {
  std::array<const char*, kCount<Reduction>> names{};
  for (size_t i = 0; i < names.size(); ++i) names[i] = name_of(static_cast<Reduction>(i));
  return names;
}();

// A dtype as a word: NumPy's number of a type that is always the same; of others the address.
int64_t code_of(PyArray_Descr* dtype) {
  const int number = dtype->type_num;
  const bool plain = number <= NPY_CLONGDOUBLE || number == NPY_HALF;
  if (plain && PyArray_ISNBO(dtype->byteorder) && PyDataType_METADATA(dtype) == nullptr) return number;
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(dtype));
}

// What a plan depends on, as words: attributes, and dtype, shape and strides of every operand.
// Objects are compared by identity; the table keeps them alive. The fields of a structured dtype can be
// renamed, which gives it another tuple of names.
struct Key {
  int n = 0;
  int names = 0;
  bool whole = true;    // false: the words do not say everything, and the plan is not kept
  bool lasting = true;  // no word is an address: they mean the same when all objects are gone
  uint64_t hash = 0;
  int64_t words[8 + kMostNames + kArrays.size() * (3 + 2 * NPY_MAXDIMS)];

  void clear() {
    n = names = 0;
    whole = lasting = true;
    hash = 0;
  }
  void add(int64_t word) {
    words[n++] = word;
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  void add(const void* object) { add(static_cast<int64_t>(reinterpret_cast<intptr_t>(object))); }
  void add(PyArrayObject* array) {
    const int rank = PyArray_NDIM(array);
    const int64_t code = code_of(PyArray_DESCR(array));
    lasting = lasting && code < NPY_NTYPES_LEGACY;
    add(code);
    if (!lasting)  // what dtype.__setstate__ can change
      add(int64_t{PyArray_ITEMSIZE(array)} * 2 + (PyDataType_REFCHK(PyArray_DESCR(array)) ? 1 : 0));
    add(int64_t{rank});
    for (int i = 0; i < rank; ++i) add(int64_t{PyArray_DIM(array, i)});
    for (int i = 0; i < rank; ++i) add(int64_t{PyArray_STRIDE(array, i)});
    if (PyArray_TYPE(array) == NPY_VOID) add_names(PyArray_DESCR(array));
  }
  void add_names(PyArray_Descr* dtype) {
    whole = whole && visit_names(dtype, [this](PyObject* tuple) {
              if (++names > kMostNames) return false;
              add(tuple);
              return true;
            });
  }
};

bool is_bool(nb::handle h) { return h.ptr() == Py_True || h.ptr() == Py_False; }

// Adds the looks of operands that are arrays; None stands for none. False: one is something else.
bool add_operands(const nb::handle* arrays, size_t n, bool normalised, Key& key) {
  for (size_t i = 0; i < n; ++i) {
    const nb::handle h = arrays[i];
    if (h.is_none() && i >= 2) {
      key.add(int64_t{-1});
      continue;
    }
    const bool fits = PyArray_CheckExact(h.ptr()) || (normalised && i == 3 && PyArray_Check(h.ptr()));
    if (!fits) return false;
    key.add(as_array(h));
  }
  return true;
}

// False when an argument is anything but a plain value or array, which Python then makes of it.
bool make_key(const nb::handle* a, bool normalised, Key& key) {
  if (!PyLong_CheckExact(a[kAxis].ptr()) || !PyUnicode_CheckExact(a[kReduction].ptr()) ||
      !PyUnicode_CheckExact(a[kMode].ptr()) || !is_bool(a[kIncludeSelf]) || !is_bool(a[kNegative]))
    return false;
  int overflow = 0;
  const int64_t axis = PyLong_AsLongLongAndOverflow(a[kAxis].ptr(), &overflow);
  const int mode = number_of(a[kMode].ptr(), kModes), reduction = number_of(a[kReduction].ptr(), kReductions);
  if (overflow != 0 || mode < 0 || reduction < 0) return false;
  const int flags = (a[kIncludeSelf].ptr() == Py_True ? 2 : 0) + (a[kNegative].ptr() == Py_True ? 1 : 0);
  key.add(a[kOp].ptr());
  key.add(axis);
  key.add(int64_t{(mode * 16 + reduction) * 4 + flags});
  const nb::handle arrays[] = {a[kData], a[kIndices], a[kUpdates], a[kOut]};
  return add_operands(arrays, 4, normalised, key);
}

// A list of Python integers, or of such lists of one length, as an array of int64; nothing where it is
// anything else, which Python then looks at.
nb::object array_of_integers(nb::handle list) {
  if (!PyList_CheckExact(list.ptr()) || PyList_GET_SIZE(list.ptr()) == 0) return {};
  const bool nested = PyList_CheckExact(PyList_GET_ITEM(list.ptr(), 0));
  const npy_intp shape[] = {PyList_GET_SIZE(list.ptr()),
                            nested ? PyList_GET_SIZE(PyList_GET_ITEM(list.ptr(), 0)) : 1};
  nb::object array = nb::steal(PyArray_SimpleNew(nested ? 2 : 1, shape, NPY_INT64));
  if (!array.is_valid()) nb::raise_python_error();
  auto* to = reinterpret_cast<int64_t*>(PyArray_BYTES(as_array(array)));
  const auto read = [&to](PyObject* item) {
    int overflow = 0;
    if (!PyLong_CheckExact(item)) return false;
    *to++ = PyLong_AsLongLongAndOverflow(item, &overflow);
    return overflow == 0;
  };
  for (npy_intp i = 0; i < shape[0]; ++i) {
    PyObject* row = PyList_GET_ITEM(list.ptr(), i);
    if (nested && (!PyList_CheckExact(row) || PyList_GET_SIZE(row) != shape[1])) return {};
    for (npy_intp j = 0; j < shape[1]; ++j)
      if (!read(nested ? PyList_GET_ITEM(row, j) : row)) return {};
  }
  return array;
}

struct Entry {
  uint64_t hash;
  std::vector<int64_t> words;
  std::vector<nb::object> kept;  // what the words point at
  nb::object plan;
  const BoundProgram* program;  // the plan's

  bool matches(const Key& key) const {
    return key.whole && hash == key.hash && words.size() == static_cast<size_t>(key.n) &&
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

// A plan with its program, which lives as long.
struct Found {
  nb::object plan;
  const BoundProgram* program = nullptr;
};

Found find_plan(const Key& key) {
  const nb::ft_lock_guard lock(table_mutex);
  const auto& entry = table()[key.hash % kPlaces];
  return entry && entry->matches(key) ? Found{entry->plan, entry->program} : Found{};
}

void keep_plan(const Key& key, const nb::handle* a, const Found& found) {
  auto entry = std::make_unique<Entry>();
  Key now;  // fields may have been renamed while the plan was made
  make_key(a, true, now);
  entry->hash = key.hash;
  entry->words.assign(key.words, key.words + key.n);
  entry->plan = found.plan;
  entry->program = found.program;
  if (!entry->matches(now)) return;
  entry->kept.push_back(nb::borrow(a[kOp]));
  for (Argument i : kArrays)
    if (!a[i].is_none()) {
      PyArray_Descr* dtype = PyArray_DESCR(as_array(a[i]));
      entry->kept.push_back(nb::borrow(reinterpret_cast<PyObject*>(dtype)));
      visit_names(dtype, [&](PyObject* tuple) {
        entry->kept.push_back(nb::borrow(tuple));
        return true;
      });
    }
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

nb::object new_result(PyArray_Descr* dtype, const Shape& shape) {
  npy_intp extents[kMaxLoops];
  std::copy_n(shape.extent, shape.rank, extents);
  return new_array(dtype, shape.rank, extents);
}

gatherum_buffer memory_of(nb::handle array) { return gatherum_memory(PyArray_BYTES(as_array(array)), 0); }

// The operands as the core takes them. The plan was made for them: there are no sizes to check.
gatherum_operands operands_of(bool scatter, bool in_place, const OperandHandles& operands,
                              nb::handle result) {
  gatherum_operands at = {};
  at.out = memory_of(result);
  at.data = in_place ? at.out : memory_of(operands[0]);
  at.indices = memory_of(operands[1]);
  if (scatter) at.updates = memory_of(operands[2]);
  at.fresh = operands[3].is_none() ? 1 : 0;
  return at;
}

void raise_unless_done(nb::handle plan, gatherum_status status, const gatherum_error& error);

// A call during which no Python code can run: its result is small, so that NumPy allocates it, as nothing
// that the collector would look at.
nb::object run_quietly(const BoundProgram& bound, nb::handle plan, const OperandHandles& operands) {
  const Program& program = bound.fields();
  PyArray_Descr* dtype = PyArray_DESCR(as_array(operands[0]));
  npy_intp extents[kMaxLoops];
  std::copy_n(program.result.extent, program.result.rank, extents);
  Py_INCREF(reinterpret_cast<PyObject*>(dtype));
  nb::object result = nb::steal(
      PyArray_NewFromDescr(&PyArray_Type, dtype, program.result.rank, extents, nullptr, nullptr, 0, nullptr));
  if (!result.is_valid()) nb::raise_python_error();
  const gatherum_operands at = operands_of(program.scatter, false, operands, result);
  gatherum_error error;
  if (const gatherum_status status = gatherum_run(bound.core(), &at, nullptr, &error); status != GATHERUM_OK)
    raise_unless_done(plan, status, error);
  return result;
}

// `before`: what the operands looked like when the plan was found to be theirs.
nb::object run_program(const BoundProgram& bound, nb::handle plan, const OperandHandles& operands,
                       nb::handle fill_value, const Looks& before) {
  const Program& program = bound.fields();
  const auto [data, indices, updates, out] = operands;
  const bool fills = !program.scatter && program.mode == Mode::drop;
  bool in_place = false, check_out = false;
  if (!out.is_none()) {
    PyArrayObject* o = as_array(out);
    in_place = program.scatter && same_place(o, as_array(data));
    check_out = !PyArray_ISWRITEABLE(o) || (!in_place && may_overlap(o, data)) || may_overlap(o, indices) ||
                may_overlap(o, updates);
  }
  nb::object fill;
  if (check_out) hooks().check_out(plan, data, indices, updates, out);
  if (fills) fill = hooks().make_fill(plan, fill_value);
  std::optional<Pins> pins;
  if (gatherum_program_is_long(bound.core()) != 0) pins.emplace(operands);
  nb::object result =
      out.is_none() ? new_result(PyArray_DESCR(as_array(data)), program.result) : nb::borrow(out);
  raise_changed(plan, before.first_change(operands));
  // From here on no Python code runs on this thread, but signal handlers in long calls.
  gatherum_operands at = operands_of(program.scatter, in_place, operands, result);
  if (fills) at.fill = PyArray_BYTES(as_array(fill));
  run_released(plan, bound, [&](const gatherum_poll* poll, gatherum_error* error) {
    return gatherum_run(bound.core(), &at, poll, error);
  });
  return result;
}

void raise_unless_done(nb::handle plan, gatherum_status status, const gatherum_error& error) {
  switch (status) {
    case GATHERUM_OK:
      return;
    case GATHERUM_INVALID_INDEX:
      hooks().raise_invalid(plan, error.position, error.component, error.value);
      throw nb::value_error("gatherum: the hook for invalid indices must raise");
    case GATHERUM_NO_MEMORY:
      PyErr_NoMemory();
      break;
    case GATHERUM_INTERRUPTED:  // the poll has set the exception
      break;
    case GATHERUM_INVALID_PROGRAM:
    case GATHERUM_TOO_SMALL:
    case GATHERUM_FAILED:
      throw nb::value_error(error.message);
  }
  nb::raise_python_error();
}

}  // namespace

const BoundProgram& program_of(nb::handle plan) {
  static PyObject* name = PyUnicode_InternFromString("program");
  nb::object program = nb::steal(PyObject_GetAttr(plan.ptr(), name));
  if (!program.is_valid()) nb::raise_python_error();
  if (!nb::isinstance<BoundProgram>(program))
    throw nb::type_error("gatherum: a plan's `program` is no program");
  return *nb::inst_ptr<BoundProgram>(program);  // the plan keeps it alive
}

void run_released(nb::handle plan, const BoundProgram& program,
                  const std::function<gatherum_status(const gatherum_poll*, gatherum_error*)>& run) {
  gatherum_error error;
  if (gatherum_program_is_long(program.core()) == 0)
    return raise_unless_done(plan, run(nullptr, &error), error);
  gatherum_status status;
  {
    Released released;
    const gatherum_poll poll = released.poll();
    do status = run(&poll, &error);
    // Interrupted without a poll that says so: a signal handler has forked, and this is the child, which does
    // all of the work itself. Polls come before anything is written in place, so it can start again.
    while (status == GATHERUM_INTERRUPTED && !released.interrupted());
  }
  raise_unless_done(plan, status, error);
}

Hooks& hooks() {
  static auto* h = new Hooks;
  return *h;
}

nb::object run(nb::handle plan, nb::handle data, nb::handle indices, nb::handle updates,
               nb::handle fill_value, nb::handle out) {
  const OperandHandles operands = {data, indices, updates, out};
  const BoundProgram& program = program_of(plan);
  Key key;
  const bool arrays = add_operands(operands.data(), operands.size(), true, key);
  const bool known = arrays && key.lasting && program.was_run_on(key.words, key.n);
  if (known && out.is_none() && program.is_quiet()) return run_quietly(program, plan, operands);
  std::optional<Looks> before;
  if (std::all_of(operands.begin(), operands.end(),
                  [](nb::handle h) { return h.is_none() || PyArray_Check(h.ptr()); }))
    before.emplace(operands);
  if (!known) hooks().check_operands(plan, data, indices, updates, out);
  if (!before) throw nb::type_error("gatherum: the hook for operands must refuse what is no array");
  if (arrays && key.lasting) program.note_run_on(key.words, key.n);
  return run_program(program, plan, operands, fill_value, *before);
}

nb::object call(nb::handle* a) {
  Key key;
  nb::object normalised;
  nb::handle plain[kArguments];
  const nb::object listed = array_of_integers(a[kIndices]);
  if (listed.is_valid()) a[kIndices] = listed;
  if (!make_key(a, false, key)) {
    normalised = hooks().normalise(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
    if (!PyTuple_CheckExact(normalised.ptr())) return normalised;
    for (int i = 0; i < kArguments; ++i) plain[i] = PyTuple_GET_ITEM(normalised.ptr(), i);
    a = plain;
    key.clear();
    if (!make_key(a, true, key)) throw nb::value_error("gatherum: arguments were not normalised");
  }
  const OperandHandles operands = {a[kData], a[kIndices], a[kUpdates], a[kOut]};
  Found found = find_plan(key);
  if (found.program != nullptr && a[kOut].is_none() && found.program->is_quiet())
    return run_quietly(*found.program, found.plan, operands);
  const Looks before(operands);
  if (found.program == nullptr) {
    found.plan = hooks().make_plan(a[kOp], a[kData], a[kIndices], a[kUpdates], a[kAxis], a[kReduction],
                                   a[kIncludeSelf], a[kMode], a[kNegative], a[kOut]);
    found.program = &program_of(found.plan);
    raise_changed(found.plan, before.first_change(operands));
    keep_plan(key, a, found);
  }
  return run_program(*found.program, found.plan, operands, a[kFill], before);
}

void clear_plans() {
  Table old;
  const nb::ft_lock_guard lock(table_mutex);
  old.swap(table());
}

void leave() {
  clear_plans();
  // What a daemon thread that is still in a call keeps alive is no leak to warn of.
  if (Released::count() > 0) nb::set_leak_warnings(false);
}

namespace {

// What an entry of an operator passes on: its positional arguments, in the order of its signature.
constexpr std::array kGatherOrder = {kData, kIndices, kAxis, kMode, kNegative, kFill, kOut};
constexpr std::array kScatterOrder = {kData,        kIndices, kUpdates,  kAxis, kReduction,
                                      kIncludeSelf, kMode,    kNegative, kOut};

template <size_t N>
PyObject* call_with(PyObject* op, PyObject* const* given, Py_ssize_t n,
                    const std::array<Argument, N>& order) {
  static PyObject* const none = PyUnicode_InternFromString("none");
  static PyObject* const zero = PyLong_FromLong(0);
  if (n != static_cast<Py_ssize_t>(N)) {
    PyErr_Format(PyExc_TypeError, "gatherum: %U takes %zd arguments here", op, static_cast<Py_ssize_t>(N));
    return nullptr;
  }
  nb::handle a[kArguments] = {op, {}, {}, Py_None, {}, none, Py_True, {}, {}, zero, {}};
  for (size_t i = 0; i < N; ++i) a[order[i]] = given[i];
  try {
    return call(a).release().ptr();
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError,
                    e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

PyObject* call_gather(PyObject* op, PyObject* const* given, Py_ssize_t n) {
  return call_with(op, given, n, kGatherOrder);
}

PyObject* call_scatter(PyObject* op, PyObject* const* given, Py_ssize_t n) {
  return call_with(op, given, n, kScatterOrder);
}

}  // namespace

nb::object entry_of(nb::str name, bool scatters) {
  // Python's own kind of function: a call of nanobind's, with as many arguments, takes twice as long.
  static PyMethodDef gathers = {"gather", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_gather)),
                                METH_FASTCALL, nullptr};
  static PyMethodDef scatters_def = {"scatter",
                                     reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_scatter)),
                                     METH_FASTCALL, nullptr};
  PyObject* op = name.inc_ref().ptr();
  PyUnicode_InternInPlace(&op);
  return nb::steal(PyCFunction_New(scatters ? &scatters_def : &gathers, nb::steal(op).ptr()));
}

}  // namespace gatherum
