"""Layouts: the row numbers and the panels for a table's storage."""

import math
from collections.abc import Iterator

from gatherum.files.resources.budget import Budget

from .boxes import FlatBoxes, filled_first
from .flat import FlatArray, FlatRows
from .grid import BoxArray, GridRows
from .table import Panel, RowTable, panels

__all__ = ["BoxLayout", "FlatLayout", "FortranLayout", "flat_layout"]


class FlatLayout:
    """The contiguous rows of a flat file, numbered in their order.

    In Fortran order rows are single elements. Requests contain coordinates for the leading `depth`
    dimensions.
    """

    def __init__(self, array: FlatArray, fortran: bool, depth: int, budget: Budget) -> None:
        shape = array.shape[::-1] if fortran else array.shape
        self.array, self.row_shape, self.budget = array, shape[depth:], budget
        keyed = shape[:depth]
        if fortran:
            self._strides = tuple(math.prod(keyed[:dim]) for dim in range(depth))
        else:
            self._strides = tuple(math.prod(keyed[dim + 1 :]) for dim in range(depth))

    def panels(self) -> Iterator[Panel]:
        """Divide the rows into as few panels as memory allows."""
        part = filled_first(self.row_shape, self.array.dtype.itemsize, self.budget.block)
        return panels(self.row_shape, part)

    def rows(self, panel: Panel) -> RowTable:
        """Return the table's rows in one panel."""
        return self.rows_of(self.array, panel)

    def rows_of(self, other: FlatArray, panel: Panel) -> RowTable:
        """Return the rows of another array with the same layout."""
        return FlatRows(other, self._strides, math.prod(self.row_shape), panel)


class BoxLayout:
    """The rows of an array in chunks, numbered chunk by chunk."""

    def __init__(self, array: BoxArray, depth: int, budget: Budget) -> None:
        self.array, self.depth, self.budget = array, depth, budget
        self.row_shape = array.shape[depth:]

    def panels(self) -> Iterator[Panel]:
        """Divide the rows into as few panels as memory allows."""
        chunks, item = self.array.chunks, self.array.dtype.itemsize
        rows, unit = math.prod(chunks[: self.depth]), chunks[self.depth :]
        part = filled_first(self.row_shape, item * rows, self.budget.window, unit=unit)
        return panels(self.row_shape, part)

    def rows(self, panel: Panel) -> RowTable:
        """Return the table's rows in one panel."""
        return GridRows(self.array, self.depth, panel)


class FortranLayout(BoxLayout):
    """The scattered rows of a file in Fortran order, as a grid of boxes that fit in memory."""

    def __init__(self, array: FlatArray, depth: int, budget: Budget) -> None:
        shape, item, limit = array.shape[::-1], array.dtype.itemsize, budget.block
        across = max(1, limit // max(1, math.prod(shape[depth:]) * item))
        keyed = filled_first(shape[:depth][::-1], 1, across)[::-1]
        chunks = (*keyed, *filled_first(shape[depth:], item, limit))
        super().__init__(FlatBoxes(array, True, chunks), depth, budget)

    def rows_of(self, other: FlatArray, panel: Panel) -> RowTable:
        """Return the rows of another array with the same layout."""
        return GridRows(FlatBoxes(other, True, self.array.chunks), self.depth, panel)


def flat_layout(
    array: FlatArray, fortran: bool, depth: int, budget: Budget
) -> FlatLayout | FortranLayout:
    """Return the layout of the rows of a flat file."""
    row_length = math.prod(array.shape[::-1][depth:]) if fortran else 1
    if fortran and row_length > 1:
        return FortranLayout(array, depth, budget)
    return FlatLayout(array, fortran, depth, budget)
