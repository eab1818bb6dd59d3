"""The dtypes that functions over groups accept, compute in and return."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gatherum._model.dtypes import AnyDType, accumulator_dtype, is_reducible

from .dates import is_date, not_a_date


def orders(extreme: str) -> Callable[[AnyDType], bool]:
    """Return a predicate: whether a dtype is a native date, or `extreme` is defined for it."""
    return lambda dtype: is_reducible(dtype, extreme) or (is_date(dtype) and dtype.isnative)


def reduces(*reductions: str) -> Callable[[AnyDType], bool]:
    """Return a predicate: whether all of these reductions are defined for a dtype."""
    return lambda dtype: all(is_reducible(dtype, reduction) for reduction in reductions)


def anything(dtype: AnyDType) -> bool:
    """Accept every dtype."""
    return True


def nothing(dtype: AnyDType) -> bool:
    """Accept no dtype."""
    return False


def same(dtype: AnyDType) -> AnyDType:
    """Return the dtype of the values."""
    return dtype


def always(item_type: type) -> Callable[[AnyDType], AnyDType]:
    """Return a function that maps every dtype to one dtype."""
    return lambda dtype: np.dtype(item_type)


def working_dtype(dtype: AnyDType) -> AnyDType:
    """Return the dtype in which variances and transforms are computed.

    It is float32 for half precision, float64 for integers, and otherwise the dtype of the values.
    """
    if dtype.kind in "iu":
        return np.dtype(np.float64)
    return accumulator_dtype(dtype, "mean")  # type: ignore[arg-type]  # it may be an Extension


def transformed_dtype(dtype: AnyDType) -> AnyDType:
    """Return the dtype of a transform's result: float64 for integers, or else the values' dtype."""
    return np.dtype(np.float64) if dtype.kind in "iu" else dtype


def spread_dtype(dtype: AnyDType) -> AnyDType:
    """Return the dtype of a variance: float64 for integers, real for complex numbers."""
    if dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    return transformed_dtype(dtype)


def not_a_number(dtype: AnyDType) -> complex | np.generic:
    """Return NaN as a Python number, in both parts for complex dtypes; NaT for dates."""
    if is_date(dtype):
        return not_a_date(dtype)
    return complex(np.nan, np.nan) if dtype.kind == "c" else np.nan
