#include "python/runs.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "python/call_plans.hpp"
#include "python/callbacks.hpp"

namespace gatherum {
namespace {

gatherum_buffer memory_of(const void* address) { return gatherum_memory(address, 0); }

// The sizes of a result as NumPy's integer type. It is usually the core's type, so that nothing is copied.
class Extents {
 public:
  explicit Extents(const Shape& shape) {
    if constexpr (sizeof(npy_intp) == sizeof(int64_t))
      extents_ = reinterpret_cast<const npy_intp*>(shape.extent);
    else
      extents_ = std::copy_n(shape.extent, shape.rank, copy_) - shape.rank;
  }
  operator const npy_intp*() const { return extents_; }

 private:
  const npy_intp* extents_;
  npy_intp copy_[sizeof(npy_intp) == sizeof(int64_t) ? 1 : kMaxLoops];
};

// Calls Python to raise the error of a run of a plan. `facts` are the other arguments of the callback.
template <class... Facts>
[[noreturn]] void raise_error(nb::handle plan, RunFault fault, const Facts&... facts) {
  callbacks().raise_error(plan_object(plan), fault, facts...);
  throw nb::value_error("gatherum: the callback for errors must raise");
}

}  // namespace

bool fills_with_zeros(nb::handle fill) {
  int overflow = 0;
  return PyLong_CheckExact(fill.ptr()) && PyLong_AsLongLongAndOverflow(fill.ptr(), &overflow) == 0 &&
         overflow == 0;
}

void check_out_memory(nb::handle plan, const Views& operands) {
  if (!operands[3].is_present()) return;
  if (!operands[3].writable) raise_error(plan, RunFault::read_only);
  if (const int i = first_overlap(operands); i >= 0) raise_error(plan, RunFault::overlap, i);
}

gatherum_operands operands_of(const BoundProgram& program, const Views& operands, void* result) {
  const auto& [data, indices, updates, out] = operands;
  gatherum_operands buffers = {};
  buffers.out = memory_of(result);
  buffers.data = is_in_place(operands) ? buffers.out : memory_of(data.address);
  buffers.indices = memory_of(indices.address);
  if (program.fields().scatter) buffers.updates = memory_of(updates.address);
  buffers.fresh = out.is_present() ? 0 : 1;
  return buffers;
}

void refuse_too_small(const BoundProgram& program, const gatherum_operands& operands) {
  gatherum_error error;
  if (gatherum_check(program.core(), &operands, &error) == GATHERUM_OK) return;
  throw nb::value_error(("gatherum: not a plan of these operands: `" + std::string(error.operand) +
                         "` is smaller than what it addresses")
                            .c_str());
}

// The result is small, so NumPy allocates it, and the garbage collector need not track it.
nb::object run_plan_without_python(const BoundProgram& program, nb::handle plan, const Views& operands) {
  const Shape& shape = program.fields().result;
  PyArray_Descr* dtype = operands[0].numpy;
  Py_INCREF(reinterpret_cast<PyObject*>(dtype));
  nb::object result = checked(
      PyArray_NewFromDescr(&PyArray_Type, dtype, shape.rank, Extents(shape), nullptr, nullptr, 0, nullptr));
  const gatherum_operands buffers = operands_of(program, operands, PyArray_BYTES(as_array(result)));
  gatherum_error error;
  const gatherum_status status = gatherum_run(program.core(), &buffers, nullptr, &error);
  if (status != GATHERUM_OK) raise_unless_done(plan, status, error);
  return result;
}

nb::object run_any_plan(const CachedPlan& cached, const OperandHandles& operands, nb::handle fill_value,
                        const OperandSnapshot& before) {
  const BoundProgram& program = *cached.program;
  const auto [data, indices, updates, out] = operands;
  check_out_memory(cached.plan, views_of(operands));
  const bool fills =
      !program.fields().scatter && program.fields().mode == Mode::drop && !fills_with_zeros(fill_value);
  nb::object fill;
  if (fills) {
    const nb::handle dtype = reinterpret_cast<PyObject*>(PyArray_DESCR(as_array(data)));
    fill = callbacks().make_fill(plan_object(cached.plan), dtype, fill_value);
  }
  std::optional<Pins> pins;
  if (gatherum_program_is_long(program.core()) != 0) pins.emplace(operands);
  const Shape& shape = program.fields().result;
  nb::object result =
      out.is_none() ? new_array(PyArray_DESCR(as_array(data)), shape.rank, Extents(shape)) : nb::borrow(out);
  raise_changed(cached.plan, before.first_change(operands));
  // From here on no Python code runs on this thread, except signal handlers in long calls.
  gatherum_operands buffers = operands_of(program, views_of(operands), PyArray_BYTES(as_array(result)));
  if (fills) buffers.fill = PyArray_BYTES(as_array(fill));
  run_without_lock_if_long(cached.plan, program, [&](const gatherum_poll* poll, gatherum_error* error) {
    return gatherum_run(program.core(), &buffers, poll, error);
  });
  return result;
}

void raise_changed(nb::handle plan, int operand) {
  if (operand >= 0) raise_error(plan, RunFault::changed, operand);
}

void raise_unless_done(nb::handle plan, gatherum_status status, const gatherum_error& error) {
  switch (status) {
    case GATHERUM_OK:
      return;
    case GATHERUM_INVALID_INDEX:
      raise_error(plan, RunFault::invalid, error.position, error.component,
                  index_value(program_of(plan), error.value));
    case GATHERUM_NO_MEMORY:
      PyErr_NoMemory();
      break;
    case GATHERUM_INTERRUPTED:  // the poll has set the exception
      break;
    case GATHERUM_INVALID_PROGRAM:
    case GATHERUM_INVALID_CALL:
    case GATHERUM_TOO_SMALL:
    case GATHERUM_FAILED:
      throw nb::value_error(error.message);
  }
  nb::raise_python_error();
}

}  // namespace gatherum
