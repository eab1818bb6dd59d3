// Compiled once for each instruction-set level, like movement.cpp. This translation unit implements
// elementwise kernels: exp, log, and dequantization of rows.
#include "fold/exp_log.hpp"
#include "kernels/dequantize.hpp"
#include "kernels/dispatch.hpp"

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

template <class From>
void dequantize_from(const QuantizedGather& call, int64_t begin, int64_t end) {
  switch (call.result) {
    case Value::float32:
      return dequantize_runs<From, ToFloat32>(call, begin, end);
    case Value::float16:
      return dequantize_runs<From, ToFloat16>(call, begin, end);
    case Value::bfloat16:
      return dequantize_runs<From, ToBfloat16>(call, begin, end);
    default:
      impossible();
  }
}

void dequantize(const QuantizedGather& call, int64_t begin, int64_t end) {
  const FloatMode mode;
  switch (call.codes.type) {
    case CodeType::uint8:
      return dequantize_from<FromUint8>(call, begin, end);
    case CodeType::int8:
      return dequantize_from<FromInt8>(call, begin, end);
    case CodeType::float8_e4m3fn:
      return dequantize_from<FromE4m3>(call, begin, end);
    case CodeType::float8_e5m2:
      return dequantize_from<FromE5m2>(call, begin, end);
  }
  impossible();
}

}  // namespace

void add_item_kernels(Kernels& all) {
  all.elementary = elementary;
  all.dequantize = dequantize;
}

}  // namespace gatherum::GATHERUM_LEVEL
