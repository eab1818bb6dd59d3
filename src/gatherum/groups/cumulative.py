"""Cumulative folds, counts and ranks of the values of each group.

A cumulative fold has a result for each value: the left fold of the values of its group up to and
including this value. It is computed in the accumulation dtype, and each result is rounded once.
Ranks count from 1 by value, where NaN is the largest value and 0 equals -0.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from gatherum._arguments.casting import has_nan
from gatherum._model.arrays import AnyArray

from .dates import as_dates, as_integers, is_date
from .dtypes import not_a_number
from .grouping import Grouping
from .sorting import SortedGroups, cells_of, flattened, gather_flat, scatter_flat

RankMethod: TypeAlias = Literal["average", "ordinal", "min", "max", "dense"]
RANKS: tuple[str, ...] = get_args(RankMethod)


def count(values: AnyArray, grouping: Grouping, target: Any) -> AnyArray:
    """Return the number of earlier values in each value's group, or -1 if it has no group."""
    sorted_groups = SortedGroups.of(grouping, values, by_value=False)
    own_positions = grouping.xp.astype(sorted_groups.positions_in_cell(), target)
    return grouping.xp.reshape(sorted_groups.unsorted(own_positions, -1), tuple(values.shape))


def rank(method: str, values: AnyArray, grouping: Grouping, target: Any) -> AnyArray:
    """Return the rank of each value in its group, or NaN or 0 for a value without a group."""
    xp, sorted_groups = grouping.xp, SortedGroups.of(grouping, values)
    shape = tuple(values.shape)
    if method == "ordinal":
        return xp.reshape(
            sorted_groups.unsorted(xp.astype(sorted_groups.positions_in_cell() + 1, target)), shape
        )
    positions = sorted_groups.positions()
    begins = sorted_groups.begins_run(values)
    runs = xp.cumsum(xp.astype(begins, positions.dtype)) - 1
    starts = gather_flat(xp, sorted_groups.starts, sorted_groups.cells)
    if method == "dense":
        ranks = runs - gather_flat(xp, runs, starts) + 1
        return xp.reshape(sorted_groups.unsorted(xp.astype(ranks, target)), shape)
    blank = xp.full(tuple(positions.shape), 0, positions.dtype, positions)
    first, last = (
        gather_flat(xp, scatter_flat(xp, blank, runs, positions, extreme), runs) - starts + 1
        for extreme in ("min", "max")
    )
    if method != "average":
        ranks = xp.astype(first if method == "min" else last, target)
        return xp.reshape(sorted_groups.unsorted(ranks), shape)
    mean: Any = np.nan
    return xp.reshape(sorted_groups.unsorted(xp.astype(first + last, target) * 0.5, mean), shape)


def fold(reduction: str, values: AnyArray, grouping: Grouping, target: Any) -> AnyArray:
    """Return the cumulative fold, or NaN, NaT or 0 for a value without a group."""
    xp, dtype, shape = grouping.xp, grouping.xp.plan_dtype(values), tuple(values.shape)
    cells, cell_count = cells_of(grouping, shape), prod(grouping.shape)
    flat = flattened(xp, values)
    flat = as_integers(flat, reduction) if is_date(dtype) else flat
    result = xp.cumulate(reduction, flat, cells, cell_count)
    result = as_dates(result, reduction, target) if is_date(dtype) else result
    if grouping.destinations.skips and has_nan(dtype):
        nan = xp.item(grouping.op, dtype, not_a_number(dtype), values)
        result = xp.where(cells < cell_count, result, nan)
    return xp.reshape(result, shape)
