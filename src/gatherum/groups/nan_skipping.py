"""Reduce the values of groups that are not NaN, without a separate group number for each value."""

from __future__ import annotations

import numpy as np

from gatherum._model.call import Array
from gatherum._model.dtypes import is_reducible

from .grouping import Grouping


def fold(
    reduction: str, values: Array, grouping: Grouping, initial: Array, ddof: int
) -> Array | None:
    """Return the left fold of the values that are not NaN, or None if no single call does this."""
    return grouping.fold_skipping_nan(values, reduction, initial)


def count(values: Array, grouping: Grouping, initial: Array, ddof: int) -> Array | None:
    """Return the numbers of values that are not NaN, or None unless groups have several values."""
    if grouping.has_entry_per_value or not isinstance(values, np.ndarray):
        return None
    if values.dtype.kind == "c" or not is_reducible(values.dtype, "mean"):
        return None
    counts = grouping.count() - _masked_counts(np.isnan(values), grouping)
    return np.where(counts == 0, initial, counts)


def _masked_counts(mask: Array, grouping: Grouping) -> Array:
    """Return the number of masked values of each group."""
    most = int(grouping.count().max(initial=0))
    narrow = np.min_scalar_type(most)  # a narrow integer is faster to read
    numbers = mask.view(np.uint8) if narrow == np.uint8 else mask.astype(narrow)
    counts: Array = grouping.scatter(numbers, "add", grouping.zero(numbers))
    return counts.astype(np.int64)
