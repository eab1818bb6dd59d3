#include "quantized/quantized.hpp"

#include "engine/levels.hpp"
#include "engine/schedule.hpp"

namespace gatherum {
namespace {

int64_t blocks_in(int64_t n, int64_t block) { return n / block + (n % block != 0 ? 1 : 0); }

template <class... Sizes>
int64_t product(Sizes... sizes) {
  int64_t n = 1;
  for (const int64_t size : {sizes...}) n = limited_product(n, size);
  return n;
}

// The sizes of a call's operands: the number of scales, and the number of runs. A run covers the dimensions y
// and z (see kernels/dequantize.hpp).
int64_t scales_of(const QuantizedGather& c) {
  return product(c.outer, blocks_in(c.outer_quantized, c.outer_block), c.outer_after,
                 blocks_in(c.rows, c.row_block), c.inner, blocks_in(c.quantized, c.block), c.after);
}
int64_t runs_of(const QuantizedGather& c) {
  return product(c.outer, c.outer_quantized, c.outer_after, c.count, c.inner);
}

}  // namespace

bool has_meaning(const QuantizedGather& c) {
  const bool integers = c.codes.type == CodeType::uint8 || c.codes.type == CodeType::int8;
  const bool narrow = c.codes.bits == 2 || c.codes.bits == 4;
  const bool floats = c.result == Value::float32 || c.result == Value::float16 || c.result == Value::bfloat16;
  if (!floats || !(c.codes.bits == 8 || (integers && narrow)) || (!integers && c.zeros != nullptr))
    return false;
  for (const int64_t size : {c.count, c.rows, c.outer, c.outer_quantized, c.outer_after, c.inner, c.quantized,
                             c.after, c.scale_line})
    if (size < 0) return false;
  return c.outer_block > 0 && c.row_block > 0 && c.block > 0;
}

QuantizedBytes bytes_of(const QuantizedGather& c) {
  const int64_t in_byte = c.codes.in_byte(), scales = scales_of(c);
  const int64_t items =
      product(c.outer, c.outer_quantized, c.outer_after, c.rows, c.inner, c.quantized, c.after);
  const int64_t lines = c.scale_line == 0 ? 0 : blocks_in(scales, c.scale_line);
  return {
      blocks_in(items, in_byte), limited_product(scales, bytes_of(c.scale)),
      c.scale_line == 0 && scales > 0 ? kSizeLimit : limited_product(lines, blocks_in(c.scale_line, in_byte)),
      product(runs_of(c), c.quantized, c.after, bytes_of(c.result))};
}

bool run_quantized(const QuantizedGather& call, const Poll& poll) {
  const int64_t runs = runs_of(call), length = limited_product(call.quantized, call.after);
  if (runs == 0 || length == 0) return true;
  const int64_t bytes = product(runs, length, bytes_of(call.result) + 1);
  const Split parts = split(runs, 1, false, 0, bytes, threads_for(bytes));
  return run_split(parts, poll,
                   [&](int64_t begin, int64_t end, int) { chosen_kernels().dequantize(call, begin, end); });
}

}  // namespace gatherum
