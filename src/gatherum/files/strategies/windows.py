"""Windows of a gather: rows are read in the order of the storage, and placed as requested."""

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.durable.context import Context
from gatherum.files.durable.journal import ALL, COLUMNS, WINDOW, Record
from gatherum.files.resources.disk import PAGE, byte_view
from gatherum.files.row_access.flat import FlatArray, FlatRows
from gatherum.files.row_access.table import Block, Panel, RowTable, Wanted, ahead
from gatherum.files.row_access.writer import Writer

__all__ = ["Windows", "best_order", "valid"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
ENTRY = 48  # bytes for a request, as in Budget.entries
CACHED_SHARE = 0.95  # from this share on, rows count as cached
PIECE = 1 << 20  # bytes that are written while they are still in the processor's cache
ALONE = 8  # up to this number of pieces, one thread is faster than two
FEW = 4096  # up to this number of rows, sorting is faster than checking the page cache


class Windows:
    """The windows of a gather's output, filled in order. `fill` is the item for invalid indices.

    For each window, its requests are sorted by row number, and those rows are read and placed. If
    the table is in the page cache and the rows are far apart, this is done for one piece of the
    window at a time, and rows of a page or more are read in the order of the requests.
    """

    def __init__(
        self, context: Context, table: RowTable, out: FlatArray, panel: Panel, fill: NDArray[Any]
    ) -> None:
        self.context, self.table, self.out, self.panel = context, table, out, panel
        self.fill, self.requests, self.build = fill, context.requests, context.build
        self.row_length = out.size // self.requests.count
        self.whole = panel.width == self.row_length
        self.row_bytes = max(1, panel.width * table.dtype.itemsize)
        self.length = self._length()
        self._written = FlatRows(out, (1,), self.row_length, panel)
        self.label = [list(part) for part in panel.ranges[:1]]
        self._kept: tuple[Ints, Mask | None] | None = None

    def _length(self) -> int:
        """Choose the number of requests of a window: all of them, if they fit in memory."""
        count, row, budget = self.requests.count, self.row_bytes, self.context.budget
        if self.table.chunked:
            return max(1, min(budget.window // row, budget.entries, count))
        if count * (row + ENTRY) <= budget.whole:
            return count
        # two windows of rows are in memory: one is written while the next is filled
        return max(1, min(budget.window // row, budget.whole // (2 * row + ENTRY)))

    @property
    def number(self) -> int:
        """The number of windows of the output."""
        return -(-self.requests.count // self.length)

    def keep_numbers(self) -> Ints:
        """Keep the row numbers of the only window, and return them."""
        self._kept = self.numbers(0, self.requests.count)
        return self._kept[0]

    def numbers(self, start: int, stop: int) -> tuple[Ints, Mask | None]:
        """Return the row numbers of requests, and a mask of invalid requests."""
        return self._kept or self.requests.numbers(self.table, start, stop)

    def run(self, cached: float, writer: Writer) -> None:
        """Write the output window by window."""
        in_pieces = cached >= CACHED_SHARE and self.table.is_far_apart(self.length)
        piece = min(PIECE, self.context.budget.block)
        longest = max(1, piece // self.row_bytes) if in_pieces else self.length
        pieces = self._pieces(
            longest, Wanted.as_asked if in_pieces and is_long(self.table) else self.table.ordered
        )
        # A thread is started only if it has enough work.
        single_thread = (ALONE if in_pieces else 1) * longest >= self.requests.count
        do = _at_once if single_thread else writer.put
        with closing(pieces if single_thread else ahead(pieces)) as prepared:
            for start, stop, wanted, bad in prepared:
                if wanted is not None:
                    rows = writer.rows(stop - start)
                    self.blank(rows, bad)
                    self.fetch(self.table, wanted, rows)
                    do(self.write, start, rows)
                self.context.meter.advance((stop - start) * self.row_bytes)
                window = (stop - 1) // self.length * self.length
                if stop == min(window + self.length, self.requests.count) and wanted is not None:
                    nbytes = (stop - window) * self.row_bytes
                    part: Record = {WINDOW: [window, stop], COLUMNS: self._columns}
                    do(self.build.finish, part, nbytes)

    @property
    def _columns(self) -> Any:
        return ALL if self.whole else self.label

    def _finished(self) -> list[tuple[int, int]]:
        """Return the requests that earlier runs have finished, in windows of any sizes."""
        windows: list[tuple[int, int]] = []
        for record in self.build.records():
            if WINDOW in record and record[COLUMNS] == self._columns:
                start, stop = record[WINDOW]
                windows.append((start, stop))
        joined: list[tuple[int, int]] = []
        for start, stop in sorted(windows):
            if joined and start <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(stop, joined[-1][1])
            else:
                joined.append((start, stop))
        return joined

    def _pieces(
        self, longest: int, order: Callable[[Ints, Ints | None], Wanted]
    ) -> Generator[tuple[int, int, Wanted | None, Mask | None], None, None]:
        """Divide the windows into pieces.

        Yield start, stop, the rows to read, and a mask of invalid requests. The rows are None for a
        window that an earlier run has finished.
        """
        finished = self._finished()
        for start, stop in self.requests.windows(self.length):
            if any(first <= start and stop <= last for first, last in finished):
                yield start, stop, None, None
                continue
            numbers, invalid = self.numbers(start, stop)
            for at in range(0, stop - start, longest):
                piece = slice(at, min(at + longest, stop - start))
                wanted, bad = numbers[piece], None if invalid is None else invalid[piece]
                if bad is None or not bad.any():
                    yield start + at, start + piece.stop, order(wanted, None), None
                else:
                    places = np.flatnonzero(~bad)
                    yield start + at, start + piece.stop, order(wanted[places], places), bad

    def fetch(
        self, table: RowTable, wanted: Wanted, into: NDArray[Any], *, once: bool = False
    ) -> None:
        """Read rows of the table, or parked rows, to their positions in `into`."""
        limit = self.context.budget.block
        self.context.meter.chunks_touched += table.fetch(wanted, into, limit=limit, once=once)

    def blank(self, rows: NDArray[Any], invalid: Mask | None) -> None:
        """Fill rows if some requests are invalid."""
        if invalid is not None:
            byte_view(rows)[:] = bytes(self.fill.tobytes()) * rows.size

    def write(self, start: int, rows: NDArray[Any]) -> None:
        """Write the rows of requests from `start` on."""
        first, count = np.array([start]), np.array([len(rows)])
        self._written.write(Block(first, count, rows, rows))


def _at_once(job: Callable[..., object], *arguments: Any) -> None:
    job(*arguments)


def best_order(table: RowTable, numbers: Ints, places: Ints | None) -> Wanted:
    """Sort rows by the order that is cheapest to read."""
    in_request_order = numbers.size > FEW and is_long(table) and table.is_far_apart(numbers.size)
    if in_request_order and table.cached_share(numbers) >= CACHED_SHARE:
        return Wanted.as_asked(numbers, places)
    return table.ordered(numbers, places)


def is_long(table: RowTable) -> bool:
    """Return True if rows are so long that sorted rows share neither a page nor its lookup."""
    return table.width * table.dtype.itemsize >= PAGE


def valid(numbers: Ints, invalid: Mask | None) -> Ints:
    """Return the numbers of the valid requests."""
    return numbers if invalid is None else numbers[~invalid]
