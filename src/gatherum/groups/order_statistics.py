"""Quantiles, numbers of distinct values, and most frequent values of groups, by one sort.

A quantile follows `numpy.quantile`: for q, a Python float, the position ``(n - 1) * q`` is computed
in float64, and each step of the interpolation in the dtype of the values. Differences of integers
are exact; in NumPy they wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from gatherum._arguments.casting import has_nan
from gatherum._model.arrays import AnyArray
from gatherum._model.dtypes import AnyDType

from .grouping import Grouping
from .sorting import SortedGroups, gather_flat, scatter_flat

QuantileMethod: TypeAlias = Literal["linear", "lower", "higher", "nearest", "midpoint"]
METHODS: tuple[str, ...] = get_args(QuantileMethod)
INTERPOLATES = ("linear", "midpoint")


def quantile(
    q: float | Sequence[float],
    method: str,
    values: AnyArray,
    grouping: Grouping,
    initial: AnyArray,
    ddof: int,
) -> AnyArray:
    """Return the quantile of each group, or an array of quantiles, one for each number in `q`."""
    sorted_groups = SortedGroups.of(grouping, values)
    quantile_of = partial(_quantile, sorted_groups, values, grouping, initial, method)
    return (
        grouping.xp.stack([quantile_of(number) for number in q], 0)
        if isinstance(q, tuple)
        else quantile_of(q)
    )


def _quantile(
    sorted_groups: SortedGroups,
    values: AnyArray,
    grouping: Grouping,
    initial: AnyArray,
    method: str,
    q: Any,
) -> AnyArray:
    xp, counts = grouping.xp, sorted_groups.counts

    def positions_and_shares(counts: AnyArray, grouping: Grouping, _: AnyArray) -> Any:
        return _positions(grouping, counts, q, method, initial.dtype)

    lower, upper, *shares = xp.in_float64(
        positions_and_shares, positions_and_shares, counts, grouping, counts
    )
    if method not in INTERPOLATES:
        result = sorted_groups.values_at(values, sorted_groups.starts + lower)
    else:
        dtype = xp.plan_dtype(values)
        low = sorted_groups.values_at(values, sorted_groups.starts + lower)
        high = sorted_groups.values_at(values, sorted_groups.starts + upper)
        result = _interpolated(grouping, low, high, shares, dtype, initial.dtype)
    if has_nan(xp.plan_dtype(values)):
        last = sorted_groups.values_at(values, sorted_groups.starts + counts - 1)
        result = xp.rounded(xp.replaced(result, xp.isnan(last), np.nan), initial.dtype)
    return xp.reshape(xp.replaced(result, counts == 0, initial), grouping.shape)


def _positions(grouping: Grouping, counts: AnyArray, q: float, method: str, target: Any) -> Any:
    """Return the two neighbours of a quantile within each cell, and their interpolation weights.

    The results are the positions of the neighbours, the shares of the upper and the lower one, and
    a mask of the cells whose upper neighbour has the larger share.
    """
    xp = grouping.xp
    int64, float64 = xp.dtype(np.dtype(np.int64)), xp.dtype(np.dtype(np.float64))
    last = xp.astype(xp.where(counts > 0, counts - 1, 0), int64)
    position = xp.multiply(xp.astype(last, float64), xp.full((), 1, float64, last) * q, None)
    floor = xp.astype(position, int64)
    fraction = xp.subtract(position, xp.astype(floor, float64), None)
    above = xp.astype(fraction > 0, int64)
    up = (fraction > 0.5) | ((fraction == 0.5) & (floor % 2 == 1))  # 0.5 rounds to the even place
    nearest = {"lower": floor, "higher": floor + above, "nearest": floor + xp.astype(up, int64)}
    if method in nearest:
        position = xp.astype(nearest[method], counts.dtype)
        return position, position
    if method == "midpoint":
        fraction = xp.astype(above, float64) * 0.5
    beyond = position >= xp.astype(last, float64)
    if method == "linear":  # NumPy counts the last place as -1
        fraction = xp.where(beyond, xp.astype(floor, float64) + 1.0, fraction)
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
    grouping: Grouping, low: AnyArray, high: AnyArray, shares: Any, dtype: AnyDType, target: Any
) -> AnyArray:
    """Return ``low + (high - low) * share``, or its equivalent from the upper neighbour."""
    xp, (upper_share, lower_share, is_nearer_upper) = grouping.xp, shares
    if dtype.kind in "iu":
        int64, uint64 = xp.dtype(np.dtype(np.int64)), xp.dtype(np.dtype(np.uint64))
        difference = xp.astype(xp.astype(high, int64) - xp.astype(low, int64), uint64)
        difference_of_neighbours = xp.astype(difference, target)
        low = xp.astype(low, target)
        high = xp.astype(high, target)
    else:
        difference_of_neighbours = xp.subtract(high, low, None)
    from_low = xp.add(low, xp.multiply(difference_of_neighbours, upper_share, None))
    from_high = xp.subtract(high, xp.multiply(difference_of_neighbours, lower_share, None), None)
    return xp.where(is_nearer_upper, from_high, from_low)


def nunique(values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int) -> AnyArray:
    """Return the number of distinct values of each group."""
    xp, sorted_groups = grouping.xp, SortedGroups.of(grouping, values)
    begins = xp.astype(sorted_groups.begins_run(values), initial.dtype)
    result = sorted_groups.reduce(begins, "add", 0)
    return xp.reshape(xp.replaced(result, sorted_groups.counts == 0, initial), grouping.shape)


def mode(values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int) -> AnyArray:
    """Return the smallest of the most frequent values of each group."""
    xp, sorted_groups = grouping.xp, SortedGroups.of(grouping, values)
    positions = sorted_groups.positions()
    count = sorted_groups.order.shape[0]
    runs = xp.cumsum(xp.astype(sorted_groups.begins_run(values), positions.dtype)) - 1
    ones = xp.full(tuple(positions.shape), 1, positions.dtype, positions)
    blank = xp.full((count,), 0, positions.dtype, positions)
    lengths = gather_flat(xp, scatter_flat(xp, blank, runs, ones, "add"), runs)
    longest = sorted_groups.reduce(lengths, "max", 0)
    is_most_frequent = lengths == gather_flat(xp, longest, sorted_groups.cells)
    first = sorted_groups.reduce(xp.where(is_most_frequent, positions, count), "min", count)
    result = sorted_groups.values_at(values, first)
    return xp.reshape(xp.replaced(result, sorted_groups.counts == 0, initial), grouping.shape)
