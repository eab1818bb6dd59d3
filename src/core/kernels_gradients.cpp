// The kernels, compiled once for each instruction-set level, like kernels.cpp. This object: the gradients of
// folds.
#include "dispatch.hpp"
#include "scatter_gradients.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

GroupGradients::Part part_of(const Combine& how) {
  const bool product = how.reduction == Reduction::mul;
  switch (how.value) {
    case Value::float16:
      return &GroupGradients::extreme<Half>;
    case Value::bfloat16:
      return &GroupGradients::extreme<Bfloat16>;
    case Value::float32:
      return product ? &GroupGradients::product<float> : &GroupGradients::extreme<float>;
    case Value::float64:
      return product ? &GroupGradients::product<double> : &GroupGradients::extreme<double>;
    case Value::complex64:
      return &GroupGradients::product<Complex<float>>;
    case Value::complex128:
      return &GroupGradients::product<Complex<double>>;
    case Value::none:
    case Value::boolean:
    case Value::int8:
    case Value::int16:
    case Value::int32:
    case Value::int64:
    case Value::uint8:
    case Value::uint16:
    case Value::uint32:
    case Value::uint64:
      break;
  }
  impossible();
}

void group_gradients(const GroupedScatter& call, const Gradients& at, int64_t unit, int64_t kept,
                     int64_t share, int64_t shares, char* scratch) {
  const FloatMode mode;
  const Positions positions{kept * share / shares, kept * (share + 1) / shares};
  const GroupGradients gradients(call, at, unit, part_of(call.combine));
  with_groups(call, scratch, [&](const auto& groups) { groups.each(positions, kept, gradients); });
}

}  // namespace

void add_gradient_kernels(Kernels& all) { all.group_gradients = group_gradients; }

}  // namespace gatherum::GATHERUM_LEVEL
