"""Quantiles, numbers of distinct values and most frequent values of one group, as plain loops."""

import math
from typing import Any

import numpy as np

from .group_numbers import is_nan, number_of, rounded
from .items import DType, Items
from .reductions import INTEGERS

ORDERS = ("quantile", "median", "nunique", "mode")
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
INTERPOLATED = ("linear", "midpoint")


def quantile(items: Items, dtype: DType, q: float, method: str) -> bytes:
    """Return NumPy's quantile of the values of a group, for q as a Python float."""
    ranked = _ranked(items, dtype)
    is_integer = dtype.name in INTEGERS
    result = np.dtype(np.float64) if is_integer and method in INTERPOLATED else dtype
    last = len(ranked) - 1
    if is_nan(ranked[last], dtype):
        return rounded(np.nan, result).tobytes()
    position = last * float(q)
    floor = math.floor(position)
    if method not in INTERPOLATED:
        place = {"lower": floor, "higher": math.ceil(position), "nearest": round(position)}[method]
        return ranked[place]
    fraction = position - floor
    if method == "midpoint":
        fraction = 0.5 if fraction > 0 else 0.0
    elif position >= last:
        fraction = floor + 1.0  # NumPy counts the last place as -1
    low, high = (ranked[min(i, last)] for i in (floor, floor + 1))
    with np.errstate(all="ignore"):
        if is_integer:
            low_number, high_number = (int(number_of(item, dtype, dtype)) for item in (low, high))
            a, b = np.float64(low_number), np.float64(high_number)
            away = np.float64(high_number - low_number)
        else:
            a, b = (number_of(item, dtype, dtype) for item in (low, high))
            away = b - a
        if fraction >= 0.5:
            return rounded(b - away * rounded(1 - fraction, result)[()], result).tobytes()
        return rounded(a + away * rounded(fraction, result)[()], result).tobytes()


def nunique(items: Items, dtype: DType) -> int:
    """Return the number of distinct values. NaN equals NaN, and 0 equals -0."""
    return len({key_of(item, dtype) for item in items})


def mode(items: Items, dtype: DType) -> bytes:
    """Return the smallest of the most frequent values, where NaN is the largest."""
    keys = [key_of(item, dtype) for item in items]
    most = max(keys.count(key) for key in keys)
    frequent = min(key for key in keys if keys.count(key) == most)
    return items[keys.index(frequent)]


def _ranked(items: Items, dtype: DType) -> Items:
    return sorted(items, key=lambda item: key_of(item, dtype))


def key_of(item: bytes, dtype: DType) -> Any:
    """Return a tuple that orders items as numbers, with NaN after all other values."""
    if dtype.name == "bool":
        return (False, item != b"\0")
    if is_nan(item, dtype):
        return (True, 0)
    if dtype.kind in "mM":
        return (False, int(np.frombuffer(item, np.int64)[0]))
    value = np.frombuffer(item, dtype)[0]
    return (False, int(value) if dtype.kind in "iu" else float(value))
