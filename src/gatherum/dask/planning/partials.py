"""Fold the updates of each task into one table, and merge the tables.

Some reductions, such as sums of integers, have the same bits in any order. If updates replace
elements, the last one wins, so tables are merged in the order of their updates.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from gatherum._functions.accumulator import Accumulator, begin
from gatherum._functions.accumulator_state import ALL
from gatherum._functions.fold_properties import can_merge
from gatherum._model.call import Array
from gatherum._model.errors import Shape
from gatherum._model.modes import MOVING
from gatherum._plans.plans import apply
from gatherum.dask.dask_call import DaskCall


def can_be_partial(call: DaskCall) -> bool:
    """Return True if the order of updates does not matter, or if the last update wins."""
    reduction = call.array_call.reduction
    return reduction == "none" or can_merge(call.dtype, reduction)


def fold_apart(
    call: DaskCall, shape: Shape, indices: Sequence[Array], updates: Sequence[Array]
) -> Accumulator:
    """Fold blocks of updates, in order, into a new table of this shape.

    Invalid entries are dropped. The table is used only after all entries have been checked.
    """
    array_call = call.array_call
    mode = array_call.mode if array_call.mode in MOVING and not call.refuses else "drop"
    initial = np.broadcast_to(np.zeros((), call.dtype), shape)
    table = begin(initial, array_call.attributes._replace(mode=mode))
    for where, values in zip(indices, updates, strict=True):
        getattr(table, array_call.op)(where, values, call.axis)
    return table


def merged(call: DaskCall, parts: Sequence[Accumulator]) -> Accumulator:
    """Merge tables in the order of their updates, without changing them."""
    total = copy.copy(parts[0])
    for part in parts[1:]:
        _take(call, total, part)
    return total


def finish_whole(call: DaskCall, _: None, table: Array, part: Accumulator) -> Array:
    """Return a column of the data with the updates of a table."""
    total = begin(call.data_block(table), call.array_call.attributes)
    _take(call, total, part)
    return total.finish()


def _take(call: DaskCall, total: Accumulator, part: Accumulator) -> None:
    if call.array_call.reduction != "none":
        total.merge(part)
        return
    where = np.argwhere(part.counts())
    total.scatter_nd(where, apply("gather_nd", part.finish(), where))


def cut_out(whole: Array, starts: Shape, shape: Shape) -> Array:
    """Return a copy of a block of a column, so that the column's memory can be freed."""
    box = tuple(slice(start, start + size) for start, size in zip(starts, shape, strict=True))
    return apply("gather_nd", whole[box], ALL)
