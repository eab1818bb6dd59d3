"""`Spec` describes a gather of quantized rows: its checked attributes, types and shapes."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from gatherum._arguments import plain_values
from gatherum._model import shape_limits
from gatherum._model.errors import Shape, other_dtype, out_of_range
from gatherum._model.modes import MODES
from gatherum._model.operators import OPERATORS

from . import errors
from .formats import BITS, CODES, NAME, PACKS, RESULTS, SCALES, Codes, result_name


class QuantizedAttributes(NamedTuple):
    """The arguments that are not arrays."""

    axis: int
    quantize_axis: int
    block_size: int
    bits: int | None
    result: str
    mode: str
    negative: bool


class Spec(NamedTuple):
    """A call without its data.

    Attributes
    ----------
    values : tuple of int
        The shape of the values: the shape of the data, unless a byte holds several values.
    axis, quantize_axis : int
        Nonnegative axes.
    block_size : int
        The number of values that share a scale, at most the size of the axis.
    codes : Codes
        The storage format of the values.
    scale, result : str
        The names of the types of the scales and of the result.
    """

    values: Shape
    axis: int
    quantize_axis: int
    block_size: int
    codes: Codes
    scale: str
    result: str

    @property
    def rows(self) -> int:
        """The size of the gathered dimension."""
        return self.values[self.axis]

    @property
    def scales(self) -> Shape:
        """The shape of the scales."""
        axis = self.quantize_axis
        blocks = -(-self.values[axis] // self.block_size)
        return (*self.values[:axis], blocks, *self.values[axis + 1 :])

    @property
    def zero_points(self) -> Shape:
        """The shape of the zero points, packed like the data."""
        *leading, last = self.scales
        return (*leading, -(-last // self.codes.in_byte))

    def result_shape(self, indices: Shape) -> Shape:
        """Return the shape of the result for a shape of indices."""
        return OPERATORS["gather"].addressing.moved_shape(NAME, self.values, indices, self.axis)

    @property
    def divides_bytes(self) -> bool:
        """Whether a row is smaller than a byte, so that one byte holds several rows."""
        return self.codes.in_byte > 1 and self.axis == len(self.values) - 1

    def of_rows(self, count: int) -> Spec:
        """Return the spec of a call on the slices of `count` rows."""
        axis = self.axis
        values = (*self.values[:axis], count, *self.values[axis + 1 :])
        block_size = 1 if self.quantize_axis == axis else self.block_size
        return self._replace(values=values, block_size=block_size)

    def sizes(self) -> tuple[Any, ...]:
        """Return the sizes of the core's loops.

        These are the sizes of the dimensions before the gathered dimension, of the gathered
        dimension and of the dimensions after it; the block size in each of the three; and the size
        of the scales' last dimension.
        """
        before, rows, after = self.values[: self.axis], self.rows, self.values[self.axis + 1 :]
        quantize_axis, block_size = self.quantize_axis, self.block_size
        outer, inner, blocks = (prod(before), 1, 1), (1, 1, prod(after)), (1, 1, 1)
        if quantize_axis < self.axis:
            outer, blocks = _around(before, quantize_axis), (block_size, 1, 1)
        elif quantize_axis == self.axis:
            blocks = (1, block_size, 1)
        elif block_size > 1:  # else each value of a row has a separate scale
            inner, blocks = _around(after, quantize_axis - self.axis - 1), (1, 1, block_size)
        return outer, rows, inner, blocks, self.scales[-1]


def _around(shape: Shape, dimension: int) -> tuple[int, int, int]:
    """Return the number of positions before a dimension, in it, and after it."""
    return prod(shape[:dimension]), shape[dimension], prod(shape[dimension + 1 :])


def as_attributes(
    axis: object,
    quantize_axis: object,
    block_size: object,
    bits: object,
    dtype: object,
    mode: object,
    negative: object,
) -> QuantizedAttributes:
    """Convert the arguments that are not arrays to plain values."""
    block_size = plain_values.as_size(NAME, "block_size", block_size, 1)
    result = result_name(dtype)
    if result is None:
        raise errors.other_type("dtype", RESULTS, repr(dtype))
    return QuantizedAttributes(
        plain_values.as_integer(NAME, "axis", axis),
        plain_values.as_integer(NAME, "quantize_axis", quantize_axis),
        block_size,
        None if bits is None else plain_values.as_integer(NAME, "bits", bits),
        result,
        plain_values.as_choice(NAME, "mode", mode, MODES),
        plain_values.as_boolean(NAME, "negative", negative),
    )


def codes_of(dtype: str, bits: int | None) -> Codes:
    """Return the storage format of the values for the name of the data's dtype and `bits`."""
    if dtype not in CODES:
        raise errors.other_type("data", CODES, dtype)
    value, default_bits = CODES[dtype]
    choices = BITS if dtype in PACKS else (default_bits,)
    bits = default_bits if bits is None else bits
    if bits not in choices:
        raise errors.other_bits(dtype, choices, bits)
    # As documented by ONNX Runtime: 2 ** (bits - 1) for uint8, 0 for types of fewer bits.
    zero = float(1 << bits - 1) if dtype == "uint8" else 0.0
    return Codes(value, bits, default_bits // bits if dtype in PACKS else 1, zero)


def spec_of(
    attributes: QuantizedAttributes,
    data: tuple[Shape, str],
    scales: tuple[Shape, str],
    zero_points: tuple[Shape, str] | None,
) -> Spec:
    """Check the types, by their names in NumPy, and the shapes. Return the spec of a call."""
    shape, dtype = data
    codes = codes_of(dtype, attributes.bits)
    if scales[1] not in SCALES:
        raise errors.other_type("scales", SCALES, scales[1])
    if zero_points is not None:
        _check_zero_points(dtype, codes, zero_points[1])
    shape_limits.check_rank(NAME, "`data`", len(shape))
    axis = shape_limits.resolve_axis(NAME, shape, attributes.axis)
    rank, quantize_axis = len(shape), attributes.quantize_axis
    if not -rank <= quantize_axis < rank:
        raise out_of_range(NAME, "quantize_axis", quantize_axis, -rank, rank)
    quantize_axis %= rank
    values = (*shape[:-1], shape[-1] * codes.in_byte)
    shape_limits.check_size(NAME, "data", values, 1)
    block_size = min(attributes.block_size, max(values[quantize_axis], 1))
    spec = Spec(values, axis, quantize_axis, block_size, codes, scales[1], attributes.result)
    if scales[0] != spec.scales:
        raise errors.other_scales(
            spec.scales, scales[0], values, quantize_axis, attributes.block_size
        )
    if zero_points is not None and zero_points[0] != spec.zero_points:
        raise errors.other_zero_points(spec.zero_points, zero_points[0], codes.in_byte)
    return spec


def _check_zero_points(dtype: str, codes: Codes, found: str) -> None:
    if codes.value not in PACKS:
        raise errors.no_zero_points(dtype)
    if found != dtype:
        raise other_dtype(NAME, "zero_points", dtype, found)
