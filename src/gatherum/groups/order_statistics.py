"""Quantiles, numbers of distinct values, and most frequent values of groups, by one sort.

A quantile follows `numpy.quantile`: for q, a Python float, the position ``(n - 1) * q`` is computed
in float64, and each step of the interpolation in the dtype of the values. Differences of integers
are exact; in NumPy they wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gatherum._arguments.casting import has_nan
from gatherum._derivatives.array_ops import Array
from gatherum._model.dtypes import AnyDType

from .grouping import Grouping
from .sorting import SortedGroups, put, take

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
INTERPOLATES = ("linear", "midpoint")


def quantile(
    q: float | Sequence[float],
    method: str,
    values: Array,
    grouping: Grouping,
    initial: Array,
    ddof: int,
) -> Array:
    """Return the quantile of each group, or an array of quantiles, one for each number of `q`."""
    ordered = SortedGroups.of(grouping, values)
    quantile_of = partial(_quantile, ordered, values, grouping, initial, method)
    return (
        grouping.xp.stack([quantile_of(number) for number in q], 0)
        if isinstance(q, tuple)
        else quantile_of(q)
    )


def _quantile(
    ordered: SortedGroups, values: Array, grouping: Grouping, initial: Array, method: str, q: Any
) -> Array:
    xp, counts = grouping.xp, ordered.counts

    def located(counts: Array, grouping: Grouping, _: Array) -> Any:
        return _positions(grouping, counts, q, method, initial.dtype)

    lower, upper, *shares = xp.in_float64(located, located, counts, grouping, counts)
    if method not in INTERPOLATES:
        result = ordered.values_at(values, ordered.starts + lower)
    else:
        dtype = xp.plan_dtype(values)
        low = ordered.values_at(values, ordered.starts + lower)
        high = ordered.values_at(values, ordered.starts + upper)
        result = _interpolated(grouping, low, high, shares, dtype, initial.dtype)
    if has_nan(xp.plan_dtype(values)):
        last = ordered.values_at(values, ordered.starts + counts - 1)
        result = xp.rounded(xp.replaced(result, xp.isnan(last), np.nan), initial.dtype)
    return xp.reshape(xp.replaced(result, counts == 0, initial), grouping.shape)


def _positions(grouping: Grouping, counts: Array, q: float, method: str, target: Any) -> Any:
    """Return the two neighbours of a quantile within each cell, and their shares.

    The results are the places of the neighbours, the shares of the upper and the lower one, and a
    mask of the cells whose upper neighbour has the larger share.
    """
    xp = grouping.xp
    whole, double = xp.dtype(np.dtype(np.int64)), xp.dtype(np.dtype(np.float64))
    last = xp.astype(xp.where(counts > 0, counts - 1, 0), whole)
    position = xp.multiply(xp.astype(last, double), xp.full((), 1, double, last) * q, None)
    floor = xp.astype(position, whole)
    fraction = xp.subtract(position, xp.astype(floor, double), None)
    above = xp.astype(fraction > 0, whole)
    up = (fraction > 0.5) | ((fraction == 0.5) & (floor % 2 == 1))  # 0.5 rounds to the even place
    nearest = {"lower": floor, "higher": floor + above, "nearest": floor + xp.astype(up, whole)}
    if method in nearest:
        position = xp.astype(nearest[method], counts.dtype)
        return position, position
    if method == "midpoint":
        fraction = xp.astype(above, double) * 0.5
    beyond = position >= xp.astype(last, double)
    if method == "linear":  # NumPy counts the last place as -1
        fraction = xp.where(beyond, xp.astype(floor, double) + 1.0, fraction)
    nearest_positions = (xp.where(beyond, last, position) for position in (floor, floor + 1))
    lower, upper = (xp.astype(position, counts.dtype) for position in nearest_positions)
    return (
        lower,
        upper,
        xp.rounded(fraction, target),
        xp.rounded(1 - fraction, target),
        fraction >= 0.5,
    )


def _interpolated(
    grouping: Grouping, low: Array, high: Array, shares: Any, dtype: AnyDType, target: Any
) -> Array:
    """Return ``low + (high - low) * share``, or the same from the upper neighbour."""
    xp, (fraction, other, second) = grouping.xp, shares
    if dtype.kind in "iu":
        whole, bits = xp.dtype(np.dtype(np.int64)), xp.dtype(np.dtype(np.uint64))
        difference = xp.astype(xp.astype(high, whole) - xp.astype(low, whole), bits)
        away, low, high = (
            xp.astype(difference, target),
            xp.astype(low, target),
            xp.astype(high, target),
        )
    else:
        away = xp.subtract(high, low, None)
    from_low = xp.add(low, xp.multiply(away, fraction, None))
    from_high = xp.subtract(high, xp.multiply(away, other, None), None)
    return xp.where(second, from_high, from_low)


def nunique(values: Array, grouping: Grouping, initial: Array, ddof: int) -> Array:
    """Return the number of distinct values of each group."""
    xp, ordered = grouping.xp, SortedGroups.of(grouping, values)
    begins = xp.astype(ordered.begins_run(values), initial.dtype)
    result = ordered.reduce(begins, "add", 0)
    return xp.reshape(xp.replaced(result, ordered.counts == 0, initial), grouping.shape)


def mode(values: Array, grouping: Grouping, initial: Array, ddof: int) -> Array:
    """Return the smallest of the most frequent values of each group."""
    xp, ordered = grouping.xp, SortedGroups.of(grouping, values)
    positions = ordered.positions()
    count = ordered.order.shape[0]
    runs = xp.cumsum(xp.astype(ordered.begins_run(values), positions.dtype)) - 1
    units = xp.full(tuple(positions.shape), 1, positions.dtype, positions)
    blank = xp.full((count,), 0, positions.dtype, positions)
    lengths = take(xp, put(xp, blank, runs, units, "add"), runs)
    longest = ordered.reduce(lengths, "max", 0)
    chosen = lengths == take(xp, longest, ordered.cells)
    first = ordered.reduce(xp.where(chosen, positions, count), "min", count)
    result = ordered.values_at(values, first)
    return xp.reshape(xp.replaced(result, ordered.counts == 0, initial), grouping.shape)
