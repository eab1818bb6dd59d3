"""Gather in one pass over a table, if windows would read the same rows repeatedly.

Each row is first stored unsorted ("parked") in its window's part of the output file. Then each
window is sorted. Parked windows are stored after the final ones in the file, so that sorting a
window never destroys data that a killed run would need again.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gatherum.files.durable.sinks import FileSink
from gatherum.files.job import Job
from gatherum.files.row_access.flat import FlatRows
from gatherum.files.row_access.partition import Buckets, Partition
from gatherum.files.row_access.table import Wanted, ahead
from gatherum.files.row_access.writer import Writer

from .windows import Windows

__all__ = ["TablePass"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
SETBACK_BYTES = 256 << 20


class TablePass:
    """One pass over the table: a gather's second strategy. `buckets` has counted all requests."""

    def __init__(self, windows: Windows, buckets: Buckets) -> None:
        self.windows, self.buckets, self.requests = windows, buckets, windows.requests
        self.window, self.row_bytes = windows.length, windows.row_bytes
        window_bytes = self.window * self.row_bytes
        self.setback = min(windows.window_count, max(1, SETBACK_BYTES // window_bytes))
        offset = windows.out.offset + self.setback * window_bytes
        self.parked = replace(windows.out, offset=offset)
        self.arrived = FlatRows(self.parked, (1,), windows.row_length, windows.panel)

    def run(self, job: Job, sink: FileSink) -> None:
        """Read the table once, then sort each window."""
        self.buckets.settle(self.window)
        self.parked.file.grow(self.parked.offset + self.parked.nbytes)
        job.meter.expect(self.requests.count * self.row_bytes)
        with Writer(self.windows.table.width, self.windows.table.dtype) as writer:
            self._park(job, sink, writer)
            writer.drain()
            self._sort(job, sink, writer)

    def _sort(self, job: Job, sink: FileSink, writer: Writer) -> None:
        """Sort the parked rows of each window."""
        with closing(ahead(self._windows(sink))) as prepared:
            for done, (start, stop, wanted, invalid) in enumerate(prepared, 1):
                if wanted is not None:
                    rows = writer.rows(stop - start)
                    self.windows.blank(rows, invalid)
                    self.windows.fetch(self.arrived, wanted, rows)
                    writer.put(self.windows.write, start, rows)
                    writer.put(sink.finish, {"ordered": start}, rows.nbytes)
                if done % self.setback == 0:
                    # the next windows overwrite the parked rows of these
                    writer.put(sink.checkpoint)
                job.meter.advance((stop - start) * self.row_bytes)

    def _windows(self, sink: FileSink) -> Iterator[tuple[int, int, Wanted | None, Mask | None]]:
        """Yield the windows, and the parked rows of each. Rows were parked bucket by bucket.

        The rows are None for a window that an earlier run has finished.
        """
        for start, stop in self.requests.windows(self.window):
            if sink.has({"ordered": start}):
                yield start, stop, None, None
                continue
            row_numbers, invalid = self.windows.row_numbers(start, stop)
            positions = np.arange(stop - start) if invalid is None else np.flatnonzero(~invalid)
            order = positions[np.argsort(self.buckets.of(row_numbers[positions]), kind="stable")]
            arrived = np.arange(start, start + order.size)
            yield start, stop, Wanted(arrived, order, True), invalid

    def _park(self, job: Job, sink: FileSink, writer: Writer) -> None:
        """Read the rows of each bucket, and park them in the windows that request them."""
        buckets = self.buckets
        passed = np.array([sink.has({"passed": b}) for b in range(buckets.sizes.size)])
        if passed.all():
            job.meter.advance(self.requests.count * self.row_bytes)
            return
        arrived = np.zeros(self.windows.window_count, np.int64)
        columns = [(np.dtype(np.int64), 1)] * 2
        kept = Partition(buckets, columns, job.budget.window, job.resources.scratch)
        with closing(kept) as partition:
            for start, stop in self.requests.windows(self.window):
                row_numbers, invalid = self.windows.row_numbers(start, stop)
                positions = np.arange(start, stop)
                if invalid is not None:
                    row_numbers, positions = row_numbers[~invalid], positions[~invalid]
                done = passed[buckets.of(row_numbers)]
                arrived += np.bincount(
                    positions[done] // self.window, minlength=self.windows.window_count
                )
                partition.put(row_numbers, row_numbers, positions)
            with closing(ahead(self._slices(partition, passed, arrived))) as prepared:
                for bucket, wanted, cuts, rows_at in prepared:
                    if wanted is None:
                        nbytes = int(buckets.sizes[bucket]) * self.row_bytes
                        writer.put(sink.finish, {"passed": bucket}, nbytes)
                        job.meter.advance(nbytes)
                        continue
                    rows = writer.rows(wanted.row_numbers.size)
                    self.windows.fetch(self.windows.table, wanted, rows, once=True)
                    for start, stop, row in zip(cuts, cuts[1:], rows_at, strict=False):
                        position = row * self.windows.row_length
                        writer.put(self.parked.write, position, rows[start:stop])

    def _slices(
        self, partition: Partition, passed: Mask, arrived: Ints
    ) -> Iterator[tuple[int, Wanted | None, list[int], list[int]]]:
        """Yield the rows to park, bucket by bucket, and the positions of their runs.

        The rows from `cuts[i]` to the next cut are written to `rows_at[i]` and following. `arrived`
        counts the parked rows of each window. The rows are None at the end of a bucket.
        """
        for bucket in np.flatnonzero(~passed).tolist():
            for row_numbers, positions in partition.slices(bucket, self.window):
                window = positions[:, 0] // self.window
                cuts = np.r_[0, np.flatnonzero(np.diff(window)) + 1, window.size]
                into = window[cuts[:-1]]
                rows_at = into * self.window + arrived[into]
                arrived[into] += np.diff(cuts)
                yield bucket, Wanted.sorted(row_numbers[:, 0]), cuts.tolist(), rows_at.tolist()
            yield bucket, None, [], []
