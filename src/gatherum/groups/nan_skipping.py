"""Reduce the values of groups that are not NaN, without a separate group number for each value.

The values are real floats: `evaluation.run_function` calls these functions for no others. The core
decides whether it has a kernel for a call.
"""

from __future__ import annotations

import numpy as np

from gatherum._model.arrays import AnyArray, NumpyArray
from gatherum._model.dtypes import neutral_item

from . import compositions
from .grouping import Grouping

BLOCK = 1 << 15  # items whose copies stay in the processor's cache


def fold(
    reduction: str, values: AnyArray, grouping: Grouping, initial: NumpyArray, ddof: int
) -> NumpyArray | None:
    """Return the left fold of the values that are not NaN, or None if no single call does this."""
    return grouping.fold_skipping_nan(values, reduction, initial)


def select(
    values: AnyArray, grouping: Grouping, initial: NumpyArray, ddof: int, *, reverses: bool
) -> NumpyArray | None:
    """Return the last value of each group that is not NaN, or, if `reverses`, the first one.

    Return None if no single call does this.
    """
    if not grouping.xp.runs_nan_forms:
        return None
    return grouping.fold_skipping_nan(values, "none", initial, reverses=reverses)


def position(
    extreme: str, values: AnyArray, grouping: Grouping, initial: NumpyArray | None, ddof: int
) -> NumpyArray | None:
    """Return the argmax or argmin of the values that are not NaN.

    Return None if no single call does this, or if `initial` is None and a group has no such values.
    """
    no_position = -1 if initial is None else initial
    positions = grouping.positions_of_extremes(extreme, values, no_position, skips_nan=True)
    is_error = positions is not None and initial is None and (positions < 0).any()
    return None if is_error else positions


def count(
    values: AnyArray, grouping: Grouping, initial: NumpyArray, ddof: int
) -> NumpyArray | None:
    """Return the numbers of values that are not NaN, or None unless groups have several values."""
    if grouping.has_entry_per_value or not grouping.xp.runs_nan_forms:
        return None
    counts: NumpyArray | None = grouping.count_skipping_nan(values)
    if counts is None:
        counts = grouping.count() - _masked_counts(np.isnan(values), grouping)
    return grouping.xp.replaced(counts, counts == 0, initial) if initial != 0 else counts


def truth(
    extreme: str, values: AnyArray, grouping: Grouping, initial: NumpyArray, ddof: int
) -> NumpyArray | None:
    """Return whether a value that is not NaN, or each of them, differs from 0.

    Return None if `initial` is not the truth value of a group without values.
    """
    if not grouping.xp.runs_nan_forms or bool(initial) != (extreme == "min"):
        return None
    # NaN differs from 0, and so it changes no minimum.
    truths = grouping.xp.nonzero(values) if extreme == "min" else _nonzero_numbers(values)
    result: NumpyArray = grouping.scatter(truths, extreme, initial)
    return result


def log_sum(
    values: AnyArray, grouping: Grouping, initial: NumpyArray, ddof: int
) -> NumpyArray | None:
    """Return the logarithms of the sums of the exponentials of the values that are not NaN.

    Return None if `initial` is not the logarithm of 0.
    """
    if not grouping.xp.runs_nan_forms or initial != -np.inf:
        return None

    def fold(values: NumpyArray, reduction: str, initial: NumpyArray) -> NumpyArray:
        result: NumpyArray | None = grouping.fold_skipping_nan(values, reduction, initial)
        if result is None:
            item = neutral_item(values.dtype, reduction)
            assert item is not None
            neutral = np.frombuffer(item, values.dtype)[0]
            numbers = np.where(grouping.xp.isnan(values), neutral, values)
            result = grouping.scatter(numbers, reduction, initial)
        return result

    sums: NumpyArray = compositions.log_sum(values, grouping, initial, ddof, fold)
    return sums


def _nonzero_numbers(values: NumpyArray) -> NumpyArray:
    """Return a mask of the numbers that are neither 0 nor NaN."""
    flat = values.reshape(-1)
    mask = np.empty(flat.size, np.bool_)
    for start in range(0, flat.size, BLOCK):
        block, result = (array[start : start + BLOCK] for array in (flat, mask))
        np.not_equal(block, 0, out=result)
        result &= np.equal(block, block)
    return mask.reshape(values.shape)


def _masked_counts(mask: NumpyArray, grouping: Grouping) -> NumpyArray:
    """Return the number of masked values of each group."""
    largest_count = int(grouping.count().max(initial=0))
    narrow_dtype = np.min_scalar_type(largest_count)  # a narrow integer is faster to read
    numbers = mask.view(np.uint8) if narrow_dtype == np.uint8 else mask.astype(narrow_dtype)
    counts: NumpyArray = grouping.scatter(numbers, "add", grouping.zero(numbers))
    return counts.astype(np.int64)
