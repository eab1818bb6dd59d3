// Plans that the core makes without Python.
#pragma once

#include "model/plan_call.hpp"
#include "python/plan_table.hpp"

namespace gatherum {

// A call with its program. It replaces Python's Plan in the table of plans, and makes one when a callback
// needs it. It is a Python object, because its members are Python objects. A call on a cached plan therefore
// increments only one reference count.
class CallPlan {
 public:
  CallPlan(const Attributes& attributes, CallSpec spec, nb::object program);

  nb::handle program() const { return program_; }
  // Returns Python's Plan of the call.
  nb::object plan() const;

 private:
  nb::object op_;  // kept alive for the attributes
  Attributes attributes_;
  CallSpec spec_;
  nb::object program_;  // a BoundProgram
  mutable nb::ft_mutex mutex_;
  mutable nb::object plan_;  // empty until it is needed
};

// Plans a call. Returns an empty value if Python has to plan the call, because a dtype has no number, the
// core does not have the operator, or the call is invalid and Python creates the error message.
CachedPlan plan_in_core(const Call& call);
// Also looks for the plan in the table, and stores it there.
CachedPlan find_or_plan_in_core(const Call& call);

// Makes the plan of a call, with `in_python()` if the core cannot make it, and stores the plan.
// `reread(plan)` reads the call again before the plan is stored, because in_python() may have changed the
// operands.
template <class InPython, class Reread>
CachedPlan make_and_keep_plan(const Call& call, const InPython& in_python, const Reread& reread) {
  const Key key(call);
  CachedPlan cached = plan_in_core(call);
  if (cached.program == nullptr) cached = in_python();
  keep_plan(key, reread(cached.plan), cached);
  return cached;
}

bool is_call_plan(nb::handle cached);
// Returns Python's Plan for a cached plan.
nb::object plan_object(nb::handle cached);

// Returns (shape, DType, strides, swapped), the form in which Python reads the spec of an operand.
nb::object description_of(const OperandSpec& operand);
// Describes a view whose dtype has a number.
OperandSpec spec_of(const View& view);

}  // namespace gatherum
