// A remembered call whose result is the result of one scatter.
#include "python/call_plans.hpp"
#include "python/runs.hpp"
#include "python/torch/override_operands.hpp"
#include "python/torch/tensor_result.hpp"
#include "python/torch/tensors.hpp"

namespace gatherum {
namespace {

// The fields of `overrides/scatter_calls.py: Scatter`, in their order.
struct ScatterField {
  enum {
    op,
    data,
    indices,
    updates,
    axis,
    reduction,
    include_self,
    mode,
    negative,
    segments,
    update_rows,
    divisors,
    factors,
    zeroed_row,
    count
  };
};

bool is_vector(const OperandSource& source) { return source.layout().rank == 1 && is_index(source.layout()); }

class RememberedScatter final : public RememberedCall {
 public:
  // Returns false for a call that the core does not run.
  bool read(const OverrideKey& call, const CallFields& fields, nb::handle target) {
    return read_attributes_of(fields) && read_data(call, fields) && read_indices(call, fields) &&
           updates_.find_or_copy(fields[ScatterField::updates], call) && read_terms(call, fields) &&
           read_target(call, target) && plan(call);
  }

  nb::object run(const OverrideKey& call, nb::handle) const override {
    Operands operands;
    if (!compute_operands(call, operands)) return {};
    if (plan_.program != nullptr) return run_program(*plan_.program, call, operands.call);
    const CachedPlan cached = find_plan(operands.call);
    if (cached.program != nullptr) return run_program(*cached.program, call, operands.call);
    // For the next call: this may run Python code, which may change operands.
    find_or_plan_in_core(operands.call);
    return {};
  }

 private:
  struct Operands {
    Call call;
    ComputedOperand indices, updates;
    npy_intp size;  // of the zeros
  };

  bool read_attributes_of(const CallFields& fields) {
    op_ = interned(fields[ScatterField::op]);
    Arguments arguments = {};
    arguments[kOp] = op_;
    arguments[kAxis] = fields[ScatterField::axis];
    arguments[kReduction] = fields[ScatterField::reduction];
    arguments[kIncludeSelf] = fields[ScatterField::include_self];
    arguments[kMode] = fields[ScatterField::mode];
    arguments[kNegative] = fields[ScatterField::negative];
    zeroed_row_ = fields.number(ScatterField::zeroed_row);
    return read_attributes(arguments.data(), attributes_);
  }

  bool read_data(const OverrideKey& call, const CallFields& fields) {
    const nb::handle data = fields[ScatterField::data];
    if (!PyLong_Check(data.ptr())) return data_.find_or_copy(data, call);
    least_size_ = fields.number(ScatterField::data);
    return true;
  }

  bool read_indices(const OverrideKey& call, const CallFields& fields) {
    const nb::handle indices = fields[ScatterField::indices], segments = fields[ScatterField::segments];
    has_tuples_ = PyTuple_Check(indices.ptr());
    const nb::tuple components = has_tuples_ ? nb::borrow<nb::tuple>(indices) : nb::make_tuple(indices);
    indices_ = std::vector<OperandSource>(components.size());
    for (size_t i = 0; i < indices_.size(); ++i)
      if (!indices_[i].find(components[i], call) || !is_index(indices_[i].layout())) return false;
    if (PyUnicode_CompareWithASCIIString(segments.ptr(), "lengths") == 0) segments_ = Segments::lengths;
    if (PyUnicode_CompareWithASCIIString(segments.ptr(), "offsets") == 0) segments_ = Segments::offsets;
    const View& first = indices_[0].layout();
    if (has_tuples_)
      return first.rank < NPY_MAXDIMS &&
             items_of(first) * static_cast<int64_t>(indices_.size()) <= kMostItems;
    return (segments_ == Segments::none && least_size_ < 0) || first.rank == 1;
  }

  bool read_terms(const OverrideKey& call, const CallFields& fields) {
    const nb::handle update_rows = fields[ScatterField::update_rows],
                     divisors = fields[ScatterField::divisors], factors = fields[ScatterField::factors];
    has_terms_ = !(update_rows.is_none() && factors.is_none());
    const View& rows = updates_.layout();
    if (segments_ != Segments::none && (rows.rank == 0 || rows.shape[0] > kMostItems)) return false;
    if (!has_terms_) return divisors.is_none();
    if (!is_floating(updates_.type()) || rows.item < 4) return false;
    int64_t items = items_of(rows);
    if (!update_rows.is_none()) {
      if (rows.rank != 2 || !update_rows_.find(update_rows, call) || !is_vector(update_rows_)) return false;
      items = update_rows_.layout().shape[0] * rows.shape[1];
    }
    if (!divisors.is_none() && (update_rows.is_none() || !divisors_.find(divisors, call) ||
                                !is_vector(divisors_) || divisors_.layout().shape[0] != rows.shape[0]))
      return false;
    return items <= kMostItems && read_factors(call, factors);
  }

  bool read_factors(const OverrideKey& call, nb::handle factors) {
    if (factors.is_none()) return true;
    if (!is_tensor(factors)) {
      factor_ = PyFloat_AsDouble(factors.ptr());
      const bool is_real = PyErr_Occurred() == nullptr;
      PyErr_Clear();
      constexpr double most = int64_t{1} << 53;  // larger integers may not be exact
      return is_real && (!PyLong_Check(factors.ptr()) || std::abs(factor_) <= most);
    }
    return factors_.find(factors, call) && factors_.layout().rank == 1 && update_rows_.is_present() &&
           factors_.layout().dtype == updates_.layout().dtype &&
           factors_.layout().shape[0] == update_rows_.layout().shape[0];
  }

  bool read_target(const OverrideKey& call, nb::handle target) {
    returns_last_ = call.last_tensor().object.is(target);  // `out`
    return target.is_none() || target_.find(target, call);
  }

  bool plan(const OverrideKey& call) {
    Operands operands;
    if (!compute_operands(call, operands)) return false;
    const CachedPlan cached = find_or_plan_in_core(operands.call);
    if (cached.program == nullptr) return false;
    const Shape& result = cached.program->fields().result;
    is_scalar_ = data_.tensor() == 0 && call.tensor(0).rank == 0;
    if (least_size_ < 0) plan_ = cached;
    return zeroed_row_ < 0 || (result.rank == 2 && zeroed_row_ < result.extent[0]);
  }

  // Computes the operands of a call. Returns false for invalid values.
  bool compute_operands(const OverrideKey& call, Operands& to) const {
    to.call.attributes = attributes_;
    auto& [data, indices, updates, target] = to.call.operands;
    updates = updates_.view(call);
    if (has_terms_ && !compute_terms(call, updates, to.updates)) return false;
    if (!compute_indices(call, updates, indices, to.indices)) return false;
    data = data_.view(call);
    if (least_size_ >= 0) {
      const std::optional<npy_intp> size = least_size(indices);
      if (!size) return false;
      to.size = std::max<npy_intp>(*size, least_size_);
      data = zeros_like(updates, 1, &to.size);
    }
    if (target_.is_present()) target = target_.view(call);
    target.writable = true;
    return true;
  }

  bool compute_terms(const OverrideKey& call, View& updates, ComputedOperand& terms) const {
    const Terms of{updates, update_rows_.view(call), divisors_.view(call), factors_.view(call), factor_};
    std::copy_n(updates.shape, updates.rank, terms.shape);
    if (of.update_rows.is_present()) terms.shape[0] = of.update_rows.shape[0];
    updates = terms.allocate(updates.rank, updates.dtype, updates.item);
    return write_terms(of, updates.address);
  }

  bool compute_indices(const OverrideKey& call, const View& updates, View& indices,
                       ComputedOperand& computed) const {
    indices = indices_[0].view(call);
    if (has_tuples_) {
      std::vector<View> components;
      for (const OperandSource& source : indices_) components.push_back(source.view(call));
      indices = tuples_of(components, computed);
    } else if (segments_ != Segments::none) {
      const View bounds = indices;
      computed.shape[0] = updates.shape[0];
      indices = computed.allocate(1, static_cast<int>(DType::int64), sizeof(int64_t));
      return expand_segments(segments_, bounds, updates.shape[0],
                             reinterpret_cast<int64_t*>(indices.address));
    }
    return true;
  }

  nb::object run_program(const BoundProgram& program, const OverrideKey& call, const Call& scatter) const {
    // Python decides about operands that overlap the result, even if terms or tuples are computed from them.
    if (target_.is_present() && (call.meets_others(target_.tensor()) || first_overlap(scatter.operands) >= 0))
      return {};
    TensorResult new_result;
    Shape shape = program.fields().result;
    if (is_scalar_) shape.rank = 0;
    void* const memory = target_.is_present()
                             ? scatter.operands[3].address
                             : new_result.allocate(shape, updates_.type(), updates_.layout().item);
    const gatherum_operands operands = operands_of(program, scatter.operands, memory);
    gatherum_error error;
    const gatherum_status status = run_without_lock_if_long(
        gatherum_program_is_long(program.core()) != 0, error,
        [&](const gatherum_poll* poll) { return gatherum_run(program.core(), &operands, poll, &error); });
    if (status != GATHERUM_OK) return {};
    if (target_.is_present()) return nb::borrow((returns_last_ ? call.last_tensor() : call.tensor(0)).object);
    if (zeroed_row_ >= 0) {
      const auto row_bytes = static_cast<size_t>(shape.extent[1] * updates_.layout().item);
      std::memset(static_cast<char*>(memory) + static_cast<size_t>(zeroed_row_) * row_bytes, 0, row_bytes);
    }
    return new_result.to_tensor(*torch().api);
  }

  nb::object op_;  // kept alive for the attributes
  Attributes attributes_;
  OperandSource data_, updates_, update_rows_, divisors_, factors_, target_;
  std::vector<OperandSource> indices_;
  bool has_tuples_ = false, has_terms_ = false;
  bool returns_last_ = false;  // the call returns its last tensor, otherwise its first
  bool is_scalar_ = false;     // the result has no dimensions
  Segments segments_ = Segments::none;
  double factor_ = 1;
  int64_t least_size_ = -1, zeroed_row_ = -1;
  CachedPlan plan_;  // empty if the plan depends on the values of the indices
};

}  // namespace

Remembered remember_scatter(const OverrideKey& call, const CallFields& fields, nb::handle target) {
  fields.check_count(ScatterField::count);
  const auto scatter = std::make_shared<RememberedScatter>();
  return scatter->read(call, fields, target) ? scatter : nullptr;
}

}  // namespace gatherum
