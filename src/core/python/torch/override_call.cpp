#include "python/torch/override_call.hpp"

#include "python/call_plans.hpp"
#include "python/runs.hpp"
#include "python/torch/index_tuples.hpp"
#include "python/torch/override_bags.hpp"
#include "python/torch/tensor_result.hpp"
#include "python/torch/tensors.hpp"

namespace gatherum {
namespace {

// Names of operators, of reductions and of arguments.
struct Texts {
  PyObject* const slices = kept_text("scatter_slices");
  PyObject* const elements = kept_text("scatter_elements");
  PyObject* const nd = kept_text("scatter_nd");
  PyObject* const none = kept_text("none");
  PyObject* const add = kept_text("add");
  PyObject* const raise = kept_text("raise");
  PyObject* const reduce = kept_text("reduce");
  PyObject* const include_self = kept_text("include_self");
  PyObject* const alpha = kept_text("alpha");
  PyObject* const empty = kept_text("");
  PyObject* const zero = PyLong_FromLong(0);
};
const Texts& texts() {
  static const Texts t;
  return t;
}

int64_t items_of(const View& view) {
  int64_t items = 1;
  for (int i = 0; i < view.rank; ++i) items *= view.shape[i];
  return items;
}

// Makes a contiguous tensor one-dimensional. Returns false for another tensor.
bool flatten(TensorView& tensor, View& view) {
  if (!is_contiguous(view)) return false;
  tensor.shape[0] = static_cast<npy_intp>(items_of(view));
  tensor.strides[0] = static_cast<npy_intp>(view.item);
  view.rank = 1;
  return true;
}

// Makes a tensor without dimensions a vector of one element.
void lift(TensorView& tensor, View& view) {
  if (view.rank == 0) flatten(tensor, view);
}

// Returns "add" or "none" by the value of the argument `accumulate`, which may be omitted.
PyObject* reduction_of(nb::handle accumulate) {
  return accumulate.ptr() == Py_True ? texts().add : texts().none;
}

// Returns true if the index has the same values along all axes but one, and covers the data along them.
bool repeats_vector(const View& index, const View& data, int64_t axis) {
  for (int i = 0; i < index.rank; ++i)
    if (i != axis && (index.shape[i] != data.shape[i] || (index.strides[i] != 0 && index.shape[i] > 1)))
      return false;
  return true;
}

}  // namespace

bool OverrideCall::read(const Override& op, DispatchedArguments& arguments) {
  const bool is_read = [&] {
    switch (op.form) {
      case OverrideForm::slices:
        return read_along_axis(arguments, op.words) && read_slices();
      case OverrideForm::elements:
        return read_along_axis(arguments, op.words) && read_elements();
      case OverrideForm::flat:
        return read_flat(arguments);
      case OverrideForm::indexed:
        return read_indexed(arguments);
      case OverrideForm::embedding:
        return read_embedding(arguments);
      case OverrideForm::counts:
        return read_counts(arguments);
      case OverrideForm::of_bags:
        return read_bag_gradient(arguments);
      case OverrideForm::bags:
        break;
    }
    return false;
  }();
  if (op.in_place) call_.operands[3] = data();
  return is_read && arguments.all_taken();
}

// Reads the operands of one dtype with an index of int32 or int64.
bool OverrideCall::read_operands(nb::handle data_object, nb::handle index_object, nb::handle source_object) {
  return read_plain(data_object, data_, data()) && read_plain(source_object, source_, source()) &&
         data().dtype == source().dtype && read_plain(index_object, index_, index()) && is_index(index());
}

bool OverrideCall::set_attributes(PyObject* op, nb::handle axis, nb::handle reduction,
                                  nb::handle include_self, bool negative) {
  Arguments a = {};
  a[kOp] = op;
  a[kAxis] = axis;
  a[kReduction] = reduction;
  a[kIncludeSelf] = include_self;
  a[kMode] = texts().raise;
  a[kNegative] = negative ? Py_True : Py_False;
  return read_attributes(a.data(), call_.attributes);
}

// Reads the operands of an operator with the argument `dim`. The source is multiplied by `alpha`, if it is
// passed.
bool OverrideCall::read_scaled(DispatchedArguments& arguments) {
  nb::handle source = arguments[3];
  if (const nb::handle alpha = arguments.take(texts().alpha); alpha.is_valid()) {
    if (!source.is_valid() || !is_tensor(source)) return false;
    scaled_ = nb::steal(PyNumber_Multiply(source.ptr(), alpha.ptr()));
    if (!scaled_.is_valid()) nb::raise_python_error();
    source = scaled_;
  }
  return read_operands(arguments[0], arguments[2], source) &&
         !(scaled_.is_valid() && data().dtype == static_cast<int>(DType::boolean));
}

bool OverrideCall::read_along_axis(DispatchedArguments& arguments, const nb::dict& words) {
  if (!read_scaled(arguments)) return false;
  nb::handle word = arguments[4];
  if (!word.is_valid()) word = arguments.take(texts().reduce);
  const nb::handle reduction =
      PyDict_GetItemWithError(words.ptr(), word.is_valid() ? word.ptr() : texts().empty);
  if (!reduction.is_valid()) {
    PyErr_Clear();
    return false;
  }
  const nb::handle given = arguments.take(texts().include_self);
  const nb::handle include_self = given.is_valid() ? given : nb::handle(Py_True);
  if (!set_attributes(texts().slices, arguments[1], reduction, include_self, false)) return false;
  if (call_.attributes.reduction == Reduction::mean && !is_floating(source_.type)) return false;
  int64_t& axis = call_.attributes.axis;
  is_scalar_ = data().rank == 0;
  const int rank = is_scalar_ ? 1 : data().rank;
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank;
}

bool OverrideCall::read_slices() {
  if (index().rank > 1 || source().rank != data().rank) return false;
  const bool is_copy = call_.attributes.reduction == Reduction::none;  // index_copy takes only int64
  if (is_copy && index().dtype != static_cast<int>(DType::int64)) return false;
  lift(index_, index());
  lift(data_, data());
  lift(source_, source());
  for (int i = 0; i < data().rank; ++i) {
    const npy_intp expected = i == call_.attributes.axis ? index().shape[0] : data().shape[i];
    if (source().shape[i] != expected) return false;
  }
  return true;
}

// Reads a scatter of elements. If the index repeats a vector, it is a scatter of slices.
bool OverrideCall::read_elements() {
  if (is_scalar_) {
    lift(data_, data());
    lift(index_, index());
    lift(source_, source());
  }
  const int rank = data().rank;
  if (index().rank != rank || source().rank != rank || items_of(index()) == 0) return false;
  for (int i = 0; i < rank; ++i)
    if (index().shape[i] > source().shape[i]) return false;
  source().shape = index().shape;
  const int64_t axis = call_.attributes.axis;
  if (rank > 1 && repeats_vector(index(), data(), axis)) {
    index().rank = 1;
    index().shape = index_.shape + axis;
    index().strides = index_.strides + axis;
  } else {
    call_.attributes.op = texts().elements;
  }
  return true;
}

bool OverrideCall::read_flat(const DispatchedArguments& arguments) {
  return read_operands(arguments[0], arguments[1], arguments[2]) &&
         index().dtype == static_cast<int>(DType::int64) && items_of(index()) == items_of(source()) &&
         flatten(data_, data()) && flatten(index_, index()) && flatten(source_, source()) &&
         set_attributes(texts().slices, texts().zero, reduction_of(arguments[3]), Py_True, true);
}

bool OverrideCall::read_indexed(const DispatchedArguments& arguments) {
  const nb::handle indices = arguments[1];
  if (!indices.is_valid() || !PyList_CheckExact(indices.ptr())) return false;
  Py_ssize_t count = 0, axis = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(indices.ptr()); ++i) {
    if (PyList_GET_ITEM(indices.ptr(), i) == Py_None) continue;
    axis = i;
    ++count;
  }
  if (count != 1) return count > 1 && read_tuples(indices, arguments);
  const nb::handle only = PyList_GET_ITEM(indices.ptr(), axis);
  if (!read_plain(only, index_, index())) return false;
  is_masked_ = index().dtype == static_cast<int>(DType::boolean);
  if (is_masked_ || !read_operands(arguments[0], only, arguments[2]) || items_of(index()) == 0 ||
      axis >= data().rank ||
      !set_attributes(texts().slices, texts().zero, reduction_of(arguments[3]), Py_True, true))
    return false;
  call_.attributes.axis = axis;
  return true;
}

// Reads indices of several dimensions, as a scatter of tuples.
bool OverrideCall::read_tuples(nb::handle indices, const DispatchedArguments& arguments) {
  IndexTuples tuples;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(indices.ptr()); ++i) {
    const nb::handle object = PyList_GET_ITEM(indices.ptr(), i);
    if (object.is_none()) continue;
    TensorView* const tensor = tuples.add(static_cast<int>(i));
    if (tensor == nullptr || !read_plain(object, *tensor, tuples.last())) return false;
  }
  if (!read_plain(arguments[0], data_, data()) || !read_plain(arguments[2], source_, source()) ||
      data().dtype != source().dtype || !tuples.broadcast(data()))
    return false;
  tuples.move_to_front(data_, data());
  if (!tuples.broadcast_updates(source_, source(), data())) return false;
  tuples_ = tuples.write(index_, index());
  return set_attributes(texts().nd, texts().zero, reduction_of(arguments[3]), Py_True, true);
}

bool OverrideCall::read_embedding(const DispatchedArguments& arguments) {
  const nb::handle scale = arguments[4];
  return scale.is_valid() && scale.ptr() == Py_False && read_plain(arguments[0], source_, source()) &&
         read_plain(arguments[1], index_, index()) && is_index(index()) && items_of(index()) != 0 &&
         source().rank == index().rank + 1 &&
         std::equal(index().shape, index().shape + index().rank, source().shape) &&
         use_zeros(arguments[2], arguments[3]);
}

bool OverrideCall::read_bag_gradient(const DispatchedArguments& arguments) {
  static PyObject* const none = PyLong_FromLong(-1);
  if (!read_plain(arguments[0], source_, source()) || !read_plain(arguments[1], index_, index()) ||
      !is_index(index()) || index().rank != 1 || index().shape[0] == 0)
    return false;
  terms_ = terms_of_bags(arguments, source(), index().shape[0]);
  if (terms_ == nullptr) return false;
  source().address = terms_.get();
  source_.shape[0] = index().shape[0];
  source_.strides[0] = static_cast<npy_intp>(source_.shape[1] * source().item);
  source_.strides[1] = static_cast<npy_intp>(source().item);
  return use_zeros(arguments[5], arguments[9].is_valid() ? arguments[9] : nb::handle(none));
}

// Makes the call a sum of the rows of the source into rows of zeros. Afterwards, the row `padding` is set to
// zeros, if it is not negative.
bool OverrideCall::use_zeros(nb::handle size, nb::handle padding) {
  if (!PyLong_CheckExact(size.ptr()) || !PyLong_CheckExact(padding.ptr())) return false;
  data_.shape[0] = PyLong_AsSsize_t(size.ptr());
  data_.shape[1] = source().shape[index().rank];
  padding_ = PyLong_AsSsize_t(padding.ptr());
  if (PyErr_Occurred() != nullptr) nb::raise_python_error();
  data() = zeros_like(source(), 2, data_.shape);
  return data_.shape[0] >= 0 && padding_ < data_.shape[0] &&
         set_attributes(texts().slices, texts().zero, texts().add, Py_True, false);
}

bool OverrideCall::read_counts(const DispatchedArguments& arguments) {
  const nb::handle least = arguments[2].is_valid() ? arguments[2] : nb::handle(texts().zero);
  if (!read_plain(arguments[0], index_, index()) || !read_plain(arguments[1], source_, source()) ||
      !is_index(index()) || index().rank != 1 || source().rank != 1 || index().shape[0] == 0 ||
      index().shape[0] != source().shape[0] || !is_floating(source_.type) || source().item < 4 ||
      !PyLong_CheckExact(least.ptr()))
    return false;
  const std::optional<npy_intp> size = least_size(index());
  const Py_ssize_t minimum = PyLong_AsSsize_t(least.ptr());
  if (PyErr_Occurred() != nullptr) nb::raise_python_error();
  if (!size || minimum < 0) return false;
  data_.shape[0] = std::max<npy_intp>(*size, minimum);
  data() = zeros_like(source(), 1, data_.shape);
  return set_attributes(texts().slices, texts().zero, texts().add, Py_True, false);
}

OverrideCall::Outcome OverrideCall::run(nb::handle target, nb::object& result) {
  CachedPlan cached = find_plan(call_);
  if (cached.program == nullptr) {
    cached = plan_in_core(call_);
    if (cached.program == nullptr) return Outcome::declined;
    keep_plan(Key(call_), call_, cached);
    return Outcome::planned;
  }
  const BoundProgram& program = *cached.program;
  const bool in_place = call_.operands[3].given();
  if (in_place && first_overlap(program, call_.operands) >= 0) return Outcome::declined;
  TensorResult own;
  Shape shape = program.fields().result;
  if (is_scalar_) shape.rank = 0;
  void* const memory = in_place ? data().address : own.allocate(shape, source_.type, source().item);
  const gatherum_operands operands = operands_of(program, call_.operands, memory);
  gatherum_error error;
  const gatherum_status status = run_without_lock_if_long(
      gatherum_program_is_long(program.core()) != 0, error,
      [&](const gatherum_poll* poll) { return gatherum_run(program.core(), &operands, poll, &error); });
  if (status != GATHERUM_OK) return Outcome::declined;
  if (padding_ >= 0) {
    const auto row = static_cast<size_t>(data_.shape[1] * source().item);
    std::memset(static_cast<char*>(memory) + static_cast<size_t>(padding_) * row, 0, row);
  }
  result = in_place ? nb::borrow(target) : own.take(*torch().api);
  return Outcome::done;
}

}  // namespace gatherum
