"""The reductions: folds of the updates of one element."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from .items import Array, DType, Items, Position, as_bytes, typed

REDUCTIONS = ("none", "add", "mul", "max", "min", "mean", "fsum", "fmean")

INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
HALVES = frozenset({"float16", "bfloat16"})
FLOATS = frozenset({"float32", "float64"})
COMPLEXES = frozenset({"complex64", "complex128"})
# The reductions that round once, and the number of significand and exponent bits of each dtype.
EXACT = frozenset({"fsum", "fmean"})
FORMS = {"float16": (11, 5), "bfloat16": (8, 8), "float32": (24, 8), "float64": (53, 11)}


def check_reducible(op: str, dtype: DType, reduction: str) -> None:
    """Raise TypeError for a dtype that a reduction is not defined for."""
    if reduction == "none":
        return
    allowed = HALVES | FLOATS
    if reduction not in ("max", "min"):
        allowed |= COMPLEXES
    if reduction not in EXACT:
        allowed |= INTEGERS
    if reduction not in ("mean", *EXACT):
        allowed |= {"bool"}
    if dtype.name not in allowed or not dtype.isnative:
        raise TypeError(f"{op}: `data` of dtype {dtype} does not reduce with {reduction!r}")


def scattered(
    op: str, data: Array, arrivals: dict[Position, Items], reduction: str, include_self: bool
) -> Array:
    """Copy `data` and reduce the updates of each element into it, in their order."""
    out = np.array(as_bytes(data), order="C")
    for address, items in arrivals.items():
        if reduction == "none":
            item = items[-1]
        elif include_self:
            item = folded([out[address].tobytes(), *items], data.dtype, reduction)
        else:
            item = folded(items, data.dtype, reduction)
        out[address] = np.void(item)
    return typed(out, data.dtype)


def folded(items: Items, dtype: DType, reduction: str) -> bytes:
    """Compute the left fold of items. If nothing is rounded, a single item keeps its bits."""
    if reduction in EXACT:
        return _folded_exactly(items, dtype, reduction)
    if len(items) == 1 and reduction != "mean":
        return items[0]
    if dtype.name == "bool":
        truths = [item != b"\0" for item in items]
        return bytes([any(truths) if reduction in ("add", "max") else all(truths)])
    values = list(np.frombuffer(b"".join(items), dtype=dtype))
    if dtype.name in INTEGERS:
        return _folded_integers([int(value) for value in values], dtype, reduction)
    with np.errstate(all="ignore"):
        if dtype.name in COMPLEXES:
            return _folded_complex(values, reduction)
        if dtype.name in HALVES:
            values = [np.float32(value) for value in values]
        return _canonical(_folded_floats(values, reduction), dtype)


def _folded_exactly(items: Items, dtype: DType, reduction: str) -> bytes:
    """Add real numbers without rounding, and complex numbers by components."""
    if dtype.name in COMPLEXES:
        half = np.dtype(f"float{4 * dtype.itemsize}")
        parts = [np.frombuffer(item, half) for item in items]
        components = ([part[i].tobytes() for part in parts] for i in range(2))
        return b"".join(_folded_exactly(component, half, reduction) for component in components)
    values = [float(value) for value in np.frombuffer(b"".join(items), dtype=dtype)]
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < len(values):
        special = set(values) - set(finite)
        return _canonical(special.pop() if len(special) == 1 else math.nan, dtype)
    if all(value == 0 and math.copysign(1, value) < 0 for value in values):
        return _canonical(-0.0, dtype)
    total = sum(map(Fraction, values), Fraction(0))
    return _canonical(nearest(total / len(values) if reduction == "fmean" else total, dtype), dtype)


def nearest(value: Fraction, dtype: DType) -> float:
    """Round to the nearest number of the dtype, ties to even."""
    significand, exponent = FORMS[dtype.name]
    largest = 2 ** (exponent - 1) - 1
    size = abs(value)
    if size == 0:
        return 0.0
    # The exponent of the number, and the exponent of the last bit that is kept.
    scale = size.numerator.bit_length() - size.denominator.bit_length()
    scale -= size < Fraction(2) ** scale
    last = max(scale, 1 - largest) - (significand - 1)
    kept = round(size / Fraction(2) ** last)  # ties to even
    if kept * Fraction(2) ** last >= 2 ** (largest + 1):
        rounded = math.inf
    else:
        rounded = math.ldexp(kept, last)
    return -rounded if value < 0 else rounded


def _folded_integers(values: list[int], dtype: DType, reduction: str) -> bytes:
    """Compute without bounds and wrap at the end, which is equivalent to wrapping at each step."""
    signed = dtype.kind == "i"
    if reduction == "mean":
        result = _wrapped(sum(values), 64, signed) // len(values)
    elif reduction == "add":
        result = sum(values)
    elif reduction == "mul":
        result = math.prod(values)
    elif reduction in ("max", "min"):
        result = max(values) if reduction == "max" else min(values)
    else:
        raise NotImplementedError(reduction)
    return np.array(_wrapped(result, 8 * dtype.itemsize, signed), dtype=dtype).tobytes()


def _wrapped(value: int, bits: int, signed: bool) -> int:
    value %= 2**bits
    return value - 2**bits if signed and value >= 2 ** (bits - 1) else value


def _folded_floats(values: list[Any], reduction: str) -> Any:
    total = values[0]
    for value in values[1:]:
        if reduction in ("add", "mean"):
            total = total + value
        elif reduction == "mul":
            total = total * value
        elif reduction in ("max", "min"):
            total = _extreme(total, value, largest=reduction == "max")
        else:
            raise NotImplementedError(reduction)
    return total / type(total)(len(values)) if reduction == "mean" else total


def _extreme(first: Any, second: Any, largest: bool) -> Any:
    """Return the IEEE 754-2019 maximum or minimum: NaN wins, and -0 is below +0."""
    if np.isnan(first) or np.isnan(second):
        return first if np.isnan(first) else second
    if first == second:
        return first if np.signbit(first) != largest else second
    return first if (first > second) == largest else second


def _folded_complex(values: list[Any], reduction: str) -> bytes:
    """Fold complex numbers with separate operations in the component type, without fusion."""
    real, imag = values[0].real, values[0].imag
    for value in values[1:]:
        if reduction == "mul":
            ac, bd = real * value.real, imag * value.imag
            ad, bc = real * value.imag, imag * value.real
            real, imag = ac - bd, ad + bc
        else:
            real, imag = real + value.real, imag + value.imag
    if reduction == "mean":
        count = type(real)(len(values))
        real, imag = real / count, imag / count
    return _canonical(real, real.dtype) + _canonical(imag, imag.dtype)


def _canonical(value: Any, dtype: DType) -> bytes:
    """Round to `dtype` once. Every NaN becomes the canonical quiet NaN, of sign 0 and payload 0."""
    return np.array(np.float32("nan") if np.isnan(value) else value).astype(dtype).tobytes()
