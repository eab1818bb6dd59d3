"""One pass over a table whose rows a gather's windows would read again and again.

Each row is parked in the part of the output file that belongs to its window; then each window is
put in order. Parked windows lie further back in the file than final ones, so that ordering a window
never destroys what a killed run would need again.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gatherum.files.fetching import Fetcher, Wanted, ahead
from gatherum.files.partition import Buckets, Partition
from gatherum.files.rows import FlatRows
from gatherum.files.writer import Writer

if TYPE_CHECKING:
    from gatherum.files.gathering import Gather

__all__ = ["Passing"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
SETBACK_BYTES = 256 << 20


class Passing:
    """The second way of a gather.

    Parameters
    ----------
    gather : Gather
        What is gathered.
    buckets : Buckets
        All its requests, counted.
    writer : Writer
        Writes rows while the next ones are read.
    """

    def __init__(self, gather: "Gather", buckets: Buckets, writer: Writer) -> None:
        self.gather, self.buckets, self.writer = gather, buckets, writer
        self.requests, self.build = gather.requests, gather.build
        self.window, self.row_bytes = gather.window, gather.row_bytes
        self.windows = gather.windows
        window_bytes = self.window * self.row_bytes
        self.setback = min(self.windows, max(1, SETBACK_BYTES // window_bytes))
        offset = gather.out.offset + self.setback * window_bytes
        self.parked = replace(gather.out, offset=offset)
        rows = FlatRows(self.parked, (1,), gather.row_length, gather.panel)
        self.fetcher = Fetcher(rows, gather.budget.block, gather.meter)

    def run(self) -> None:
        """Go through the table once, then order each window."""
        self.buckets.settle(self.window)
        self.parked.file.grow(self.parked.offset + self.parked.nbytes)
        self.gather.meter.expect(self.requests.count * self.row_bytes)
        self._park()
        self.writer.drain()
        with closing(ahead(self._windows())) as prepared:
            for number, (start, stop, wanted, invalid) in enumerate(prepared, 1):
                if wanted is not None:
                    rows = self.writer.rows(stop - start)
                    self.gather.blank(rows, invalid)
                    self.fetcher.fetch(wanted, rows)
                    self.writer.put(self.gather.write, start, rows)
                    self.writer.put(self.build.finish, {"ordered": start}, rows.nbytes)
                if number % self.setback == 0:
                    # the next windows are written over the parked rows of these
                    self.writer.put(self.build.checkpoint)
                self.gather.meter.advance((stop - start) * self.row_bytes)

    def _windows(self) -> Iterator[tuple[int, int, Wanted | None, Mask | None]]:
        """Return the windows, and the rows that each takes; they arrived bucket by bucket.

        Nothing is wanted of a window that an earlier run has finished.
        """
        for start, stop in self.requests.windows(self.window):
            if self.build.has({"ordered": start}):
                yield start, stop, None, None
                continue
            numbers, invalid = self.gather.numbers(start, stop)
            places = np.arange(stop - start) if invalid is None else np.flatnonzero(~invalid)
            order = places[np.argsort(self.buckets.of(numbers[places]), kind="stable")]
            arrived = np.arange(start, start + order.size)
            yield start, stop, Wanted(arrived, order, True), invalid

    def _park(self) -> None:
        buckets = self.buckets
        passed = np.array([self.build.has({"passed": b}) for b in range(buckets.sizes.size)])
        if passed.all():
            self.gather.meter.advance(self.requests.count * self.row_bytes)
            return
        arrived = np.zeros(self.windows, np.int64)
        int64 = np.dtype(np.int64)
        with closing(
            Partition(
                buckets,
                [(int64, 1), (int64, 1)],
                resident=self.gather.budget.window,
                directory=self.gather.spill_dir,
                meter=self.gather.meter,
            )
        ) as partition:
            for start, stop in self.requests.windows(self.window):
                numbers, invalid = self.gather.numbers(start, stop)
                places = np.arange(start, stop)
                if invalid is not None:
                    numbers, places = numbers[~invalid], places[~invalid]
                done = passed[buckets.of(numbers)]
                arrived += np.bincount(places[done] // self.window, minlength=self.windows)
                partition.put(numbers, numbers, places)
            with closing(ahead(self._slices(partition, passed, arrived))) as prepared:
                for bucket, wanted, cuts, rows_at in prepared:
                    if wanted is None:
                        nbytes = int(buckets.sizes[bucket]) * self.row_bytes
                        self.writer.put(self.build.finish, {"passed": bucket}, nbytes)
                        self.gather.meter.advance(nbytes)
                        continue
                    rows = self.writer.rows(wanted.numbers.size)
                    self.gather.fetcher.fetch(wanted, rows, once=True)
                    for start, stop, row in zip(cuts, cuts[1:], rows_at, strict=False):
                        at = row * self.gather.row_length
                        self.writer.put(self.parked.write, at, rows[start:stop])

    def _slices(
        self, partition: Partition, passed: Mask, arrived: Ints
    ) -> Iterator[tuple[int, Wanted | None, list[int], list[int]]]:
        """Return the rows to park, bucket by bucket, and where runs of them go.

        Row `cuts[i]` and those behind it go to `rows_at[i]`, up to the next cut. `arrived` counts
        the rows that each window has. Nothing is wanted at the end of a bucket.
        """
        for bucket in np.flatnonzero(~passed).tolist():
            for numbers, places in partition.slices(bucket, self.window):
                window = places[:, 0] // self.window
                cuts = np.r_[0, np.flatnonzero(np.diff(window)) + 1, window.size]
                into = window[cuts[:-1]]
                rows_at = into * self.window + arrived[into]
                arrived[into] += np.diff(cuts)
                yield bucket, Wanted.sorted(numbers[:, 0]), cuts.tolist(), rows_at.tolist()
            yield bucket, None, [], []
