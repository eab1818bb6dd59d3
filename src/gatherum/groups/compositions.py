"""The functions over groups as compositions of the operators.

A composition of a reduction is a small function of the values, the grouping, the result of empty
groups, and `ddof`, which returns the result. A kernel with the same bits may replace it. Other
compositions are in `spreads`, `weighted`, `order_statistics` and `cumulative`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gatherum._arguments.casting import has_nan
from gatherum._derivatives.array_ops import Array

from .dates import as_dates, as_integers, is_date
from .dtypes import working_dtype
from .grouping import Grouping


def working(values: Array, by: Grouping) -> Array:
    """Convert values to their working dtype."""
    return by.xp.astype(values, by.xp.dtype(working_dtype(by.xp.kind(values))))


def fold(reduction: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    """Return the left fold of the values of each group."""
    return by.scatter(values, reduction, start)


def fold_extreme(extreme: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    """Return the largest or smallest value of each group. Dates are compared as integers."""
    if not is_date(dtype := by.xp.kind(values)):
        return by.scatter(values, extreme, start)
    numbers, empty = (as_integers(dates, extreme) for dates in (values, start))
    return as_dates(by.scatter(numbers, extreme, empty), extreme, by.xp.dtype(dtype))


def fold_truth(reduction: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    """Return the maximum or minimum of the truth of the values of each group."""
    return by.scatter(by.xp.nonzero(values), reduction, start)


def last(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    """Return the last value of each group."""
    return by.scatter(values, "none", start)


def first(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    """Return the first value of each group."""
    return by.first(values, start)


def count(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    """Return the number of values of each group."""
    return by.xp.whole(by.count(start), by.shape)


def position(extreme: str, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    """Return the position of the first largest or smallest value of each group."""
    values = as_integers(values, extreme) if is_date(by.xp.kind(values)) else values
    if isinstance(values, np.ndarray):
        return by.position(extreme, values, start)
    xp, values = by.xp, by.xp.stop_gradient(values)
    best = by.scatter(values, extreme, by.zero(values))
    attains = xp.equal(values, by.gather(best))
    if has_nan(xp.kind(values)) and xp.holds_any(xp.isnan(best)):
        attains = attains | xp.isnan(values)  # a NaN extreme equals no value
    return by.first_position(attains, start)


def log_sum(values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    """Return the logarithm of the sum of the exponentials of each group."""
    numbers, xp = working(values, by), by.xp
    shift = by.scatter(xp.stop_gradient(numbers), "max", by.zero(numbers))
    shift = xp.replaced(shift, xp.isinf(shift), 0)  # infinite values stay infinite without a shift
    spread = by.gather(shift)
    total = by.scatter(xp.exp(xp.subtract(numbers, spread, spread)), "add", by.zero(numbers))
    result = xp.rounded(xp.add(shift, xp.log(total)), start.dtype)
    return xp.replaced(result, by.count() == 0, start)


def _shifted(values: Array, by: Grouping) -> Array:
    """Return the distance of each value from the largest of its group."""
    largest = by.scatter(by.xp.stop_gradient(values), "max", by.zero(values))
    distances = by.gather(largest, np.nan)
    return by.xp.subtract(values, distances, distances)


def softmax(values: Array, by: Grouping, to: Any) -> Array:
    """Return the share of the exponential of each value in the sum of its group."""
    powers = by.xp.exp(_shifted(working(values, by), by))
    total = by.scatter(powers, "add", by.zero(powers))
    return by.xp.rounded(by.xp.divide(powers, by.gather(total, np.nan), powers), to)


def log_softmax(values: Array, by: Grouping, to: Any) -> Array:
    """Return the logarithms of softmax."""
    shifted = _shifted(working(values, by), by)
    total = by.scatter(by.xp.exp(shifted), "add", by.zero(shifted))
    logs = by.gather(by.xp.log(total), np.nan)
    return by.xp.rounded(by.xp.subtract(shifted, logs, shifted), to)
