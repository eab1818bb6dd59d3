// The kernels, compiled once for each instruction-set level, like kernels.cpp. This object: the gradients of
// folds.
#include "dispatch.hpp"
#include "scatter_gradients.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

template <int64_t kMost>
GroupGradients::Part part_of(const Combine& how) {
  using G = GroupGradients;
  const bool product = how.reduction == Reduction::mul;
  switch (how.value) {
    case Value::float16:
      return &G::extreme<Half, kMost>;
    case Value::bfloat16:
      return &G::extreme<Bfloat16, kMost>;
    case Value::float32:
      return product ? &G::product<float, kMost> : &G::extreme<float, kMost>;
    case Value::float64:
      return product ? &G::product<double, kMost> : &G::extreme<double, kMost>;
    case Value::complex64:
      return &G::product<Complex<float>, kMost>;
    case Value::complex128:
      return &G::product<Complex<double>, kMost>;
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
  const bool items = call.nest->block == call.nest->item;
  const auto part = items ? part_of<1>(call.combine) : part_of<GroupGradients::kPart>(call.combine);
  const GroupGradients gradients(call, at, unit, part);
  with_groups(call, scratch, [&](const auto& groups) { groups.each(positions, kept, gradients); });
}

}  // namespace

void add_gradient_kernels(Kernels& all) { all.group_gradients = group_gradients; }

}  // namespace gatherum::GATHERUM_LEVEL
