"""Cumulative folds, counts and ranks of the values of each group.

A cumulative fold has a result for each value: the left fold of the values of its group up to and
including this value. It is computed in the accumulation dtype, and each result is rounded once.
Ranks count from 1 by value, where NaN is the largest value and 0 equals -0.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.casting import has_nan
from gatherum._model.arrays import AnyArray
from gatherum._model.dtypes import accumulator_dtype

from . import errors, namespace
from .dates import as_dates, as_integers
from .dtypes import not_a_number
from .grouping import Grouping
from .sorting import SortedGroups, gather_flat, scatter_flat

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
    """Return the cumulative fold, or NaN, NaT or 0 for values with no group. NumPy arrays only."""
    if not isinstance(values, np.ndarray):
        raise errors.needs_numpy(grouping.op, reduction)
    sorted_groups = SortedGroups.of(grouping, values, by_value=False)
    segments = np.ascontiguousarray(values).reshape(-1)[sorted_groups.order]
    ends = np.flatnonzero(sorted_groups.cells[1:] != sorted_groups.cells[:-1]) + 1
    starts = np.concatenate([[0], ends]) if len(segments) else ends
    grouped = sorted_groups.cells < sorted_groups.cell_count
    result = np.zeros(values.size, values.dtype)
    if has_nan(values.dtype):
        result[:] = not_a_number(values.dtype)
    result[sorted_groups.order[grouped]] = _folded(reduction, segments, starts)[grouped]
    return result.reshape(values.shape)


def _folded(reduction: str, segments: AnyArray, starts: NDArray[np.intp]) -> AnyArray:
    """Fold each segment of a flat array. The first value of a segment keeps its bits; bools become
    0 or 1.
    """
    if reduction in ("max", "min"):
        result = _extremes(reduction, segments, starts)
    elif segments.dtype.kind == "b":
        result = np.not_equal(segments, 0)
        _scan(np.logical_or if reduction == "add" else np.logical_and, result, starts)
    else:
        accumulated = segments.astype(accumulator_dtype(segments.dtype, reduction))
        _scan(np.add if reduction == "add" else np.multiply, accumulated, starts)
        is_integer = segments.dtype.kind in "iu"
        result = accumulated if is_integer else namespace.rounded(accumulated, segments.dtype)
    if segments.dtype.kind != "b":
        result[starts] = segments[starts]
    return result


def _extremes(extreme: str, segments: AnyArray, starts: NDArray[np.intp]) -> AnyArray:
    """Return cumulative maxima or minima, where NaN wins, and -0 is less than 0."""
    ufunc = np.maximum if extreme == "max" else np.minimum
    if segments.dtype.kind in "mM":
        dates = as_integers(segments, extreme)
        dates = dates.copy()
        _scan(ufunc, dates, starts)
        return as_dates(dates, extreme, segments.dtype)
    if not has_nan(segments.dtype):
        folded = np.not_equal(segments, 0) if segments.dtype.kind == "b" else segments.copy()
        _scan(ufunc, folded, starts)
        return folded
    codes = segments.view(f"i{segments.dtype.itemsize}")
    limits = np.iinfo(codes.dtype)
    keys = np.where(codes < 0, codes ^ limits.max, codes)
    nan = limits.max if extreme == "max" else limits.min
    keys[np.isnan(segments)] = nan
    _scan(ufunc, keys, starts)
    result: AnyArray = (
        np.where(keys < 0, keys ^ limits.max, keys).astype(codes.dtype).view(segments.dtype)
    )
    result[keys == nan] = np.nan
    return result


def _scan(ufunc: np.ufunc, segments: AnyArray, starts: NDArray[np.intp]) -> None:
    """Fold each segment in place. Long segments are folded one by one, short ones together: first
    all second values, then all third values, and so on.
    """
    lengths = np.diff(starts, append=len(segments))
    limit = int(len(segments) ** 0.5)
    for start in np.flatnonzero(lengths > limit):
        segment = segments[starts[start] : starts[start] + lengths[start]]
        ufunc.accumulate(segment, dtype=segment.dtype, out=segment)
    is_short = lengths <= limit
    starts, lengths = starts[is_short], lengths[is_short]
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    counts = np.searchsorted(-lengths, -np.arange(1, limit + 1), side="left")  # longer than k
    for k, long_enough in enumerate(counts.tolist(), 1):
        if long_enough == 0:
            break
        positions = starts[:long_enough] + k
        segments[positions] = ufunc(
            segments[positions - 1], segments[positions], dtype=segments.dtype
        )
