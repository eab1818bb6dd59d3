"""Cumulative folds, counts and ranks of the values of each group.

A cumulative fold has a result for each value: the left fold of the values of its group up to and
including this value. It is computed in the accumulation dtype, and each result is rounded once.
Ranks count from 1 by value, where NaN is the largest value and 0 equals -0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.casting import has_nan
from gatherum._derivatives.array_ops import Array
from gatherum._model.dtypes import accumulator_dtype

from . import errors, namespace
from .dates import as_dates, as_integers, is_date, not_a_date
from .grouping import Grouping
from .sorting import SortedGroups, put, take

RANKS = ("average", "ordinal", "min", "max", "dense")


def count(values: Array, grouping: Grouping, target: Any) -> Array:
    """Return, for each value, the number of earlier values in its group, or -1 without a group."""
    ordered = SortedGroups.of(grouping, values, by_value=False)
    own_positions = grouping.xp.astype(ordered.positions_in_cell(), target)
    return grouping.xp.reshape(ordered.unsorted(own_positions, -1), tuple(values.shape))


def rank(method: str, values: Array, grouping: Grouping, target: Any) -> Array:
    """Return the rank of each value in its group, or NaN or 0 for a value without a group."""
    xp, ordered = grouping.xp, SortedGroups.of(grouping, values)
    shape = tuple(values.shape)
    if method == "ordinal":
        return xp.reshape(
            ordered.unsorted(xp.astype(ordered.positions_in_cell() + 1, target)), shape
        )
    positions = ordered.positions()
    begins = ordered.begins_run(values)
    runs = xp.cumsum(xp.astype(begins, positions.dtype)) - 1
    starts = take(xp, ordered.starts, ordered.cells)
    if method == "dense":
        ranks = runs - take(xp, runs, starts) + 1
        return xp.reshape(ordered.unsorted(xp.astype(ranks, target)), shape)
    blank = xp.full(tuple(positions.shape), 0, positions.dtype, positions)
    first, last = (
        take(xp, put(xp, blank, runs, positions, extreme), runs) - starts + 1
        for extreme in ("min", "max")
    )
    if method != "average":
        ranks = xp.astype(first if method == "min" else last, target)
        return xp.reshape(ordered.unsorted(ranks), shape)
    mean: Any = np.nan
    return xp.reshape(ordered.unsorted(xp.astype(first + last, target) * 0.5, mean), shape)


def fold(reduction: str, values: Array, grouping: Grouping, target: Any) -> Array:
    """Return the cumulative fold; NaN, NaT or 0 for values without a group. NumPy arrays only."""
    if not isinstance(values, np.ndarray):
        raise errors.needs_numpy(grouping.op, reduction)
    ordered = SortedGroups.of(grouping, values, by_value=False)
    run = np.ascontiguousarray(values).reshape(-1)[ordered.order]
    ends = np.flatnonzero(ordered.cells[1:] != ordered.cells[:-1]) + 1
    starts = np.concatenate([[0], ends]) if len(run) else ends
    grouped = ordered.cells < ordered.cell_count
    result = np.zeros(values.size, values.dtype)
    if is_date(values.dtype):
        result[:] = not_a_date(values.dtype)
    elif has_nan(values.dtype):
        result[:] = complex(np.nan, np.nan) if values.dtype.kind == "c" else np.nan
    result[ordered.order[grouped]] = _folded(reduction, run, starts)[grouped]
    return result.reshape(values.shape)


def _folded(reduction: str, run: Array, starts: NDArray[np.intp]) -> Array:
    """Fold each segment of a flat array. The first value of a segment keeps its bits; bools become
    0 or 1.
    """
    if reduction in ("max", "min"):
        result = _extremes(reduction, run, starts)
    elif run.dtype.kind == "b":
        result = np.not_equal(run, 0)
        _scan(np.logical_or if reduction == "add" else np.logical_and, result, starts)
    else:
        wide = run.astype(accumulator_dtype(run.dtype, reduction))
        _scan(np.add if reduction == "add" else np.multiply, wide, starts)
        whole = run.dtype.kind in "iu"
        result = wide if whole else namespace.rounded(wide, run.dtype)
    if run.dtype.kind != "b":
        result[starts] = run[starts]
    return result


def _extremes(extreme: str, run: Array, starts: NDArray[np.intp]) -> Array:
    """Return cumulative maxima or minima, where NaN wins, and -0 is less than 0."""
    ufunc = np.maximum if extreme == "max" else np.minimum
    if run.dtype.kind in "mM":
        dates = as_integers(run, extreme)
        dates = dates.copy()
        _scan(ufunc, dates, starts)
        return as_dates(dates, extreme, run.dtype)
    if not has_nan(run.dtype):
        folded = np.not_equal(run, 0) if run.dtype.kind == "b" else run.copy()
        _scan(ufunc, folded, starts)
        return folded
    codes = run.view(f"i{run.dtype.itemsize}")
    limits = np.iinfo(codes.dtype)
    keys = np.where(codes < 0, codes ^ limits.max, codes)
    nan = limits.max if extreme == "max" else limits.min
    keys[np.isnan(run)] = nan
    _scan(ufunc, keys, starts)
    result: Array = np.where(keys < 0, keys ^ limits.max, keys).astype(codes.dtype).view(run.dtype)
    result[keys == nan] = np.nan
    return result


def _scan(ufunc: np.ufunc, run: Array, starts: NDArray[np.intp]) -> None:
    """Fold each segment in place. Long segments are folded one by one, short ones together: first
    all second values, then all third values, and so on.
    """
    lengths = np.diff(starts, append=len(run))
    limit = int(len(run) ** 0.5)
    for start in np.flatnonzero(lengths > limit):
        part = run[starts[start] : starts[start] + lengths[start]]
        ufunc.accumulate(part, dtype=part.dtype, out=part)
    short = lengths <= limit
    starts, lengths = starts[short], lengths[short]
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    counts = np.searchsorted(-lengths, -np.arange(1, limit + 1), side="left")  # longer than k
    for k, long_enough in enumerate(counts.tolist(), 1):
        if long_enough == 0:
            break
        run_positions = starts[:long_enough] + k
        run[run_positions] = ufunc(run[run_positions - 1], run[run_positions], dtype=run.dtype)
