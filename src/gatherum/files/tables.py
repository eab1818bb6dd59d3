"""Tables as numbered rows: which numbering and which panels suit a table's storage."""

import math
from collections.abc import Iterator
from dataclasses import replace

from gatherum.files.boxes import FlatBoxes, filled_first
from gatherum.files.budget import Budget
from gatherum.files.disk import DiskFile, FlatArray
from gatherum.files.readers import Source
from gatherum.files.rows import BoxArray, FlatRows, GridRows, Panel, RowTable, panels
from gatherum.files.zarrays import ZarrArray

__all__ = ["Layout"]


class Layout:
    """How the rows of a table are numbered and read, for a call that keys `depth` dimensions.

    Rows that lie together in a flat file are numbered as they lie. Everything else, Zarr arrays
    and rows across a Fortran-ordered file, is a grid of chunks, numbered chunk by chunk.

    Parameters
    ----------
    source : Source
        The table.
    depth : int
        How many leading dimensions requests give coordinates for.
    budget : Budget
        The memory that blocks of rows may take.
    """

    def __init__(self, source: Source, depth: int, budget: Budget) -> None:
        self.source, self.depth, self.budget = source, depth, budget
        self.row_shape = source.shape[depth:]
        self.row_length = math.prod(self.row_shape)
        self.item = source.dtype.itemsize
        self.in_grid = isinstance(source.content, ZarrArray) or (
            source.fortran and self.row_length > 1
        )
        self.chunks = self._chunks()

    def _chunks(self) -> tuple[int, ...]:
        shape, limit = self.source.shape, self.budget.block
        if isinstance(self.source.content, ZarrArray):
            return self.source.content.chunks
        if not self.in_grid:
            return ()
        across = max(1, limit // max(1, self.row_length * self.item))
        keyed = filled_first(shape[: self.depth][::-1], 1, across)[::-1]
        row = filled_first(self.row_shape, self.item, limit)
        return (*keyed, *row)

    def panels(self) -> Iterator[Panel]:
        """Cut the rows into as few panels as memory allows."""
        if not self.in_grid:
            part = filled_first(self.row_shape, self.item, self.budget.block)
            return panels(self.row_shape, part)
        rows = math.prod(self.chunks[: self.depth])
        unit = self.chunks[self.depth :]
        return panels(
            self.row_shape,
            filled_first(self.row_shape, self.item * rows, self.budget.window, unit=unit),
        )

    def rows(self, panel: Panel) -> RowTable:
        """Return the table's rows in one panel."""
        content = self.source.content
        if isinstance(content, ZarrArray):
            return GridRows(content, self.depth, panel)
        return self._flat_rows(content, panel)

    def rows_of_copy(self, file: DiskFile, offset: int, panel: Panel) -> RowTable:
        """Return rows numbered alike, of a copy of a flat table at `offset` in another file."""
        content = self.source.content
        if isinstance(content, ZarrArray):
            raise TypeError("a Zarr table has no flat copy")
        return self._flat_rows(replace(content, file=file, offset=offset), panel)

    def rows_of_array(self, array: BoxArray, panel: Panel) -> RowTable:
        """Return rows numbered alike, of another array with the same chunks."""
        return GridRows(array, self.depth, panel)

    def _flat_rows(self, array: FlatArray, panel: Panel) -> RowTable:
        if self.in_grid:
            return GridRows(FlatBoxes(array, True, self.chunks), self.depth, panel)
        keyed = self.source.shape[: self.depth]
        if self.source.fortran:
            strides = tuple(math.prod(keyed[:dim]) for dim in range(self.depth))
        else:
            strides = tuple(math.prod(keyed[dim + 1 :]) for dim in range(self.depth))
        return FlatRows(array, strides, self.row_length, panel)
