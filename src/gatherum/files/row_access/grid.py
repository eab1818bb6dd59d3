"""Rows of a chunked array. They are numbered chunk by chunk and read in complete chunks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._plans.plans import apply
from gatherum.files.resources.disk import byte_view
from gatherum.files.resources.resources import Budget

from .table import (
    Ints,
    Panel,
    RowRuns,
    RowsToRead,
    RowTable,
    largest_box,
    panels,
    read_runs,
    without_duplicates,
)

Box = tuple[slice, ...]
TAKEN_BYTES = 256 << 10  # rows that are copied together; they must stay in the cache


class BoxArray:
    """An array that is read, and perhaps written, in boxes, preferably in whole `chunks`."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    keeps_boxes = False  # whether `view_box` keeps the boxes that it returns for the next calls

    def read_box(self, box: Box) -> NDArray[Any]:
        """Return a box of the array."""
        raise NotImplementedError

    def view_box(self, box: Box) -> NDArray[Any] | None:
        """Return a box that is in memory, without a copy. Return None for other boxes."""
        return None

    def write_box(self, box: Box, values: NDArray[Any]) -> None:
        """Replace a box of the array. Read-only arrays do not support it."""
        raise NotImplementedError

    def announce(self, boxes: Iterator[Box]) -> None:
        """Prepare to read these boxes next, in this order."""

    def stop(self) -> None:
        """Cancel pending work that may take long, because the call is over."""


class GridRows(RowTable):
    """Rows of a chunked array, numbered chunk by chunk. A run is always one complete chunk."""

    is_chunked = True

    def __init__(self, array: BoxArray, depth: int, panel: Panel) -> None:
        self.array, self.depth, self.panel = array, depth, panel
        self.dtype, self.width = array.dtype, panel.width
        self.chunk = array.chunks[:depth]
        self.chunk_rows = self.quantum = math.prod(self.chunk)
        self.grid = tuple(-(-n // c) for n, c in zip(array.shape, self.chunk, strict=False))
        self.extent = math.prod(self.grid) * self.chunk_rows

    def row_numbers_at(self, coordinates: Sequence[Ints | None], length: int) -> Ints:
        """Return the row numbers at the given keyed coordinates."""
        chunk_numbers, rows_in_chunk = np.zeros(length, np.int64), np.zeros(length, np.int64)
        for coordinate, grid, chunk in zip(coordinates, self.grid, self.chunk, strict=True):
            chunk_numbers *= grid
            rows_in_chunk *= chunk
            if coordinate is not None:
                chunk_coordinate, coordinate_in_chunk = np.divmod(coordinate, chunk)
                chunk_numbers += chunk_coordinate
                rows_in_chunk += coordinate_in_chunk
        return chunk_numbers * self.chunk_rows + rows_in_chunk

    def fetch(self, wanted: RowsToRead, into: NDArray[Any], *, limit: int, once: bool) -> int:
        """Read rows to their positions in `into`. Return the number of chunks that were read."""
        if not wanted.joins_neighbours:
            wanted = RowsToRead.sorted(wanted.row_numbers, wanted.positions)
        row_numbers, positions = wanted.row_numbers, wanted.positions
        step = max(1, TAKEN_BYTES // max(1, self.width * self.dtype.itemsize))
        buffer = np.empty((min(step, len(row_numbers)), self.width), self.dtype)
        self.array.announce(self._boxes_of(row_numbers))
        chunk_count = 0
        limit = 0 if self.array.keeps_boxes else limit  # one chunk at a time needs no copy
        for start, stop, runs in read_runs(self, row_numbers, limit):
            chunk_count += runs.first.size
            for begin in range(start, stop, step):
                end = min(stop, begin + step)
                local = runs.locate(row_numbers[begin:end])
                rows = apply("gather", runs.space, local, out=buffer[: end - begin])
                into_positions = (
                    np.arange(begin, end) if positions is None else positions[begin:end]
                )
                apply("scatter_nd", into, into_positions[:, None], rows, out=into)
        return chunk_count

    def stop(self) -> None:
        """Cancel pending work, because the call is over."""
        self.array.stop()

    def runs(self, row_numbers: Ints, most_rows: int) -> tuple[Ints, Ints]:
        """Return the chunks that contain sorted distinct `row_numbers`."""
        chunks = without_duplicates(row_numbers // self.chunk_rows)
        return chunks * self.chunk_rows, np.full(chunks.size, self.chunk_rows, np.int64)

    def read(self, first: Ints, count: Ints) -> RowRuns:
        """Read whole chunks. Rows outside of the array, in chunks at its edge, are zero bytes."""
        if first.size == 1 and (view := self._view(int(first[0]))) is not None:
            return RowRuns(first, count, view, view)
        rows = np.empty((first.size * self.chunk_rows, self.width), self.dtype)
        for chunk, values in zip(first, self._by_chunk(rows), strict=True):
            box = self._box(int(chunk))
            inside = tuple(slice(0, dim_range.stop - dim_range.start) for dim_range in box)
            if any(i.stop != n for i, n in zip(inside, values.shape, strict=True)):
                byte_view(values)[:] = bytes(values.nbytes)
            values[inside] = self.array.read_box(box)
        return RowRuns(first, count, rows, rows)

    def _view(self, first: int) -> NDArray[Any] | None:
        """Return, without a copy, the rows of a chunk that is in memory.

        A chunk at the end of the first dimension may have fewer rows.
        """
        view = self.array.view_box(self._box(first))
        if view is None or not view.flags.c_contiguous:
            return None
        rows = view.shape[0] * math.prod(self.chunk[1:]) if self.depth else 1
        return view.reshape(rows, self.width) if view.size == rows * self.width else None

    def write(self, runs: RowRuns) -> None:
        """Write whole chunks."""
        for chunk, values in zip(runs.first, self._by_chunk(runs.rows), strict=True):
            box = self._box(int(chunk))
            inside = tuple(slice(0, dim_range.stop - dim_range.start) for dim_range in box)
            self.array.write_box(box, values[inside])

    def _by_chunk(self, rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield each chunk of rows with the dimensions of the chunk, up to NumPy's maximum rank."""
        shape = (*self.chunk, *(stop - start for start, stop in self.panel.box))
        for start in range(0, len(rows), self.chunk_rows):
            yield rows[start : start + self.chunk_rows].reshape(shape)

    def _boxes_of(self, row_numbers: Ints) -> Iterator[Box]:
        """Yield the boxes of the chunks that contain sorted numbers."""
        chunks, _ = self.runs(without_duplicates(row_numbers), 0)
        yield from map(self._box, chunks.tolist())

    def _box(self, first: int) -> Box:
        corner = np.unravel_index(first // self.chunk_rows, self.grid) if self.grid else ()
        keyed = (
            slice(int(i) * c, min((int(i) + 1) * c, n))
            for i, c, n in zip(corner, self.chunk, self.array.shape, strict=False)
        )
        return (*keyed, *(slice(*dim_range) for dim_range in self.panel.box))


class BoxLayout:
    """The rows of an array in chunks, numbered chunk by chunk."""

    def __init__(self, array: BoxArray, depth: int, budget: Budget) -> None:
        self.array, self.depth, self.budget = array, depth, budget
        self.row_shape = array.shape[depth:]

    def panels(self) -> Iterator[Panel]:
        """Divide the rows into as few panels as memory allows."""
        chunks, item = self.array.chunks, self.array.dtype.itemsize
        rows, chunk_of_row = math.prod(chunks[: self.depth]), chunks[self.depth :]
        panel_shape = largest_box(
            self.row_shape, item * rows, self.budget.window, least_extents=chunk_of_row
        )
        return panels(self.row_shape, panel_shape)

    def rows(self, panel: Panel) -> RowTable:
        """Return the table's rows in one panel."""
        return GridRows(self.array, self.depth, panel)
