"""Gathers: rows fetched in the order of the storage and placed in the order of the requests."""

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.budget import Budget
from gatherum.files.build import Build
from gatherum.files.disk import FlatArray, byte_view
from gatherum.files.partition import Buckets, Partition
from gatherum.files.requests import Requests
from gatherum.files.rows import PAGE, FlatRows, Panel, RowTable, blocks
from gatherum.files.stats import Meter
from gatherum.plan import apply

__all__ = ["Gather"]

Ints = NDArray[np.int64]
SETBACK_BYTES = 256 << 20
TAKEN_BYTES = 256 << 10  # rows between two places, small enough to stay in the cache
ENTRY = 48  # bytes for a request, as in Budget.entries
SPILLED = 3  # cost of an output byte that is parked and fetched back, in bytes read


@dataclass
class Survey:
    """What the first look at all indices found: none is refused, and how they are spread."""

    buckets: Buckets
    windowed_bytes: int
    passed_bytes: int
    kept: tuple[Ints, NDArray[np.bool_] | None] | None


class Gather:
    """One gather: `table` rows to `out`, through windows of the output.

    Two ways give the same bytes. *Windowed*: for each window of the output, sort its requests
    by row number, read those rows, place them. *Passing*, when windows would read the same
    rows again and again: go through the table once, park each row in its window's part of the
    output file, then put each window in order. Parked windows lie one window further back than
    final ones, so that ordering a window never destroys what a killed run would need again.
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
        self.row_length = out.size // requests.count
        self.whole = panel.width == self.row_length
        row = max(1, panel.width * table.dtype.itemsize)
        self.row_bytes = row
        self.window = self._window_length()
        self._space = np.empty((0, panel.width), table.dtype)
        self.label = [list(part) for part in panel.ranges[:1]]

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
        parked = SPILLED * self.requests.count * self.row_bytes + survey.passed_bytes
        if self.windows > 1 and self.whole and survey.windowed_bytes > parked:
            self.pass_once(survey.buckets)
        else:
            self.go_by_windows(survey)

    @property
    def windows(self) -> int:
        """How many windows the output has."""
        return -(-self.requests.count // self.window)

    def survey(self) -> Survey:
        """Look at every index once, before anything is written."""
        buckets = Buckets(self.table.extent, self.table.quantum)
        if self.windows == 1:
            return Survey(buckets, 0, 0, self.numbers(0, self.requests.count))
        windowed = 0
        for start, stop in self.requests.windows(self.window):
            numbers, invalid = self.numbers(start, stop)
            windowed += self._cost(buckets, buckets.count(_valid(numbers, invalid)))
        return Survey(buckets, windowed, self._cost(buckets, buckets.counts), None)

    def _cost(self, buckets: Buckets, counts: Ints) -> int:
        """Estimate the bytes that reading so many rows of each bin takes."""
        whole = buckets.bin_rows * self.row_bytes
        return int(np.minimum(counts * (self.row_bytes + PAGE), whole).sum())

    def numbers(self, start: int, stop: int) -> tuple[Ints, NDArray[np.bool_] | None]:
        """Return the row numbers of requests, and which of them have none."""
        coordinates, invalid = self.requests.coordinates(start, stop)
        return self.table.number(coordinates, stop - start), invalid

    def fetch(self, numbers: Ints, into: NDArray[Any], places: Ints | None = None) -> None:
        """Read the rows with these numbers, in storage order, into `into[places]`."""
        order = np.argsort(numbers)
        ordered = numbers[order]
        if places is not None:
            order = places[order]
        step = max(1, TAKEN_BYTES // self.row_bytes)
        taken = np.empty((min(step, len(ordered)), self.panel.width), self.table.dtype)
        for start, stop, block in blocks(self.table, ordered, self.budget.block):
            self.meter.chunks_touched += block.first.size
            for at in range(start, stop, step):
                end = min(stop, at + step)
                local = block.locate(ordered[at:end])
                rows = apply("gather", block.space, local, out=taken[: end - at])
                apply("scatter_nd", into, order[at:end, None], rows, out=into)

    # ---------------------------------------------------------------- windowed

    def go_by_windows(self, survey: Survey) -> None:
        """Make the output window by window."""
        for start, stop in self.requests.windows(self.window):
            part = {"window": start, "columns": self.label}
            if not self.build.has(part):
                numbers, invalid = survey.kept or self.numbers(start, stop)
                rows = self._blank(stop - start, invalid)
                if invalid is None:
                    self.fetch(numbers, rows)
                else:
                    places = np.flatnonzero(~invalid)
                    self.fetch(numbers[places], rows, places)
                self._write(start, rows)
                self.build.finish(part, rows.nbytes)
            self.meter.advance((stop - start) * self.row_bytes)

    def _rows(self, count: int) -> NDArray[Any]:
        """Return space for rows, the same each time: fresh memory costs more than a copy."""
        if len(self._space) < count:
            self._space = np.empty((0, self.panel.width), self.table.dtype)
            self._space = np.empty((count, self.panel.width), self.table.dtype)
        return self._space[:count]

    def _blank(self, count: int, invalid: NDArray[np.bool_] | None) -> NDArray[Any]:
        rows = self._rows(count)
        if invalid is not None:
            byte_view(rows)[:] = bytes(self.fill.tobytes()) * rows.size
        return rows

    def _write(self, start: int, rows: NDArray[Any]) -> None:
        if self.whole:
            self.out.write(start * self.row_length, rows)
            return
        done = 0
        for first, last in self.panel.ranges:
            part = np.ascontiguousarray(rows[:, done : done + last - first])
            done += last - first
            for row, values in enumerate(part, start):
                self.out.write(row * self.row_length + first, values)

    # ----------------------------------------------------------------- passing

    def pass_once(self, buckets: Buckets) -> None:
        """Go through the table once, park the rows by window, then order each window."""
        buckets.settle(self.window)
        window_bytes = self.window * self.row_bytes
        setback = min(self.windows, max(1, SETBACK_BYTES // window_bytes))
        parked = replace(self.out, offset=self.out.offset + setback * window_bytes)
        self.out.file.grow(parked.offset + self.out.nbytes)
        self.meter.expect(self.requests.count * self.row_bytes)
        self._park(buckets, parked)
        for number, (start, stop) in enumerate(self.requests.windows(self.window), 1):
            part = {"ordered": start}
            if not self.build.has(part):
                rows = self._ordered(buckets, parked, start, stop)
                self._write(start, rows)
                self.build.finish(part, rows.nbytes)
            if number % setback == 0:
                # the next windows are written over the parked rows of these
                self.build.checkpoint()
            self.meter.advance((stop - start) * self.row_bytes)

    def _park(self, buckets: Buckets, parked: FlatArray) -> None:
        passed = [self.build.has({"passed": b}) for b in range(buckets.sizes.size)]
        if all(passed):
            self.meter.advance(self.requests.count * self.row_bytes)
            return
        arrived = np.zeros(self.windows, np.int64)
        int64 = np.dtype(np.int64)
        with closing(
            Partition(
                buckets,
                [(int64, 1), (int64, 1)],
                resident=self.budget.window,
                directory=self.spill_dir,
                meter=self.meter,
            )
        ) as partition:
            for start, stop in self.requests.windows(self.window):
                numbers, invalid = self.numbers(start, stop)
                places = np.arange(start, stop)
                if invalid is not None:
                    numbers, places = numbers[~invalid], places[~invalid]
                done = np.array(passed)[buckets.of(numbers)]
                arrived += np.bincount(places[done] // self.window, minlength=self.windows)
                partition.put(numbers, numbers, places)
            for bucket in np.flatnonzero(~np.array(passed)).tolist():
                for numbers, places in partition.slices(bucket, self.window):
                    self._park_slice(numbers[:, 0], places[:, 0], arrived, parked)
                nbytes = int(buckets.sizes[bucket]) * self.row_bytes
                self.build.finish({"passed": bucket}, nbytes)
                self.meter.advance(nbytes)

    def _park_slice(self, numbers: Ints, places: Ints, arrived: Ints, parked: FlatArray) -> None:
        rows = self._rows(numbers.size)
        self.fetch(numbers, rows)
        window = places // self.window
        cuts = np.flatnonzero(np.diff(window)) + 1
        for start, stop in zip(np.r_[0, cuts], np.r_[cuts, window.size], strict=True):
            into = int(window[start])
            row = into * self.window + int(arrived[into])
            parked.write(row * self.row_length, rows[start:stop])
            arrived[into] += stop - start

    def _ordered(self, buckets: Buckets, parked: FlatArray, start: int, stop: int) -> NDArray[Any]:
        """Return a window's rows in the order of its requests; they arrived bucket by bucket."""
        numbers, invalid = self.numbers(start, stop)
        places = np.arange(stop - start) if invalid is None else np.flatnonzero(~invalid)
        order = places[np.argsort(buckets.of(numbers[places]), kind="stable")]
        rows = self._blank(stop - start, invalid)
        step = max(1, self.budget.block // self.row_bytes)
        for at in range(0, order.size, step):
            end = min(order.size, at + step)
            first = (start + at) * self.row_length
            arrived = parked.read(first, first + (end - at) * self.row_length)
            apply("scatter_nd", rows, order[at:end, None], arrived.reshape(end - at, -1), out=rows)
        return rows


def _valid(numbers: Ints, invalid: NDArray[np.bool_] | None) -> Ints:
    return numbers if invalid is None else numbers[~invalid]
