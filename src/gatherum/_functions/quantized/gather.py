"""`gather_quantized`, and its implementation for NumPy arrays."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Never

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import conversion, xarray_labels
from gatherum._arguments import indices as resolved
from gatherum._frameworks import registry
from gatherum._frameworks.torch_compile import follow_tensors
from gatherum._functions import overloads
from gatherum._model import errors, shape_limits
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import Attributes
from gatherum._model.call_types import typed_as
from gatherum._model.dtypes import DType, is_index, load_dtype
from gatherum._model.errors import Shape
from gatherum._model.modes import FILLING, ModeName
from gatherum._plans.plans import apply
from gatherum._system import native

from .formats import NAME, name_of
from .spec import QuantizedAttributes, Spec, as_attributes, spec_of


@typed_as(overloads.gather_quantized)
def gather_quantized(
    data: Any,
    indices: Any,
    scales: Any,
    zero_points: Any = None,
    *,
    axis: int = 0,
    quantize_axis: int = -1,
    block_size: int,
    bits: int | None = None,
    dtype: Any = "float32",
    mode: ModeName = "raise",
    negative: bool = True,
    **unknown: Never,
) -> Any:
    """Take slices from a quantized array along one axis, and dequantize them in one pass.

    ``out = (values - zero_points) * scales`` for the slices that `gather` takes. Only these slices
    are read.

    Parameters
    ----------
    data : array_like
        The quantized values, of uint8, int8 or an ml_dtypes type: float8_e4m3fn, float8_e5m2,
        uint4, int4, uint2, int2.
    indices : array_like of int
        Positions of the slices on `axis`, of any shape, including 0-d.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    scales : array_like
        A factor for each block of values, of float32, float16, bfloat16 or float8_e8m0fnu. The
        shape is the shape of the values, except on `quantize_axis`, which has one entry for each
        block.
    zero_points : array_like, optional
        The value to subtract in each block, of `data`'s dtype, packed like `data`, and of the shape
        of `scales`. The default is 0 for signed and small types and for floats, and
        ``2 ** (bits - 1)`` for uint8, as documented by ONNX Runtime. Floats do not support zero
        points.
    axis : int, default 0
        The axis that `indices` addresses.
    quantize_axis : int, default -1
        The axis whose blocks share a scale.
    block_size : int
        The number of values that share a scale, at least 1. The last block may be shorter. With the
        size of the axis, or any larger number, the whole axis shares one scale.
    bits : {2, 4, 8}, optional
        The number of bits of a value. With 4 or 2, each byte of uint8 or int8 holds 2 or 4 values,
        respectively, which are adjacent on the last axis, the first in the lowest bits.
    dtype : {"float32", "float16", "bfloat16"}, default "float32"
        The dtype of the result.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices, as in `gather`; ``"fill"`` and ``"drop"`` return zeros.
    negative : bool, default True
        If True, indices from -n to -1 count from the end of a dimension of size n.

    Returns
    -------
    numpy.ndarray
        A new C-contiguous array of `dtype` and the shape
        ``values.shape[:axis] + indices.shape + values.shape[axis + 1:]``.

    Raises
    ------
    TypeError
        If an attribute is not an integer, `negative` is not a boolean, a dtype is not listed above,
        `indices` has a non-integer dtype, `zero_points` has another dtype than `data` or is given
        for floats, or an operand is not an array, is masked or belongs to another framework.
    ValueError
        If an attribute is out of range or has an invalid value, or the shapes do not match.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. The message names the first invalid index in row-major order.

    See Also
    --------
    gather : Take slices without dequantization.

    Notes
    -----
    Values, zero points, their difference and scales are exact in float32. The product is rounded to
    float32 and then to `dtype`, both to nearest, ties to even. A NaN is the canonical quiet NaN.
    The result is bit-for-bit equal for any number of threads and on every machine.

    `data`, `scales` and `zero_points` are read in place if they are C-contiguous. Otherwise their
    slices are gathered first.

    The counterpart is GatherBlockQuantized in ONNX Runtime
    (https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md).

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> table = np.array([[1, 2, 3, 4], [-5, 6, -7, 8]], np.int8)
    >>> scales = np.array([[0.5, 1.0], [2.0, 0.25]], np.float32)
    >>> gatherum.gather_quantized(table, [1, 0], scales, block_size=2)
    array([[-10.  ,  12.  ,  -1.75,   2.  ],
           [  0.5 ,   1.  ,   3.  ,   4.  ]], dtype=float32)

    Two values of 4 bits in each byte, and a zero point for each row:

    >>> packed = np.array([[0x21, 0x43], [0x65, 0x87]], np.uint8)
    >>> zeros = np.array([[1], [5]], np.uint8)
    >>> ones = np.ones((2, 1), np.float16)
    >>> gatherum.gather_quantized(packed, 1, ones, zeros, block_size=4, bits=4, dtype="float16")
    array([0., 1., 2., 3.], dtype=float16)
    """
    if unknown:
        raise errors.unknown_argument("gather_quantized", unknown)
    attributes = as_attributes(axis, quantize_axis, block_size, bits, dtype, mode, negative)
    if xarray_labels.has_labels(data):
        scales, zero_points = map(xarray_labels.plain_array, (scales, zero_points))

        def run_plain(table: Any, entries: Any) -> Any:
            return gather_quantized(
                table, entries, scales, zero_points, axis=axis, quantize_axis=quantize_axis,
                block_size=block_size, bits=bits, dtype=dtype, mode=mode, negative=negative,
            )  # fmt: skip

        packed = bits not in (None, 8) and attributes.axis in (-1, len(data.shape) - 1)
        labels = Attributes(
            "gather", attributes.axis, mode="fill" if packed else mode, negative=negative
        )
        return xarray_labels.gathered(NAME, labels, data, indices, run_plain)
    zeros = zero_points
    if not type(data) is type(indices) is type(scales) is np.ndarray or not (
        zeros is None or type(zeros) is np.ndarray
    ):
        operands = {"data": data, "indices": indices, "scales": scales, "zero_points": zeros}
        if run := registry.adapter_member(NAME, operands, "quantized"):
            result: NDArray[Any] = run(attributes, *operands.values())
            return result
        registry.check_one_framework(NAME, operands)
        data, scales = (conversion.as_array(NAME, name, operands[name]) for name in _ARRAYS)
        zeros = None if zeros is None else conversion.as_array(NAME, "zero_points", zeros)
        indices = conversion.as_indices(NAME, indices)
    return _on_arrays(attributes, data, indices, scales, zeros)


follow_tensors(gather_quantized, "functions", "quantized")
_ARRAYS = "data", "scales"


def _on_arrays(
    attributes: QuantizedAttributes, data: Any, indices: Any, scales: Any, zero_points: Any
) -> NumpyArray:
    zeros = None if zero_points is None else (zero_points.shape, zero_points.dtype)
    spec, dtype = _spec_and_dtype(
        attributes, data.shape, data.dtype, scales.shape, scales.dtype, zeros
    )
    return run_on_arrays(attributes, spec, data, indices, scales, zero_points, dtype)


@lru_cache(256)
def _spec_and_dtype(
    attributes: QuantizedAttributes,
    data_shape: Shape,
    data_dtype: DType,
    scales_shape: Shape,
    scales_dtype: DType,
    zero_point_spec: tuple[Shape, DType] | None,
) -> tuple[Spec, DType]:
    """Check the shapes and dtypes of a call. Return its spec and the dtype of its result."""
    zero_points = (
        None if zero_point_spec is None else (zero_point_spec[0], name_of(zero_point_spec[1]))
    )
    spec = spec_of(
        attributes,
        (data_shape, name_of(data_dtype)),
        (scales_shape, name_of(scales_dtype)),
        zero_points,
    )
    dtype = load_dtype(spec.result)
    if not isinstance(dtype, np.dtype):
        raise errors.needs_ml_dtypes(NAME, dtype)
    return spec, dtype


def run_on_arrays(
    attributes: QuantizedAttributes,
    spec: Spec,
    data: NumpyArray,
    indices: NumpyArray,
    scales: NumpyArray,
    zero_points: NumpyArray | None,
    dtype: DType,
) -> NumpyArray:
    """Check the indices of an otherwise checked call, and run it.

    The arrays may hold the bits of their types as integers, and `dtype` may be an integer type for
    the bits of the result.
    """
    if not is_index(indices.dtype):
        raise errors.not_an_index_dtype(NAME, indices.dtype, False)
    shape_limits.check_rank(NAME, "`indices`", indices.ndim)
    shape = spec.result_shape(indices.shape)
    shape_limits.check_result(NAME, shape, dtype)
    rows = resolve_rows(indices, spec.axis, spec.rows, attributes.mode, attributes.negative)
    out: NumpyArray = native.new_result(dtype, shape)
    dequantize(spec, data, rows, scales, zero_points, out)
    return out


def resolve_rows(
    indices: NumpyArray, axis: int, size: int, mode: str, negative: bool
) -> NDArray[np.int64]:
    """Return a new array with the row of each index, or -1 for an index that is filled.

    Raise IndexError for an invalid index.
    """
    if size == 0 and indices.size and mode not in FILLING:
        value = int(indices.flat[0])
        raise errors.index_out_of_bounds(NAME, value, axis, size, (0,) * indices.ndim, mode)
    rows, invalid = resolved.number_rows(indices, size, mode, negative)
    if invalid and mode == "raise":
        first_invalid = resolved.first_invalid(indices, (size,), mode, negative, False)
        value, where = (
            (0, None) if first_invalid is None else (first_invalid.value, first_invalid.where)
        )
        raise errors.index_out_of_bounds(NAME, value, axis, size, where, mode)
    return rows


def dequantize(
    spec: Spec,
    data: NumpyArray,
    rows: NDArray[np.int64],
    scales: NumpyArray,
    zero_points: NumpyArray | None,
    out: NumpyArray,
) -> None:
    """Write the numbered rows to a contiguous array."""
    if not all(
        operand is None or operand.flags.c_contiguous for operand in (data, scales, zero_points)
    ):
        spec, data, rows, scales, zero_points = _contiguous_call(
            spec, data, rows, scales, zero_points
        )
    pins = conversion.pinned(data, scales, zero_points)
    native.dequantize(data, scales, zero_points, rows, out, *_core_arguments(spec))
    del pins


@lru_cache(256)
def _core_arguments(spec: Spec) -> tuple[Any, ...]:
    """Return the core's arguments after the arrays: see ``gatherum_quantized`` in gatherum.h."""
    codes = spec.codes
    types = codes.value, spec.scale, spec.result
    return *types, codes.bits, codes.in_byte > 1, codes.zero, *spec.sizes()


def _contiguous_call(
    spec: Spec,
    data: NumpyArray,
    rows: NDArray[np.int64],
    scales: NumpyArray,
    zero_points: NumpyArray | None,
) -> tuple[Spec, NumpyArray, NDArray[np.int64], NumpyArray, NumpyArray | None]:
    """Return an equivalent call on contiguous arrays that contain only the rows."""
    axis = spec.axis
    if spec.divides_bytes:
        zeros = None if zero_points is None else np.ascontiguousarray(zero_points)
        return spec, np.ascontiguousarray(data), rows, np.ascontiguousarray(scales), zeros
    slice_numbers, block_numbers, row_numbers = parts_of(spec, rows)
    zeros = None if zero_points is None else apply("gather", zero_points, block_numbers, axis=axis)
    slices = apply("gather", data, slice_numbers, axis=axis)
    factors = apply("gather", scales, block_numbers, axis=axis)
    return spec.of_rows(slice_numbers.size), slices, row_numbers, factors, zeros


def parts_of(spec: Spec, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return the slices of the data and of the scales that contain some rows, and the number of
    each row among these slices, -1 for a filled row.
    """
    flat = rows.reshape(-1)
    slice_numbers = np.maximum(flat, 0)[: flat.size if spec.rows else 0]
    block_numbers = (
        slice_numbers // spec.block_size if spec.quantize_axis == spec.axis else slice_numbers
    )
    return slice_numbers, block_numbers, np.where(flat < 0, -1, np.arange(flat.size))
