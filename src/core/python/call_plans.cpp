#include "python/call_plans.hpp"

#include <utility>

#include "python/bindings/bindings.hpp"
#include "python/guarded.hpp"

namespace gatherum {
namespace {

// Returns the call in the form of the planner. Returns false for a call that Python has to plan.
bool read_call(const Call& call, CallSpec& spec) {
  const auto& [data, indices, updates, out] = call.operands;
  const Attributes& attributes = call.attributes;
  const char* const name = PyUnicode_AsUTF8(attributes.op.ptr());
  if (name == nullptr) nb::raise_python_error();
  spec.op = find_operator(name);
  if (spec.op == nullptr || updates.is_present() != spec.op->is_scatter) return false;
  for (const View& view : call.operands)
    if (view.is_present() && view.dtype == kNoDType) return false;
  spec.axis = attributes.axis;
  spec.mode = kModes[attributes.mode].mode;
  spec.negative = attributes.negative;
  spec.reduction = attributes.reduction;
  spec.include_self = attributes.include_self;
  spec.data = spec_of(data);
  spec.indices = spec_of(indices);
  if (updates.is_present()) spec.updates = spec_of(updates);
  if (out.is_present()) spec.out = spec_of(out);
  return true;
}

}  // namespace

OperandSpec spec_of(const View& view) {
  OperandSpec spec;
  spec.layout.shape.assign(view.shape, view.shape + view.rank);
  spec.layout.strides.assign(view.strides, view.strides + view.rank);
  spec.swapped = view.dtype >= kSwapped;
  spec.dtype = view.dtype - (spec.swapped ? kSwapped : 0);
  spec.item = view.item;
  return spec;
}

nb::object description_of(const OperandSpec& operand) {
  const auto& [shape, strides] = operand.layout;
  return nb::make_tuple(tuple_of(shape.data(), operand.layout.rank()), static_cast<DType>(operand.dtype),
                        tuple_of(strides.data(), operand.layout.rank()), operand.swapped);
}

CallPlan::CallPlan(const Attributes& attributes, CallSpec spec, nb::object program)
    : op_(nb::borrow(attributes.op)),
      attributes_(attributes),
      spec_(std::move(spec)),
      program_(std::move(program)) {}

nb::object CallPlan::plan() const {
  {
    const nb::ft_lock_guard lock(mutex_);
    if (plan_.is_valid()) return plan_;
  }
  const auto optional = [](const std::optional<OperandSpec>& operand) {
    return operand ? description_of(*operand) : nb::none();
  };
  const nb::object data = description_of(spec_.data), indices = description_of(spec_.indices),
                   updates = optional(spec_.updates), out = optional(spec_.out);
  nb::object made = plan_in_python(attributes_, {data, indices, updates, out}).plan;
  const nb::ft_lock_guard lock(mutex_);
  if (!plan_.is_valid()) plan_ = std::move(made);
  return plan_;
}

CachedPlan plan_in_core(const Call& call) {
  CallSpec spec{};
  Program program;
  if (!read_call(call, spec) || plan_call(spec, program) || complete(program) != nullptr) return {};
  nb::object bound = make_bound<BoundProgram>(to_bytes(program));
  CachedPlan cached;
  cached.program = nb::inst_ptr<BoundProgram>(bound);
  cached.plan = make_bound<CallPlan>(call.attributes, std::move(spec), std::move(bound));
  return cached;
}

CachedPlan find_or_plan_in_core(const Call& call) {
  CachedPlan cached = find_plan(call);
  if (cached.program != nullptr) return cached;
  cached = plan_in_core(call);
  if (cached.program != nullptr) keep_plan(Key(call), call, cached);
  return cached;
}

bool is_call_plan(nb::handle cached) {
  static const nb::handle type = nb::type<CallPlan>();
  return cached.type().is(type);
}

nb::object plan_object(nb::handle cached) {
  if (is_call_plan(cached)) return nb::inst_ptr<CallPlan>(cached)->plan();
  return nb::borrow(cached);
}

void bind_call_plans(nb::module_& m) { nb::class_<CallPlan>(m, "CallPlan", nb::type_slots(guarded_slots)); }

}  // namespace gatherum
