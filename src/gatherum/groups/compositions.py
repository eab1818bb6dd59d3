"""The functions over groups as compositions of the operators.

The composition of a reduction is a small function that returns the result, given the values, the
grouping, the result for empty groups, and `ddof`. A kernel that returns the same bits may replace
it. Other compositions are in `spreads`, `weighted`, `order_statistics` and `cumulative`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gatherum._arguments.casting import has_nan
from gatherum._model.arrays import AnyArray

from .dates import as_dates, as_integers, is_date
from .dtypes import working_dtype
from .grouping import Grouping


def in_working_dtype(values: AnyArray, grouping: Grouping) -> AnyArray:
    """Convert values to their working dtype."""
    return grouping.xp.astype(
        values, grouping.xp.dtype(working_dtype(grouping.xp.plan_dtype(values)))
    )


def fold(
    reduction: str, values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int
) -> AnyArray:
    """Return the left fold of the values of each group."""
    return grouping.scatter(values, reduction, initial)


def fold_extreme(
    extreme: str, values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int
) -> AnyArray:
    """Return the largest or smallest value of each group. Dates are compared as integers."""
    if not is_date(dtype := grouping.xp.plan_dtype(values)):
        return grouping.scatter(values, extreme, initial)
    integers, empty = (as_integers(dates, extreme) for dates in (values, initial))
    return as_dates(grouping.scatter(integers, extreme, empty), extreme, grouping.xp.dtype(dtype))


def fold_truth(
    reduction: str, values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int
) -> AnyArray:
    """Return the maximum or minimum of the truth values in each group."""
    return grouping.scatter(grouping.xp.nonzero(values), reduction, initial)


def last(values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int) -> AnyArray:
    """Return the last value of each group."""
    return grouping.scatter(values, "none", initial)


def first(values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int) -> AnyArray:
    """Return the first value of each group."""
    return grouping.first_values(values, initial)


def count(values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int) -> AnyArray:
    """Return the number of values of each group."""
    return grouping.xp.broadcast_copy(grouping.count(initial), grouping.shape)


def position_of_extreme(
    extreme: str, values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int
) -> AnyArray:
    """Return the position of the first largest or smallest value of each group."""
    values = as_integers(values, extreme) if is_date(grouping.xp.plan_dtype(values)) else values
    positions = grouping.positions_of_extremes(extreme, values, initial)
    if positions is not None:
        return positions
    xp, values = grouping.xp, grouping.xp.stop_gradient(values)
    with grouping.sharing_calls():
        best = grouping.scatter(values, extreme, grouping.zero(values))
        attains = xp.equal(values, grouping.gather(best))
        if has_nan(xp.plan_dtype(values)) and xp.holds_any(xp.isnan(best)):
            attains = attains | xp.isnan(values)  # a NaN extreme equals no value
        return grouping.first_positions(attains, initial)


def log_sum(
    values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int,
    fold: Callable[[AnyArray, str, AnyArray], AnyArray] | None = None,
) -> AnyArray:  # fmt: skip
    """Return the logarithm of the sum of the exponentials of each group.

    `fold` replaces the scatters, for example by folds that skip NaN.
    """
    floats, xp, fold = in_working_dtype(values, grouping), grouping.xp, fold or grouping.scatter
    with grouping.sharing_calls():
        shift = fold(xp.stop_gradient(floats), "max", grouping.zero(floats))
        shift = xp.replaced(shift, xp.isinf(shift), 0)  # infinite values need no shift
        shifts = grouping.gather(shift, np.inf)  # exp(x - inf) is 0, and so is its gradient
        total = fold(xp.exp(xp.subtract(floats, shifts, shifts)), "add", grouping.zero(floats))
        result = xp.rounded(xp.add(shift, xp.log(total)), initial.dtype)
        return xp.replaced(result, grouping.count() == 0, initial)


def _below_maximum(values: AnyArray, grouping: Grouping) -> AnyArray:
    """Return the distance of each value from the largest value in its group."""
    largest = grouping.scatter(grouping.xp.stop_gradient(values), "max", grouping.zero(values))
    largest_of_group = grouping.gather(largest, np.nan)
    return grouping.xp.subtract(values, largest_of_group, largest_of_group)


def softmax(values: AnyArray, grouping: Grouping, target: Any) -> AnyArray:
    """Return the exponential of each value divided by the sum of the exponentials in its group."""
    with grouping.sharing_calls():
        exponentials = grouping.xp.exp(_below_maximum(in_working_dtype(values, grouping), grouping))
        sums = grouping.scatter(exponentials, "add", grouping.zero(exponentials))
        shares = grouping.xp.divide(exponentials, grouping.gather(sums, np.nan), exponentials)
    return grouping.xp.rounded(shares, target)


def log_softmax(values: AnyArray, grouping: Grouping, target: Any) -> AnyArray:
    """Return the logarithms of softmax."""
    with grouping.sharing_calls():
        shifted = _below_maximum(in_working_dtype(values, grouping), grouping)
        total = grouping.scatter(grouping.xp.exp(shifted), "add", grouping.zero(shifted))
        logs = grouping.gather(grouping.xp.log(total), np.nan)
    return grouping.xp.rounded(grouping.xp.subtract(shifted, logs, shifted), target)
