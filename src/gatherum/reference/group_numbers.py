"""How the items of groups are treated as numbers: dtypes, NaN and rounding."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from .items import Array, DType
from .reductions import COMPLEXES, FLOATS, HALVES, INTEGERS, folded, nearest

NUMBERS = INTEGERS | HALVES | FLOATS | COMPLEXES


def nan_item(dtype: DType) -> Array | None:
    """Return NaN (in both parts of a complex number) or NaT, or None if the dtype has neither."""
    if dtype.kind in "mM":
        least = np.array(np.iinfo(np.int64).min)  # in NumPy 2.5, "NaT" without a unit warns
        return least.view(dtype.newbyteorder("=")).astype(dtype)
    if dtype.kind not in "fc" and not dtype.name.startswith(("float", "bfloat")):
        return None
    item = np.zeros((), dtype)
    item[()] = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan
    return item if is_nan(item.tobytes(), dtype) else None


def wide_dtype(dtype: DType) -> DType:
    """Return the dtype of sums that are not reductions of the operators."""
    if dtype.name in INTEGERS:
        return np.dtype(np.float64)
    return np.dtype(np.float32) if dtype.name in HALVES else dtype


def as_dtype(operand: str, array: Array, target: DType) -> Array:
    """Convert an array. Raise ValueError for a float outside the range of an integer dtype."""
    if target.kind in "iu" and array.dtype.name in HALVES | FLOATS:
        limits = np.iinfo(target)
        for position in np.ndindex(array.shape):
            number = float(array[position])
            if not math.isfinite(number) or not limits.min <= int(number) <= limits.max:
                where = f"{operand}[{', '.join(map(str, position))}]"
                raise ValueError(f"groups.reduce: `dtype`, {target}, got {number} ({where})")
    return array.astype(target)


def real_dtype(dtype: DType) -> DType:
    """Return the real dtype of the parts of complex numbers."""
    return np.dtype({"complex64": "f4", "complex128": "f8"}.get(dtype.name, dtype))


def number_of(item: bytes, dtype: DType, wide: DType) -> Any:
    """Return the numeric value of an item, converted to a dtype."""
    return np.frombuffer(item, dtype)[0].astype(wide)


def is_nan(item: bytes, dtype: DType) -> bool:
    """Whether an item is NaN or NaT."""
    if dtype.kind in "mM":
        return bool(np.isnat(np.frombuffer(item, dtype)[0]))
    if dtype.kind not in "fc" and not dtype.name.startswith(("float", "bfloat")):
        return False
    (value,) = np.frombuffer(item, dtype)
    with np.errstate(all="ignore"):  # a signaling NaN
        return bool(value != value)  # noqa: PLR0124  # also for complex numbers


def fold_of(values: list[Any], wide: DType, reduction: str) -> Any:
    """Return the left fold of numbers in a dtype."""
    items = [np.asarray(value, wide).tobytes() for value in values]
    return np.frombuffer(folded(items, wide, reduction), wide)[0]


def root_of(square: Any, dtype: DType) -> Any:
    """Return the square root of a nonnegative number, rounded once to a dtype."""
    if not math.isfinite(square):
        return square
    shift = 700  # the root of the least number then has more digits than any dtype
    exact = Fraction(float(square)) * 4**shift
    root = math.isqrt(exact.numerator // exact.denominator)
    twice = 2 * root + (Fraction(root) ** 2 != exact)
    return nearest(Fraction(twice, 2 ** (shift + 1)), dtype)


def rounded(value: Any, dtype: DType) -> Array:
    """Round once. Every NaN becomes the canonical quiet NaN, of sign 0 and payload 0."""
    if dtype.kind == "c":
        out = np.empty((), dtype)
        real = real_dtype(dtype)
        out.real, out.imag = rounded(value.real, real), rounded(value.imag, real)
        return out
    if np.isnan(value):
        return np.asarray(np.float32("nan")).astype(dtype)
    if dtype.name in HALVES and math.isfinite(value) and value != 0:
        value = nearest(Fraction(float(value)), dtype)
    return np.asarray(value).astype(dtype)
