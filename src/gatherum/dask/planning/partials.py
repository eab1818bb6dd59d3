"""Fold the updates of each task into one table, and merge the tables.

Some reductions, such as sums of integers, have the same bits in any order. If updates replace
elements, the last one wins, so tables are merged in the order of their updates.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from gatherum._functions.accumulator import Accumulator, new_accumulator
from gatherum._functions.accumulator_state import ALL
from gatherum._functions.fold_properties import can_merge
from gatherum._model.arrays import NumpyArray
from gatherum._model.errors import Shape
from gatherum._model.modes import MOVING
from gatherum._plans.plans import apply
from gatherum.dask.dask_call import DaskCall


def can_be_partial(call: DaskCall) -> bool:
    """Return True if the order of updates does not matter, or if the last update wins."""
    reduction = call.array_call.reduction
    return reduction == "none" or can_merge(call.dtype, reduction)


def fold_to_table(
    call: DaskCall, shape: Shape, indices: Sequence[NumpyArray], updates: Sequence[NumpyArray]
) -> Accumulator:
    """Fold blocks of updates, in order, into a new table of this shape.

    Invalid entries are dropped. The table is used only after all entries have been checked.
    """
    array_call = call.array_call
    mode = array_call.mode if array_call.mode in MOVING and not call.raises_if_invalid else "drop"
    initial = np.broadcast_to(np.zeros((), call.dtype), shape)
    table = new_accumulator(initial, array_call.attributes._replace(mode=mode))
    for block_indices, values in zip(indices, updates, strict=True):
        getattr(table, array_call.op)(block_indices, values, call.axis)
    return table


def merge_tables(call: DaskCall, tables: Sequence[Accumulator]) -> Accumulator:
    """Merge tables in the order of their updates, without changing them."""
    merged = copy.copy(tables[0])
    for table in tables[1:]:
        _merge_table(call, merged, table)
    return merged


def finish_column(call: DaskCall, _: None, column: NumpyArray, updated: Accumulator) -> NumpyArray:
    """Return a column of the data with the updates of a table applied."""
    accumulator = new_accumulator(call.data_block(column), call.array_call.attributes)
    _merge_table(call, accumulator, updated)
    return accumulator.finish()


def _merge_table(call: DaskCall, merged: Accumulator, table: Accumulator) -> None:
    if call.array_call.reduction != "none":
        merged.merge(table)
        return
    coordinates = np.argwhere(table.counts())
    merged.scatter_nd(coordinates, apply("gather_nd", table.finish(), coordinates))


def copy_block(column: NumpyArray, starts: Shape, shape: Shape) -> NumpyArray:
    """Return a copy of a block of a column, so that the column's memory can be freed."""
    box = tuple(slice(start, start + size) for start, size in zip(starts, shape, strict=True))
    return apply("gather_nd", column[box], ALL)
