// The kernels, compiled once for each instruction-set level, like kernels.cpp. This object: quantized rows.
#include "dequantize.hpp"
#include "dispatch.hpp"

namespace gatherum::GATHERUM_LEVEL {
namespace {

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

void add_quantized_kernels(Kernels& all) { all.dequantize = dequantize; }

}  // namespace gatherum::GATHERUM_LEVEL
