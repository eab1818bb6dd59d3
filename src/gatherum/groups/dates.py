"""Dates as integers of the same order, of which NaT is the extreme that wins as NaN does."""

from __future__ import annotations

import numpy as np

from gatherum._derivatives.array_ops import Array
from gatherum._model.dtypes import AnyDType, DType


def is_date(dtype: AnyDType) -> bool:
    """Whether values of the dtype are dates or spans of time, of which one is NaT."""
    return dtype.kind in "mM"


def as_integers(values: Array, extreme: str) -> Array:
    """Return dates as integers of which NaT is the extreme.

    NaT is the least int64, and so the minimum. For "max", 1 is subtracted from each integer, and
    NaT wraps around to the largest.
    """
    integers = values.view(np.int64)
    return integers - 1 if extreme == "max" else integers


def as_dates(integers: Array, extreme: str, dtype: DType) -> Array:
    """Return the dates of integers that `as_integers` gave."""
    return (integers + 1 if extreme == "max" else integers).view(dtype)
