"""The values of all groups in one order: by group, then by value, then by position."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gatherum._arguments.casting import has_nan
from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes, FoldRule

from . import errors
from .grouping import Grouping
from .protocol import Arrays

_INT64 = np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class SortedGroups:
    """The sorted order of flattened values. A cell is a group at one position across the axis."""

    xp: Arrays
    cell_count: int  # the number of cells, which is also the number of a dropped entry
    cells: AnyArray  # the cell of each value, in sorted order
    order: AnyArray  # the position of each value in the flattened values, in sorted order
    counts: AnyArray  # the number of values of each cell
    starts: AnyArray  # where each cell begins in sorted order

    @classmethod
    def of(cls, grouping: Grouping, values: AnyArray, by_value: bool = True) -> SortedGroups:
        """Sort by group, then by value or only by position."""
        xp, cell_count = grouping.xp, prod(grouping.shape)
        shape = tuple(values.shape)
        cells = cells_of(grouping, shape)
        keys = flattened(xp, _comparable(xp, values)) if by_value else None
        order = xp.sorted_order(keys, cells)
        counts = flattened(xp, xp.broadcast_copy(grouping.count(), grouping.shape))
        starts = xp.cumsum(counts) - counts
        return cls(xp, cell_count, gather_flat(xp, cells, order), order, counts, starts)

    def positions(self) -> AnyArray:
        """Return the positions 0, 1, 2, ... of the sorted values."""
        return self.xp.astype(self.xp.arange(0, self.order.shape[0], self.order), self.counts.dtype)

    def positions_in_cell(self) -> AnyArray:
        """Return the position of each sorted value within its cell, from 0."""
        return self.positions() - gather_flat(self.xp, self.starts, self.cells)

    def values_at(self, values: AnyArray, positions: AnyArray) -> AnyArray:
        """Return the values at sorted positions, or 0 for positions without a value."""
        return gather_flat(
            self.xp, flattened(self.xp, values), gather_flat(self.xp, self.order, positions, -1)
        )

    def begins_run(self, values: AnyArray) -> AnyArray:
        """Return a mask of the sorted values that differ from the value before them in the cell.
        NaN equals NaN, and 0 equals -0.
        """
        xp, previous = self.xp, self.positions() - 1
        begins_cell = gather_flat(xp, self.cells, previous, -1) != self.cells
        value = gather_flat(xp, flattened(xp, _comparable(xp, values)), self.order)
        previous_value = gather_flat(xp, value, previous)
        equals_previous = xp.equal(value, previous_value)
        if has_nan(xp.plan_dtype(value)):
            equals_previous = equals_previous | (xp.isnan(value) & xp.isnan(previous_value))
        return begins_cell | ~equals_previous

    def reduce(self, sorted_values: AnyArray, reduction: str, initial: int) -> AnyArray:
        """Reduce integers, one for each sorted value, to one for each cell."""
        xp = self.xp
        table = xp.full((self.cell_count,), initial, sorted_values.dtype, sorted_values)
        return scatter_flat(xp, table, self.cells, sorted_values, reduction)

    def unsorted(self, sorted_values: AnyArray, fill: int = 0) -> AnyArray:
        """Return items in the order of the flattened values, from items in sorted order.

        Values without a group get `fill`.
        """
        xp = self.xp
        grouped = self.cells < self.cell_count
        blank = xp.full(tuple(self.order.shape), fill, sorted_values.dtype, sorted_values)
        return scatter_flat(xp, blank, xp.where(grouped, self.order, -1), sorted_values, "none")


def flattened(xp: Arrays, x: AnyArray) -> AnyArray:
    """Return an array in one dimension."""
    return xp.reshape(x, (prod(x.shape),))


def _comparable(xp: Arrays, values: AnyArray) -> AnyArray:
    """Return values to compare, without a derivative. Bools of any byte value become 0 or 1."""
    values = xp.stop_gradient(values)
    return xp.nonzero(values) if xp.plan_dtype(values).kind == "b" else values


def gather_flat(xp: Arrays, table: AnyArray, positions: AnyArray, fill: int = 0) -> AnyArray:
    """Gather from a flat table; invalid positions yield `fill`."""
    attributes = Attributes("gather", mode="fill", negative=False)
    return xp.gather(attributes, table, positions, fill)


def scatter_flat(
    xp: Arrays, table: AnyArray, positions: AnyArray, updates: AnyArray, reduction: str
) -> AnyArray:
    """Scatter into a flat table, whose items are not part of a fold; skip invalid positions."""
    attributes = Attributes("scatter_slices", 0, *FoldRule.afresh(reduction), "drop", False)
    return xp.scatter(attributes, table, positions, updates)


def cells_of(grouping: Grouping, shape: Any) -> AnyArray:
    """Return the cell number of each flattened value.

    For a value without a group, this is the number of cells.
    """
    xp, axis = grouping.xp, grouping.axis
    int64 = xp.dtype(_INT64)
    groups = xp.astype(grouping.group_numbers(), int64)
    numbers = xp.plan_dtype(groups)  # 32-bit in JAX without jax_enable_x64
    if numbers.itemsize < 8 and prod(grouping.shape) > np.iinfo(numbers).max:
        raise errors.too_many_cells(grouping.op, prod(grouping.shape))
    if len(shape) == 1:
        is_grouped = not grouping.destinations.skips
        return groups if is_grouped else xp.where(groups < 0, grouping.shape[0], groups)
    shape_before, size, shape_after = shape[:axis], grouping.shape[axis], shape[axis + 1 :]
    inner_count = prod(shape_after)
    before = xp.astype(xp.arange(0, prod(shape_before), groups), int64)
    after = xp.astype(xp.arange(0, inner_count, groups), int64)
    before = xp.reshape(before, (*shape_before, *(1,) * (len(shape_after) + 1)))
    after = xp.reshape(after, (*(1,) * (len(shape_before) + 1), *shape_after))
    cells = (before * size + groups) * inner_count + after
    if grouping.destinations.skips:
        cells = xp.where(groups < 0, prod(grouping.shape), cells)
    return flattened(xp, xp.broadcast_to(cells, shape))
