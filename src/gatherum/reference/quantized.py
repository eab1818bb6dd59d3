"""`gather_quantized`, as one loop over the values of the result."""

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .arguments import as_array, as_axis, as_indices, check_boolean, check_choice
from .items import Array, Position, blank, typed
from .positions import MODES, resolve_all

__all__ = ["gather_quantized"]

OP = "gather_quantized"
INTEGERS = {"uint8": 8, "int8": 8, "uint4": 4, "int4": 4, "uint2": 2, "int2": 2}
# The fraction bits and the exponent bias of small floats.
FLOATS = {"float8_e4m3fn": (3, 7), "float8_e5m2": (2, 15)}
SCALES = ("float32", "float16", "bfloat16", "float8_e8m0fnu")
RESULTS = ("float32", "float16", "bfloat16")


def gather_quantized(
    data: ArrayLike,
    indices: ArrayLike,
    scales: ArrayLike,
    zero_points: ArrayLike | None = None,
    *,
    axis: int = 0,
    quantize_axis: int = -1,
    block_size: int,
    bits: int | None = None,
    dtype: DTypeLike = "float32",
    mode: str = "raise",
    negative: bool = True,
) -> Array:
    """Take slices of quantized values along `axis`, and dequantize them.

    ``out[a.., i.., s..] = round((values[p] - zero_points[b]) * scales[b])`` with
    ``p = [a.., indices[i..], s..]``, and b equal to p except for
    ``b[quantize_axis] = p[quantize_axis] // block_size``.

    Examples
    --------
    >>> gather_quantized(np.array([[1, 2], [3, -4]], np.int8), [1],
    ...                  np.array([[0.5], [2.0]], np.float32), block_size=2)
    array([[ 6., -8.]], dtype=float32)
    """
    table, positions = as_array(OP, "data", data), as_indices(OP, indices)
    factors = as_array(OP, "scales", scales)
    zeros = None if zero_points is None else as_array(OP, "zero_points", zero_points)
    block, result = operator.index(block_size), np.dtype(dtype)
    if block < 1:
        raise ValueError(f"{OP}: `block_size` must be at least 1, got {block}")
    check_choice(OP, "mode", mode, MODES)
    check_boolean(OP, "negative", negative)
    bits = _check_types(table, factors, zeros, result, bits)
    if positions.dtype.kind not in "iu":
        raise TypeError(f"{OP}: `indices` must have an integer dtype, got {positions.dtype}")
    axis, q = as_axis(OP, axis, table.ndim), as_axis(OP, quantize_axis, table.ndim)
    if table.ndim == 0:
        raise ValueError(f"{OP}: there is no dimension to index")

    codes = _unpacked(table, bits)
    blocks = (*codes.shape[:q], math.ceil(codes.shape[q] / block), *codes.shape[q + 1 :])
    if factors.shape != blocks:
        raise ValueError(f"{OP}: `scales` must have shape {blocks}, got {factors.shape}")
    zero_codes = _zero_points(table, codes, zeros, blocks, bits)
    before, after = codes.shape[:axis], codes.shape[axis + 1 :]
    out = typed(blank(OP, before + positions.shape + after, result), result)
    rows = resolve_all(OP, codes, positions, lambda position: axis, mode=mode, negative=negative)
    name = table.dtype.name
    for a in np.ndindex(before):
        for i in np.ndindex(positions.shape):
            if rows[i] is None:
                continue
            for s in np.ndindex(after):
                p: Any = (*a, rows[i], *s)
                b = (*p[:q], p[q] // block, *p[q + 1 :])
                zero = 0.0 if name in FLOATS else _value(zero_codes[b], name, bits)
                _store(out, a + i + s, _value(codes[p], name, bits) - zero, _scale(factors[b]))
    return out


def _check_types(
    data: Array, scales: Array, zeros: Array | None, result: np.dtype[Any], bits: int | None
) -> int:
    name = data.dtype.name
    if name not in INTEGERS and name not in FLOATS:
        raise TypeError(f"{OP}: `data` must be quantized, got {data.dtype}")
    width = INTEGERS.get(name, 8)
    bits = width if bits is None else operator.index(bits)
    if bits not in ((2, 4, 8) if name in ("uint8", "int8") else (width,)):
        raise ValueError(f"{OP}: `bits` is {bits}")
    if scales.dtype.name not in SCALES or not scales.dtype.isnative:
        raise TypeError(f"{OP}: `scales` must be one of {SCALES}, got {scales.dtype}")
    if result.name not in RESULTS:
        raise TypeError(f"{OP}: `dtype` must be one of {RESULTS}, got {result}")
    if zeros is not None and (name in FLOATS or zeros.dtype != data.dtype):
        raise TypeError(f"{OP}: `zero_points` must not be {zeros.dtype}")
    return bits


def _zero_points(
    data: Array, codes: Array, zeros: Array | None, blocks: tuple[int, ...], bits: int
) -> Array:  # fmt: skip
    """Return the code of the zero point of each block."""
    if zeros is None:
        return np.full(blocks, 1 << bits - 1 if data.dtype.name == "uint8" else 0, np.uint8)
    in_byte = codes.shape[-1] // max(data.shape[-1], 1) or 1
    if zeros.shape != (*blocks[:-1], math.ceil(blocks[-1] / in_byte)):
        raise ValueError(f"{OP}: `zero_points` must have one for each scale")
    return _unpacked(zeros, bits)


def _unpacked(data: Array, bits: int) -> Array:
    """Return a code for each value; the first values of a byte are in its lowest bits."""
    bytes_of_data = data.view(np.uint8)
    if data.dtype.name not in ("uint8", "int8") or bits == 8:
        return bytes_of_data
    parts = [bytes_of_data >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(*data.shape[:-1], data.shape[-1] * len(parts))


def _value(code: Any, name: str, bits: int) -> float:
    """Decode a code to its number."""
    bit_pattern = int(code) & (1 << bits) - 1
    if name in INTEGERS:
        negative = name.startswith("int") and bit_pattern >> bits - 1
        return bit_pattern - (1 << bits) if negative else bit_pattern
    fraction, bias = FLOATS[name]
    sign, magnitude = -1.0 if bit_pattern >> 7 else 1.0, bit_pattern & 0x7F
    exponent, significand = magnitude >> fraction, magnitude & (1 << fraction) - 1
    if name == "float8_e4m3fn" and magnitude == 0x7F:
        return math.nan
    if name == "float8_e5m2" and exponent == 0x1F:
        return math.nan if significand else sign * math.inf
    if exponent:
        significand += 1 << fraction
    return sign * math.ldexp(significand, max(exponent, 1) - bias - fraction)


def _scale(item: Any) -> float:
    name = item.dtype.name
    if name in ("float32", "float16"):
        return float(item)
    if name == "bfloat16":
        return float((np.asarray(item).view(np.uint16).astype(np.uint32) << 16).view(np.float32))
    code = int(np.asarray(item).view(np.uint8))
    return math.nan if code == 255 else math.ldexp(1.0, code - 127)


def _store(out: Array, where: Position, value: float, scale: float) -> None:
    """Round the product to float32, then to the dtype of `out`; every NaN becomes canonical."""
    with np.errstate(all="ignore"):
        product = np.float32(value) * np.float32(scale)
        if np.isnan(product):
            product = np.float32(math.nan)
        if out.dtype.name != "bfloat16":
            out[where] = product
            return
    code = int(product.view(np.uint32))
    upper, lower = code >> 16, code & 0xFFFF
    if lower > 0x8000 or (lower == 0x8000 and upper % 2):
        upper += 1
    out.view(np.uint16)[where] = upper
