"""Results in memory: a gather into an array, or a scatter on a copy of the table."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.durable.build import MemoryBuild
from gatherum.files.durable.context import Context
from gatherum.files.durable.stores import FlatTarget
from gatherum.files.resources.disk import byte_view
from gatherum.files.resources.memory import MemoryFile
from gatherum.files.row_access.table import Panel, RowTable
from gatherum.files.strategies.windows import best_order

from .inputs import Inputs

__all__ = ["as_items", "gathered", "scattered"]


def gathered(inputs: Inputs, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Gather from the table. Write the result to `out` if given.

    `out` has the shape and dtype of the result. It is not changed if an index raises an error.
    """
    context, fill = inputs.context(MemoryBuild(inputs.meter)), inputs.fill
    direct = out is not None and out.flags.c_contiguous
    result = out if direct and out is not None else np.empty(inputs.shape, inputs.table.dtype)
    if result.size == 0 or direct:
        context.requests.check(context.budget.entries)
    if result.size == 0:
        return result
    context.meter.expect(result.nbytes)
    rows = result.reshape(context.requests.count, -1)
    for panel, table in inputs.panels(context.requests.depth):
        _fill_panel(context, table, rows, panel, fill)
    if out is None or direct:
        return result
    as_items(out)[...] = as_items(result)
    return out


def as_items(array: NDArray[Any]) -> NDArray[Any]:
    """View records as bytes. NumPy would copy them field by field, without their padding."""
    return array.view(np.dtype((np.void, array.itemsize))) if array.dtype.names else array


def _fill_panel(
    context: Context, table: RowTable, result: NDArray[Any], panel: Panel, fill: NDArray[Any]
) -> None:
    """Gather one panel of the rows into its columns."""
    requests, budget = context.requests, context.budget
    whole = panel.width == result.shape[1]
    row_bytes = max(1, panel.width * table.dtype.itemsize)
    most = budget.entries if whole else min(budget.entries, max(1, budget.window // row_bytes))
    for start, stop in requests.windows(most):
        rows = result[start:stop] if whole else np.empty((stop - start, panel.width), table.dtype)
        (numbers, invalid), places = requests.numbers(table, start, stop), None
        if invalid is not None and invalid.any():
            byte_view(rows)[:] = bytes(fill.tobytes()) * rows.size
            places = np.flatnonzero(~invalid)
            numbers = numbers[places]
        wanted = best_order(table, numbers, places)
        context.meter.chunks_touched += table.fetch(wanted, rows, limit=budget.block, once=False)
        if not whole:
            for first, last, part in panel.columns():
                result[start:stop, first:last] = rows[:, part]
        context.meter.advance((stop - start) * row_bytes)


def scattered(inputs: Inputs) -> NDArray[Any]:
    """Return a copy of the table with a scatter's updates applied."""
    context = inputs.context(MemoryBuild(inputs.meter))
    if (whole := inputs.scattered_whole()) is not None:
        return whole
    table = inputs.table.storage.flat(context)
    result = np.empty(inputs.shape, inputs.table.dtype)
    copy = replace(table.array, file=MemoryFile(result, context.meter), offset=0)
    layout = table.layout(context.requests.depth, context.budget)
    inputs.scatter(context, FlatTarget(context, layout, table.array, copy, lambda: None))
    return result
