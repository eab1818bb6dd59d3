"""Gather in windows. Rows are read in the order of the storage and placed as requested."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.durable.journal import ALL, COLUMNS, WINDOW, Record
from gatherum.files.durable.sinks import FileSink
from gatherum.files.job import Job
from gatherum.files.resources.disk import byte_view
from gatherum.files.resources.resources import REQUEST_BYTES
from gatherum.files.row_access.flat import FlatArray, FlatRows
from gatherum.files.row_access.table import (
    CACHED_SHARE,
    Panel,
    RowRuns,
    RowsToRead,
    RowTable,
    computed_ahead,
    is_long,
)
from gatherum.files.row_access.writer import Writer

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
PIECE_BYTES = 1 << 20  # bytes that are written while they are in the cache of the processor
SERIAL_PIECES = 8  # up to this number of pieces, one thread is faster than two


class Windows:
    """The windows of a gather's output `out`. The requests of a window fit in memory."""

    def __init__(self, job: Job, out: FlatArray, panel: Panel, table: RowTable) -> None:
        self.table, self.out, self.panel, self.fill = table, out, panel, job.fill
        self.requests, self.budget, self.meter = job.requests, job.budget, job.meter
        self.row_length = out.size // self.requests.count
        self.covers_rows = panel.width == self.row_length
        self.row_bytes = max(1, panel.width * table.dtype.itemsize)
        self.length = self._length()
        self._written = FlatRows(out, (1,), self.row_length, panel)
        self._numbers_of_only_window: tuple[Ints, Mask | None] | None = None

    def _length(self) -> int:
        """Choose the number of requests of a window: all of them, if they fit in memory."""
        count, row, budget = self.requests.count, self.row_bytes, self.budget
        if self.table.is_chunked:
            return max(1, min(budget.window // row, budget.entries, count))
        if count * (row + REQUEST_BYTES) <= budget.whole_output:
            return count
        # two windows of rows are in memory: one is written while the next is filled
        return max(1, min(budget.window // row, budget.whole_output // (2 * row + REQUEST_BYTES)))

    @property
    def window_count(self) -> int:
        """The number of windows of the output."""
        return -(-self.requests.count // self.length)

    def keep_row_numbers(self) -> Ints:
        """Keep the row numbers of the only window, and return them."""
        self._numbers_of_only_window = self.row_numbers(0, self.requests.count)
        return self._numbers_of_only_window[0]

    def row_numbers(self, start: int, stop: int) -> tuple[Ints, Mask | None]:
        """Return the row numbers of requests, and a mask of invalid requests."""
        return self._numbers_of_only_window or self.requests.row_numbers(self.table, start, stop)

    def fetch(
        self, table: RowTable, wanted: RowsToRead, into: NDArray[Any], *, once: bool = False
    ) -> None:
        """Read rows of the table, or parked rows, to their positions in `into`."""
        limit = self.budget.piece
        self.meter.chunks_touched += table.fetch(wanted, into, limit=limit, once=once)

    def blank(self, rows: NDArray[Any], invalid: Mask | None) -> None:
        """Fill rows if some requests are invalid."""
        if invalid is not None:
            byte_view(rows)[:] = bytes(self.fill.tobytes()) * rows.size

    def write(self, start: int, rows: NDArray[Any]) -> None:
        """Write the rows of requests from `start` on."""
        first, count = np.array([start]), np.array([len(rows)])
        self._written.write(RowRuns(first, count, rows, rows))


class WindowPass:
    """Fills the windows of a gather's output in order. `cached` is the share of cached rows.

    For each window, its requests are sorted by row number, and those rows are read and placed. If
    the table is in the page cache and the rows are far apart, this is done for one piece of the
    window at a time, and rows of a page or more are read in the order of the requests.
    """

    def __init__(self, windows: Windows, cached: float) -> None:
        self.windows, self.requests, self.cached = windows, windows.requests, cached
        self._columns: Any = (
            ALL if windows.covers_rows else [list(p) for p in windows.panel.ranges[:1]]
        )

    def run(self, job: Job, sink: FileSink) -> None:
        """Write the output window by window."""
        windows, table, length = self.windows, self.windows.table, self.windows.length
        in_pieces = self.cached >= CACHED_SHARE and table.is_far_apart(length)
        piece = min(PIECE_BYTES, job.budget.piece)
        longest = max(1, piece // windows.row_bytes) if in_pieces else length
        order = (
            RowsToRead.in_request_order if in_pieces and is_long(table) else table.in_storage_order
        )
        pieces = self._pieces(self._finished(sink), longest, order)
        # A thread is started only if it has enough work.
        single_thread = (SERIAL_PIECES if in_pieces else 1) * longest >= self.requests.count
        with (
            Writer(table.width, table.dtype) as writer,
            closing(pieces if single_thread else computed_ahead(pieces)) as prepared,
        ):
            run_job = _call_now if single_thread else writer.run_later
            for start, stop, wanted, invalid in prepared:
                if wanted is not None:
                    rows = writer.rows(stop - start)
                    windows.blank(rows, invalid)
                    windows.fetch(table, wanted, rows)
                    run_job(windows.write, start, rows)
                job.meter.advance((stop - start) * windows.row_bytes)
                window = (stop - 1) // length * length
                if stop == min(window + length, self.requests.count) and wanted is not None:
                    nbytes = (stop - window) * windows.row_bytes
                    record: Record = {WINDOW: [window, stop], COLUMNS: self._columns}
                    run_job(sink.finish, record, nbytes)

    def _finished(self, sink: FileSink) -> list[tuple[int, int]]:
        """Return the requests that earlier runs have finished, in windows of any size."""
        earlier: list[tuple[int, int]] = []
        for record in sink.records():
            if WINDOW in record and record[COLUMNS] == self._columns:
                start, stop = record[WINDOW]
                earlier.append((start, stop))
        joined_ranges: list[tuple[int, int]] = []
        for start, stop in sorted(earlier):
            if joined_ranges and start <= joined_ranges[-1][1]:
                joined_ranges[-1] = joined_ranges[-1][0], max(stop, joined_ranges[-1][1])
            else:
                joined_ranges.append((start, stop))
        return joined_ranges

    def _pieces(
        self,
        finished: list[tuple[int, int]],
        longest: int,
        order: Callable[[Ints, Ints | None], RowsToRead],
    ) -> Generator[tuple[int, int, RowsToRead | None, Mask | None], None, None]:
        """Divide the windows into pieces.

        Yield start, stop, the rows to read, and a mask of invalid requests. The rows are None for a
        window that an earlier run has `finished`.
        """
        for start, stop in self.requests.windows(self.windows.length):
            if any(first <= start and stop <= last for first, last in finished):
                yield start, stop, None, None
                continue
            row_numbers, invalid = self.windows.row_numbers(start, stop)
            for begin in range(0, stop - start, longest):
                piece = slice(begin, min(begin + longest, stop - start))
                piece_numbers = row_numbers[piece]
                invalid_in_piece = None if invalid is None else invalid[piece]
                if invalid_in_piece is None or not invalid_in_piece.any():
                    yield start + begin, start + piece.stop, order(piece_numbers, None), None
                else:
                    positions = np.flatnonzero(~invalid_in_piece)
                    yield (
                        start + begin,
                        start + piece.stop,
                        order(piece_numbers[positions], positions),
                        invalid_in_piece,
                    )


def _call_now(function: Callable[..., object], *arguments: Any) -> None:
    function(*arguments)


def valid_numbers(row_numbers: Ints, invalid: Mask | None) -> Ints:
    """Return the numbers of the valid requests."""
    return row_numbers if invalid is None else row_numbers[~invalid]
