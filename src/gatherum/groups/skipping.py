"""Reduce groups without NaN, for functions that need no separate group number for each value."""

from __future__ import annotations

import numpy as np

from gatherum._model.call import Array

from . import spreads
from .grouping import Grouping
from .rows import FunctionRow, Method

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def skipping(
    row: FunctionRow, values: Array, grouping: Grouping, initial: Array | None, ddof: int
) -> Array | None:
    """Return the result of a function that skips NaN, or None if it needs other steps.

    `initial` is the result of empty groups.
    """
    if initial is None:
        return None
    if row.folds and row.reduction is not None:
        return grouping.without_nan(values, row.reduction, initial)
    if row.name in ("var", "std"):
        return spreads.variance_of_numbers(row.name == "std", values, grouping, initial, ddof)
    if row.method is not Method.COUNT or grouping.elements or not isinstance(values, np.ndarray):
        return None
    if values.dtype.name not in _FLOATS:
        return None
    counts = grouping.count() - _masked(np.isnan(values), grouping)
    return np.where(counts == 0, initial, counts)


def _masked(left_out: Array, grouping: Grouping) -> Array:
    """Return the number of masked values of each group."""
    most = int(grouping.count().max(initial=0))
    narrow = np.min_scalar_type(most)  # a narrow integer is faster to read
    numbers = left_out.view(np.uint8) if narrow == np.uint8 else left_out.astype(narrow)
    counts: Array = grouping.scatter(numbers, "add", grouping.zero(numbers))
    return counts.astype(np.int64)
