"""Gather in one pass over a table, if windows would read the same rows repeatedly.

Each row is first stored unsorted ("parked") in its window's part of the output file. Then each
window is sorted. Parked windows are stored after the final ones in the file, so that sorting a
window never destroys data that a killed run would need again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gatherum.files.durable.sinks import FileSink
from gatherum.files.job import Job
from gatherum.files.row_access.flat import FlatRows
from gatherum.files.row_access.partition import Buckets, Partition
from gatherum.files.row_access.table import RowsToRead, computed_ahead
from gatherum.files.row_access.writer import Writer

from .windows import Windows

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
GAP_BYTES = 256 << 20  # between a window and its parked rows


class TablePass:
    """One pass over the table: a gather's second strategy. `buckets` has counted all requests."""

    def __init__(self, windows: Windows, buckets: Buckets) -> None:
        self.windows, self.buckets, self.requests = windows, buckets, windows.requests
        self.window_length, self.row_bytes = windows.length, windows.row_bytes
        window_bytes = self.window_length * self.row_bytes
        self.gap_windows = min(windows.window_count, max(1, GAP_BYTES // window_bytes))
        offset = windows.out.offset + self.gap_windows * window_bytes
        self.parked_array = replace(windows.out, offset=offset)
        self.parked_rows = FlatRows(self.parked_array, (1,), windows.row_length, windows.panel)

    def run(self, job: Job, sink: FileSink) -> None:
        """Read the table once, then sort each window."""
        self.buckets.settle(self.window_length)
        self.parked_array.file.grow(self.parked_array.offset + self.parked_array.nbytes)
        job.meter.expect(self.requests.count * self.row_bytes)
        with Writer(self.windows.table.width, self.windows.table.dtype) as writer:
            self._park(job, sink, writer)
            writer.drain()
            self._sort(job, sink, writer)

    def _sort(self, job: Job, sink: FileSink, writer: Writer) -> None:
        """Sort the parked rows of each window."""
        with closing(computed_ahead(self._windows(sink))) as prepared:
            for window_count, (start, stop, wanted, invalid) in enumerate(prepared, 1):
                if wanted is not None:
                    rows = writer.rows(stop - start)
                    self.windows.blank(rows, invalid)
                    self.windows.fetch(self.parked_rows, wanted, rows)
                    writer.run_later(self.windows.write, start, rows)
                    writer.run_later(sink.finish, {"ordered": start}, rows.nbytes)
                if window_count % self.gap_windows == 0:
                    # the next windows overwrite the parked rows of these windows
                    writer.run_later(sink.checkpoint)
                job.meter.advance((stop - start) * self.row_bytes)

    def _windows(self, sink: FileSink) -> Iterator[tuple[int, int, RowsToRead | None, Mask | None]]:
        """Yield the windows, and the parked rows of each. Rows were parked bucket by bucket.

        The rows are None for a window that an earlier run has finished.
        """
        for start, stop in self.requests.windows(self.window_length):
            if sink.has_finished({"ordered": start}):
                yield start, stop, None, None
                continue
            row_numbers, invalid = self.windows.row_numbers(start, stop)
            positions = np.arange(stop - start) if invalid is None else np.flatnonzero(~invalid)
            order = positions[np.argsort(self.buckets.of(row_numbers[positions]), kind="stable")]
            parked_numbers = np.arange(start, start + order.size)
            yield start, stop, RowsToRead(parked_numbers, order, True), invalid

    def _park(self, job: Job, sink: FileSink, writer: Writer) -> None:
        """Read the rows of each bucket, and park them in the windows that request them."""
        buckets = self.buckets
        is_parked = np.array([sink.has_finished({"passed": b}) for b in range(buckets.sizes.size)])
        if is_parked.all():
            job.meter.advance(self.requests.count * self.row_bytes)
            return
        parked_counts = np.zeros(self.windows.window_count, np.int64)  # of each window
        columns = [(np.dtype(np.int64), 1)] * 2
        partition = Partition(buckets, columns, job.budget.window, job.resources.scratch)
        with closing(partition):
            for start, stop in self.requests.windows(self.window_length):
                row_numbers, invalid = self.windows.row_numbers(start, stop)
                positions = np.arange(start, stop)
                if invalid is not None:
                    row_numbers, positions = row_numbers[~invalid], positions[~invalid]
                positions_done = positions[is_parked[buckets.of(row_numbers)]]
                parked_counts += np.bincount(
                    positions_done // self.window_length, minlength=self.windows.window_count
                )
                partition.add(row_numbers, row_numbers, positions)
            slices = self._slices(partition, is_parked, parked_counts)
            with closing(computed_ahead(slices)) as prepared:
                for bucket, wanted, run_bounds, run_rows in prepared:
                    if wanted is None:
                        nbytes = int(buckets.sizes[bucket]) * self.row_bytes
                        writer.run_later(sink.finish, {"passed": bucket}, nbytes)
                        job.meter.advance(nbytes)
                        continue
                    rows = writer.rows(wanted.row_numbers.size)
                    self.windows.fetch(self.windows.table, wanted, rows, once=True)
                    runs = zip(run_bounds, run_bounds[1:], run_rows, strict=False)
                    for start, stop, row in runs:
                        position = row * self.windows.row_length
                        writer.run_later(self.parked_array.write, position, rows[start:stop])

    def _slices(
        self, partition: Partition, is_parked: Mask, parked_counts: Ints
    ) -> Iterator[tuple[int, RowsToRead | None, list[int], list[int]]]:
        """Yield the rows to park, bucket by bucket, and the positions of their runs.

        A run is parked in one window. Run i has the rows from `run_bounds[i]` to the next bound,
        and is written to the parked rows from `run_rows[i]` on. `parked_counts` has the number of
        parked rows of each window. The rows are None at the end of a bucket.
        """
        for bucket in np.flatnonzero(~is_parked).tolist():
            for row_numbers, positions in partition.slices(bucket, self.window_length):
                window_of_row = positions[:, 0] // self.window_length
                changes = np.flatnonzero(np.diff(window_of_row)) + 1
                bounds = np.r_[0, changes, window_of_row.size]
                window_of_run = window_of_row[bounds[:-1]]
                run_rows = window_of_run * self.window_length + parked_counts[window_of_run]
                parked_counts[window_of_run] += np.diff(bounds)
                wanted = RowsToRead.sorted(row_numbers[:, 0])
                yield bucket, wanted, bounds.tolist(), run_rows.tolist()
            yield bucket, None, [], []
