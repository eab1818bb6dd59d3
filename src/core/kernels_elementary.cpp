// The kernels, compiled once for each instruction-set level, like kernels.cpp. This object: exp and log.
#include "dispatch.hpp"
#include "elementary.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

template <class F>
void map(Value value, const char* from, char* to, int64_t n) {
  switch (value) {
    case Value::float16:
      return map_halves<F, half_to_float<false>, float_to_half<false>>(from, to, n);
    case Value::bfloat16:
      return map_halves<F, bfloat16_to_float, float_to_bfloat16>(from, to, n);
    case Value::float32:
      return map_items<float, F>(from, to, n);
    case Value::float64:
      return map_items<double, F>(from, to, n);
    default:
      impossible();
  }
}

void elementary(Elementary function, Value value, const char* from, char* to, int64_t n) {
  const FloatMode mode;
  switch (function) {
    case Elementary::exp:
      return map<Exp>(value, from, to, n);
    case Elementary::log:
      return map<Log>(value, from, to, n);
  }
  impossible();
}

}  // namespace

void add_elementary_kernels(Kernels& all) { all.elementary = elementary; }

}  // namespace gatherum::GATHERUM_LEVEL
