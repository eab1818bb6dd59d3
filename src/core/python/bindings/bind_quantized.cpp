// Binds gathers of quantized rows.
#include <nanobind/stl/array.h>

#include "python/bindings/bindings.hpp"
#include "python/runs.hpp"

namespace gatherum {
namespace {

// Below this number of result bytes the interpreter's lock is kept, because releasing it takes longer.
constexpr int64_t kShortResult = 1 << 14;

using Three = std::array<int64_t, 3>;

// Writes the rows numbered by `rows` to `out`. All arrays are contiguous. For a type that NumPy lacks, an
// array of any type of the same size is accepted.
void dequantize(nb::handle data, nb::handle scales, nb::handle zero_points, nb::handle rows, nb::handle out,
                const char* value, const char* scale, const char* result, int bits, bool packed, float zero,
                const Three& before, int64_t gathered, const Three& after, const Three& blocks,
                int64_t scale_line) {
  PyArrayObject *const table = contiguous_array(data), *const factors = contiguous_array(scales);
  PyArrayObject *const row_numbers = contiguous_array(rows), *const to = contiguous_array(out);
  PyArrayObject* const zeros = zero_points.is_none() ? nullptr : contiguous_array(zero_points);
  if (PyArray_TYPE(row_numbers) != NPY_INT64 || !PyArray_ISWRITEABLE(to))
    throw nb::value_error("gatherum: not the arrays of a gather of quantized rows");
  gatherum_quantized call{};
  call.data = PyArray_DATA(table);
  call.scales = PyArray_DATA(factors);
  call.out = PyArray_DATA(to);
  call.data_bytes = PyArray_NBYTES(table);
  call.scales_bytes = PyArray_NBYTES(factors);
  call.out_bytes = PyArray_NBYTES(to);
  if (zeros != nullptr) {
    call.zero_points = PyArray_DATA(zeros);
    call.zero_points_bytes = PyArray_NBYTES(zeros);
  }
  call.value = value;
  call.scale = scale;
  call.result = result;
  call.bits = bits;
  call.packed = packed ? 1 : 0;
  call.zero = zero;
  call.rows = static_cast<const int64_t*>(PyArray_DATA(row_numbers));
  call.count = PyArray_SIZE(row_numbers);
  std::copy(before.begin(), before.end(), call.before);
  call.gathered = gathered;
  std::copy(after.begin(), after.end(), call.after);
  std::copy(blocks.begin(), blocks.end(), call.blocks);
  call.scale_line = scale_line;
  run_without_lock_if_long(call.out_bytes >= kShortResult,
                           error_of("gatherum: not a gather of quantized rows"),
                           [&](const gatherum_poll* poll) { return gatherum_dequantize(&call, poll); });
}

}  // namespace

void bind_quantized(nb::module_& m) {
  m.def("dequantize", &dequantize, nb::arg("data"), nb::arg("scales"), nb::arg("zero_points").none(),
        nb::arg("rows"), nb::arg("out"), nb::arg("value"), nb::arg("scale"), nb::arg("result"),
        nb::arg("bits"), nb::arg("packed"), nb::arg("zero"), nb::arg("before"), nb::arg("gathered"),
        nb::arg("after"), nb::arg("blocks"), nb::arg("scale_line"));
}

}  // namespace gatherum
