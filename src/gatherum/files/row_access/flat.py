"""Rows of a flat file, which the core reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._system import native
from gatherum.files.resources.disk import DiskFile, Reading, StoredRows, byte_view, pages_between
from gatherum.files.resources.resources import Budget

from .table import Ints, Panel, RowRuns, RowsToRead, RowTable, largest_box, panels

SAMPLES = 256
MINIMUM_SAMPLE_STEP = 8  # if there are few rows, every eighth row is sampled
FAR_APART = 8192  # bytes of the table per requested row from which sorting makes no rows adjacent
ANY_GAP = np.iinfo(np.int64).max  # pages between two rows up to which the core reads complete parts


@dataclass(frozen=True)
class FlatArray:
    """An array whose elements are contiguous in a file, in C order of `shape`."""

    file: DiskFile
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=object)) if self.shape else 1

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.dtype.itemsize

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the elements `start` to `stop` of the flattened array."""
        elements = np.empty(stop - start, self.dtype)
        self.file.read_into(self.offset + start * self.dtype.itemsize, byte_view(elements))
        return elements

    def write(self, start: int, elements: NDArray[Any]) -> None:
        """Write contiguous `elements` at position `start` of the flattened array."""
        self.file.write_from(self.offset + start * self.dtype.itemsize, byte_view(elements))


class FlatRows(RowTable):
    """Rows of a flat file: a panel of columns of consecutive rows.

    In the core, a row is a fixed number of bytes at a constant distance from the next row. The
    starts of the ranges of a panel are also multiples of one step. `strides` are the distances in
    rows between neighbours along each keyed dimension. `row_length` is the number of elements of a
    whole row.
    """

    is_chunked = False
    quantum = 1

    def __init__(
        self, array: FlatArray, strides: tuple[int, ...], row_length: int, panel: Panel
    ) -> None:
        self.array, self.strides = array, strides
        self.dtype, self.row_length = array.dtype, row_length
        self.panel, self.width = panel, panel.width
        self.extent = array.size // row_length if row_length else 0
        self._buffers = [np.empty((0, self.width), self.dtype) for _ in range(2)]
        self._capacity = 0
        self._place_ranges()

    def _place_ranges(self) -> None:
        """Compute the rows as the core defines them: the panel's ranges in every row."""
        item, ranges = self.dtype.itemsize, self.panel.ranges or ((0, 1),)
        (first, end), (last, _) = ranges[0], ranges[-1]
        step = ranges[1][0] - first if len(ranges) > 1 else max(1, self.row_length)
        self._per_row = max(1, self.row_length // step)
        self._ranges = np.array([(start - first) // step for start, _ in ranges], np.int64)
        extent = max(0, (self.extent - 1) * self._per_row + (last - first) // step + 1)
        first_position = self.array.offset + first * item
        self._stored = StoredRows(first_position, step * item, (end - first) * item, extent)

    def row_numbers_at(self, coordinates: Sequence[Ints | None], length: int) -> Ints:
        """Return the row numbers at the given keyed coordinates."""
        row_numbers: Ints | None = None
        for coordinate, stride in zip(coordinates, self.strides, strict=True):
            if coordinate is not None:
                scaled = coordinate if stride == 1 else coordinate * np.int64(stride)
                row_numbers = scaled if row_numbers is None else row_numbers + scaled
        return np.zeros(length, np.int64) if row_numbers is None else row_numbers

    # -------------------------------------------------- rows to positions in memory

    def in_storage_order(self, row_numbers: Ints, positions: Ints | None) -> RowsToRead:
        """Sort requests, unless they cover nearly all pages; the core then reads complete parts."""
        if self.array.file.in_memory:
            return RowsToRead.in_request_order(row_numbers, positions)
        if self.width == self.row_length and self._widest_gap(row_numbers) == ANY_GAP:
            return RowsToRead(row_numbers, positions, True)
        return RowsToRead.sorted(row_numbers, positions)

    def fetch(self, wanted: RowsToRead, into: NDArray[Any], *, limit: int, once: bool) -> int:
        """Read rows to their positions in `into`. Return the number of reads."""
        reading = Reading(self.array.file.waste if wanted.joins_neighbours else 1.0, once, limit)
        return self._read_rows(wanted.row_numbers, wanted.positions, into, reading)

    def _read_rows(
        self, row_numbers: Ints, positions: Ints | None, into: NDArray[Any], reading: Reading
    ) -> int:
        if row_numbers.size == 0:
            return 0
        ranges = self._ranges
        if ranges.size > 1:
            if positions is not None:
                positions = (positions[:, None] * ranges.size + np.arange(ranges.size)).reshape(-1)
            row_numbers = (row_numbers[:, None] * self._per_row + ranges).reshape(-1)
        flat = np.frombuffer(byte_view(into), np.uint8)
        return self.array.file.read_rows(self._stored, row_numbers, positions, flat, reading)

    def stop(self) -> None:
        """Cancel pending work, because the call is over."""
        self.array.file.stop()

    def cached_share(self, row_numbers: Ints) -> float:
        """Estimate the share of rows that are in the page cache. Return 0 if it is unknown."""
        sample = row_numbers[:: max(MINIMUM_SAMPLE_STEP, row_numbers.size // SAMPLES)] * np.int64(
            self._per_row
        )
        return self.array.file.cached_share(self._stored.base + sample * self._stored.stride)

    def is_far_apart(self, count: int) -> bool:
        """Return True if `count` rows are so far apart that sorting makes none of them adjacent."""
        return self._stored.extent * self._stored.stride >= FAR_APART * count

    # ------------------------------------------------------------ runs of rows

    def runs(self, row_numbers: Ints, most_rows: int) -> tuple[Ints, Ints]:
        """Return the runs of at most `most_rows` to read for sorted distinct `row_numbers`."""
        cuts = (
            np.flatnonzero(
                pages_between(self._whole(), row_numbers) > self._widest_gap(row_numbers)
            )
            + 1
        )
        first = row_numbers[np.r_[0, cuts]]
        count = row_numbers[np.r_[cuts, row_numbers.size] - 1] - first + 1
        if int(count.max()) <= most_rows:
            return first, count
        pieces = -(-count // most_rows)
        run_of_piece = np.repeat(np.arange(count.size), pieces)
        rows_before_piece = (
            np.arange(run_of_piece.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        ) * most_rows
        return first[run_of_piece] + rows_before_piece, np.minimum(
            count[run_of_piece] - rows_before_piece, most_rows
        )

    def _whole(self) -> StoredRows:
        """Return the positions of whole rows."""
        size = max(1, self.row_length * self.dtype.itemsize)
        return StoredRows(self.array.offset, size, size, self.extent)

    def _widest_gap(self, row_numbers: Ints) -> int:
        """Return the maximum gap in pages between two rows that is cheaper to read than to skip."""
        waste = self.array.file.waste
        return native.file_rows_bridge(self._whole(), np.ascontiguousarray(row_numbers), waste)

    def read(self, first: Ints, count: Ints) -> RowRuns:
        """Read runs of rows."""
        total = int(count.sum())
        space = self._buffer(total)
        rows = space[:total]
        if first.size == 1 and self.width == self.row_length:
            start = self.array.offset + int(first[0]) * self.row_length * self.dtype.itemsize
            self.array.file.read_into(start, byte_view(rows))
        else:
            within = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
            self._read_rows(np.repeat(first, count) + within, None, rows, Reading())
        return RowRuns(first, count, rows, space)

    def _buffer(self, rows: int) -> NDArray[Any]:
        """Return one of two buffers in turn. New memory would take longer than reading."""
        self._buffers.reverse()
        self._capacity = max(self._capacity, rows)
        if len(self._buffers[0]) < self._capacity:
            self._buffers[0] = np.empty((self._capacity, self.width), self.dtype)
        return self._buffers[0]

    def write(self, runs: RowRuns) -> None:
        """Write runs of rows."""
        spans = [(int(f), int(n)) for f, n in zip(runs.first, runs.count, strict=True)]
        view, written = byte_view(runs.rows), 0
        for offset, length in self._pieces(spans):
            self.array.file.write_from(offset, view[written : written + length])
            written += length

    def _pieces(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return byte offsets and lengths of runs of rows, in this panel."""
        first_position, item = self.array.offset, self.dtype.itemsize
        size = self.row_length * item
        if self.width == self.row_length:
            return [(first_position + first * size, count * size) for first, count in spans]
        return [
            (first_position + row * size + start * item, (stop - start) * item)
            for first, count in spans
            for row in range(first, first + count)
            for start, stop in self.panel.ranges
        ]


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
        panel_shape = largest_box(self.row_shape, self.array.dtype.itemsize, self.budget.piece)
        return panels(self.row_shape, panel_shape)

    def rows(self, panel: Panel) -> RowTable:
        """Return the table's rows in one panel."""
        return self.rows_of(self.array, panel)

    def rows_of(self, other: FlatArray, panel: Panel) -> RowTable:
        """Return the rows of another array with the same layout."""
        return FlatRows(other, self._strides, math.prod(self.row_shape), panel)
