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
    is_plain = isinstance(values, np.ndarray) and values.dtype.name in _FLOATS
    if row.locates:
        return _positions(row, values, grouping, initial) if is_plain else None
    if initial is None:
        return None
    if row.folds and row.reduction is not None:
        return grouping.without_nan(values, row.reduction, initial)
    if row.name in ("var", "std"):
        return spreads.variance_of_numbers(row.name == "std", values, grouping, initial, ddof)
    return _of_floats(row, values, grouping, initial) if is_plain else None


def _positions(
    row: FunctionRow, values: Array, grouping: Grouping, initial: Array | None
) -> Array | None:
    """Return the positions of extremes; None if the framework has other steps, or for an error."""
    nowhere = -1 if initial is None else initial
    positions = grouping.position(row.extreme, values, nowhere, skips_nan=True)
    is_error = positions is not None and initial is None and (positions < 0).any()
    return None if is_error else positions


def _of_floats(row: FunctionRow, values: Array, grouping: Grouping, initial: Array) -> Array | None:
    """Return copies of values, or counts, of a NumPy array of floats."""
    if row.method is Method.SELECTION:
        return grouping.without_nan(values, "none", initial, reverses=row.reduction is None)
    if row.method is not Method.COUNT or grouping.elements:
        return None
    counts: Array | None = grouping.numbers(values)
    if counts is None:
        counts = grouping.count() - _masked(np.isnan(values), grouping)
    return grouping.xp.replaced(counts, counts == 0, initial) if initial != 0 else counts


def _masked(left_out: Array, grouping: Grouping) -> Array:
    """Return the number of masked values of each group."""
    most = int(grouping.count().max(initial=0))
    narrow = np.min_scalar_type(most)  # a narrow integer is faster to read
    numbers = left_out.view(np.uint8) if narrow == np.uint8 else left_out.astype(narrow)
    counts: Array = grouping.scatter(numbers, "add", grouping.zero(numbers))
    return counts.astype(np.int64)
