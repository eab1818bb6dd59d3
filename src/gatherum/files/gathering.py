"""Gathers: rows fetched in the order of the storage and placed in the order of the requests."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.budget import Budget
from gatherum.files.build import Build
from gatherum.files.disk import FlatArray, byte_view
from gatherum.files.fetching import CACHED_SHARE, Fetcher, Wanted, ahead
from gatherum.files.journal import Record
from gatherum.files.partition import Buckets
from gatherum.files.passing import Passing
from gatherum.files.requests import Requests
from gatherum.files.rows import PAGE, FlatRows, Panel, RowTable
from gatherum.files.stats import Meter
from gatherum.files.writer import Writer

__all__ = ["Gather"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
ENTRY = 48  # bytes for a request, as in Budget.entries
SPILLED = 3  # cost of an output byte that is parked and fetched back, in bytes read


@dataclass
class Survey:
    """What the first look at all indices found: none is refused, and how they are spread."""

    buckets: Buckets
    windowed_bytes: int
    passed_bytes: int
    cached: float  # the share of the wanted rows that waits in memory


class Gather:
    """One gather: `table` rows to `out`, through windows of the output.

    Two ways give the same bytes. *Windowed*: for each window of the output, sort its requests
    by row number, read those rows, place them; where the table waits in memory, rows are read in
    the order of the requests instead, a piece of the window at a time. *Passing*, when windows
    would read the same rows again and again from the disk.
    """

    def __init__(
        self,
        table: RowTable,
        requests: Requests,
        out: FlatArray,
        panel: Panel,
        *,
        fill: NDArray[Any],
        budget: Budget,
        build: Build,
        spill_dir: str,
        meter: Meter,
    ) -> None:
        self.table, self.requests, self.out, self.panel = table, requests, out, panel
        self.fill, self.budget, self.build = fill, budget, build
        self.spill_dir, self.meter = spill_dir, meter
        self.fetcher = Fetcher(table, budget.block, meter)
        self.row_length = out.size // requests.count
        self.whole = panel.width == self.row_length
        self.row_bytes = max(1, panel.width * table.dtype.itemsize)
        self.window = self._window_length()
        self.label = [list(part) for part in panel.ranges[:1]]
        self._kept: tuple[Ints, Mask | None] | None = None

    def _window_length(self) -> int:
        """Choose how many requests make a window of the output: all, where they fit in memory."""
        count, row, budget = self.requests.count, self.row_bytes, self.budget
        # chunks of a grid may take half of the budget each, blocks of a flat file are small
        holds_all = isinstance(self.table, FlatRows) and count * (row + ENTRY) <= budget.whole
        most = count if holds_all else budget.window // row
        return max(1, min(most, budget.entries, count))

    def run(self) -> None:
        """Check every index, then gather."""
        survey = self.survey()
        self.meter.expect(self.requests.count * self.row_bytes)
        with Writer(self.panel.width, self.table.dtype) as writer:
            if self._passes(survey):
                Passing(self, survey.buckets, writer).run()
            else:
                self.go_by_windows(survey.cached, writer)

    def _passes(self, survey: Survey) -> bool:
        """Whether one pass over the table is cheaper; a run that is resumed keeps its way."""
        if self.windows == 1 or not self.whole:
            return False
        if self.build.records():
            return any("passed" in record for record in self.build.records())
        parked = SPILLED * self.requests.count * self.row_bytes
        return (survey.windowed_bytes - survey.passed_bytes) * (1 - survey.cached) > parked

    @property
    def windows(self) -> int:
        """How many windows the output has."""
        return -(-self.requests.count // self.window)

    def survey(self) -> Survey:
        """Look at every index once, before anything is written."""
        buckets = Buckets(self.table.extent, self.table.quantum)
        if self.windows == 1:
            self._kept = self.numbers(0, self.requests.count)
            return Survey(buckets, 0, 0, self.fetcher.cached_share(self._kept[0]))
        windowed, cached = 0, 0.0
        for start, stop in self.requests.windows(self.window):
            numbers, invalid = self.numbers(start, stop)
            windowed += self._cost(buckets, buckets.count(valid(numbers, invalid)))
            if start == 0:
                cached = self.fetcher.cached_share(numbers)
        return Survey(buckets, windowed, self._cost(buckets, buckets.counts), cached)

    def _cost(self, buckets: Buckets, counts: Ints) -> int:
        """Estimate the bytes that reading so many rows of each bin takes."""
        whole = buckets.bin_rows * self.row_bytes
        return int(np.minimum(counts * (self.row_bytes + PAGE), whole).sum())

    def numbers(self, start: int, stop: int) -> tuple[Ints, Mask | None]:
        """Return the row numbers of requests, and which of them have none."""
        if self._kept is not None:
            return self._kept
        coordinates, invalid = self.requests.coordinates(start, stop)
        return self.table.number(coordinates, stop - start), invalid

    # ---------------------------------------------------------------- windowed

    def go_by_windows(self, cached: float, writer: Writer) -> None:
        """Make the output window by window."""
        in_pieces = cached >= CACHED_SHARE and self.fetcher.is_far_apart(self.window)
        longest = max(1, self.budget.block // self.row_bytes) if in_pieces else self.window
        pieces = self._pieces(longest, Wanted.as_asked if in_pieces else Wanted.sorted)
        with closing(ahead(pieces)) as prepared:
            for start, stop, wanted, bad in prepared:
                if wanted is not None:
                    rows = writer.rows(stop - start)
                    self.blank(rows, bad)
                    self.fetcher.fetch(wanted, rows)
                    writer.put(self.write, start, rows)
                self.meter.advance((stop - start) * self.row_bytes)
                window = (stop - 1) // self.window * self.window
                if stop == min(window + self.window, self.requests.count) and wanted is not None:
                    nbytes = (stop - window) * self.row_bytes
                    writer.put(self.build.finish, self._part(window), nbytes)

    def _part(self, window: int) -> Record:
        return {"window": window, "columns": self.label}

    def _pieces(
        self, longest: int, way: Callable[[Ints, Ints | None], Wanted]
    ) -> Iterator[tuple[int, int, Wanted | None, Mask | None]]:
        """Cut the windows into pieces: start, stop, what is wanted, and what has no row.

        Nothing is wanted of a window that an earlier run has finished.
        """
        for start, stop in self.requests.windows(self.window):
            if self.build.has(self._part(start)):
                yield start, stop, None, None
                continue
            numbers, invalid = self.numbers(start, stop)
            for at in range(0, stop - start, longest):
                piece = slice(at, min(at + longest, stop - start))
                wanted, bad = numbers[piece], None if invalid is None else invalid[piece]
                if bad is None or not bad.any():
                    yield start + at, start + piece.stop, way(wanted, None), None
                else:
                    places = np.flatnonzero(~bad)
                    yield start + at, start + piece.stop, way(wanted[places], places), bad

    def blank(self, rows: NDArray[Any], invalid: Mask | None) -> None:
        """Fill rows of which some request has none."""
        if invalid is not None:
            byte_view(rows)[:] = bytes(self.fill.tobytes()) * rows.size

    def write(self, start: int, rows: NDArray[Any]) -> None:
        """Write the rows of requests from `start` on."""
        if self.whole:
            self.out.write(start * self.row_length, rows)
            return
        done = 0
        for first, last in self.panel.ranges:
            part = np.ascontiguousarray(rows[:, done : done + last - first])
            done += last - first
            for row, values in enumerate(part, start):
                self.out.write(row * self.row_length + first, values)


def valid(numbers: Ints, invalid: Mask | None) -> Ints:
    """Return the numbers of the requests that have one."""
    return numbers if invalid is None else numbers[~invalid]
