"""The strategies of a scatter: in memory, or with its updates grouped by pieces of the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._functions.accumulator import new_accumulator
from gatherum._functions.fold_properties import element_bytes
from gatherum._plans.plans import apply
from gatherum.files.durable.sinks import WHOLE, ScatterSink, Sink
from gatherum.files.job import IndexCheck, Job, Strategy
from gatherum.files.resources.disk import DiskFile
from gatherum.files.row_access.flat import FlatArray, FlatRows
from gatherum.files.row_access.partition import Buckets, Partition
from gatherum.files.row_access.table import Panel, RowRuns, TableLayout, gathered_rows, read_runs

Ints = NDArray[np.int64]
Slices = Iterator[tuple[Ints, NDArray[Any]]]


def strategies(job: Job, sink: Sink) -> Iterator[Strategy[Any]]:
    """Yield the strategies that scatter to a sink, one for each panel of the table."""
    if sink.takes_whole_result:
        yield WholeScatter()
        return
    assert isinstance(sink, ScatterSink)
    layout = sink.layout
    moves = job.requests.count > 0 and math.prod(layout.row_shape) > 0
    for panel in layout.panels():
        yield BucketScatter(job, layout, panel) if moves else IndexCheck()


class WholeScatter:
    """Scatters in memory.

    The operator in memory applies the updates in their order, without sorting. It checks every
    index before anything is written.
    """

    def run(self, job: Job, sink: Sink) -> None:
        """Read all operands, scatter, and write the result."""
        sink.prepare()
        if sink.has_finished(WHOLE):
            return
        job.meter.phase("scattering")
        job.meter.expect(sum(source.nbytes for source in job.sources.values()))
        job.meter.expect(2 * job.table.nbytes)
        operands = [job.read_whole(role) for role in job.sources]
        result: NDArray[Any] = apply(job.op, *operands, **job.attributes)
        job.meter.advance(2 * job.table.nbytes)
        sink.write_whole(operands[0], result)


class Updates:
    """The update row of each request, read from a file whose array may be broadcast.

    `lead` is the shape of the requests. Only the columns of `panel` are returned.
    """

    def __init__(
        self, array: FlatArray, lead: tuple[int, ...], row_shape: tuple[int, ...], panel: Panel
    ) -> None:
        rank = len(lead) + len(row_shape)
        shape = (1,) * (rank - len(array.shape)) + array.shape
        self.lead, self.row_shape, self.panel = lead, row_shape, panel
        self.stored_lead, self.stored_row_shape = shape[: len(lead)], shape[len(lead) :]
        self.columns_stored = self.stored_row_shape == row_shape
        length = math.prod(self.stored_row_shape)
        stored = panel if self.columns_stored else Panel((), ((0, length),))
        self._rows = FlatRows(array, (1,), length, stored)
        self._broadcasts = self.stored_lead != lead

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the rows of requests `start` to `stop`, of shape (requests, columns)."""
        if self._broadcasts:
            rows = self._read_sources(self._sources(start, stop))
        else:
            rows = self._rows.read(np.array([start]), np.array([stop - start])).rows
        if self.columns_stored:
            return rows
        # A single row may have as many dimensions as NumPy supports.
        request_dims = (stop - start,) if self.lead else ()
        stretched = np.broadcast_to(
            rows.reshape((*request_dims, *self.stored_row_shape)), (*request_dims, *self.row_shape)
        )
        box: tuple[Any, ...] = tuple(slice(*dim_range) for dim_range in self.panel.box)
        return stretched[(..., *box)].reshape(stop - start, self.panel.width)

    def _sources(self, start: int, stop: int) -> Ints:
        """Return the stored row of each request."""
        position, source, step = np.arange(start, stop), np.zeros(stop - start, np.int64), 1
        for extent, stored_extent in zip(
            reversed(self.lead), reversed(self.stored_lead), strict=True
        ):
            position, coordinate = np.divmod(position, extent)
            if stored_extent != 1:
                source += coordinate * step
                step *= stored_extent
        return source

    def _read_sources(self, sources: Ints) -> NDArray[Any]:
        distinct_sources, source_numbers = np.unique(sources, return_inverse=True)
        first, count = self._rows.runs(distinct_sources, max(1, distinct_sources.size))
        runs = self._rows.read(first, count)
        return gathered_rows(runs.rows, runs.locate(distinct_sources)[source_numbers])


class PanelOutput:
    """The output of the changed rows of one panel."""

    def __init__(self, sink: ScatterSink, panel: Panel) -> None:
        self._sink, self._rows = sink, sink.rows(panel)
        self._columns = [list(part) for part in panel.ranges[:1]]

    def write(self, bucket: int, changed: Iterator[RowRuns]) -> None:
        """Write the changed rows of a bucket, unless an earlier run has written them."""
        record = {"bucket": bucket, "columns": self._columns}
        if self._sink.has_finished(record):
            return
        stored = 0
        for runs in changed:
            self._rows.write(runs)
            stored += runs.rows.nbytes
        self._sink.finish(record, stored)


class BucketScatter:
    """Scatters to one panel of the table, bucket by bucket.

    Updates are grouped by destination, so that each piece of the table is read, changed and written
    once.
    """

    def __init__(self, job: Job, layout: TableLayout, panel: Panel) -> None:
        self.panel, self.table = panel, layout.rows(panel)
        self.requests, self.attributes = job.requests, job.call.attributes
        self.meter, self.budget = job.meter, job.budget
        updates = job.flat("updates")
        self.updates = Updates(updates, job.requests.shape, layout.row_shape, panel)
        self.accumulates = self.attributes.fold.needs_accumulator(self.table.dtype)
        self.row_bytes = max(1, self.table.width * self.table.dtype.itemsize)
        self.most_requests = max(1, min(self.budget.window // self.row_bytes, self.budget.entries))

    def run(self, job: Job, sink: ScatterSink) -> None:
        """Check every index, then scatter."""
        self.meter.phase("checking the indices")
        if self.requests.count <= self.most_requests:
            numbers, rows = self._read(0, self.requests.count)
            output = self._begin(sink)
            output.write(0, self._changed_at_once(numbers, rows))
        else:
            buckets = self._survey()
            self._by_bucket(buckets, job.resources.scratch, self._begin(sink))

    def _begin(self, sink: ScatterSink) -> PanelOutput:
        """Begin to write. Every index has been checked."""
        self.meter.phase("scattering")
        self.meter.expect(2 * self.requests.count * self.row_bytes)
        return PanelOutput(sink, self.panel)

    def _survey(self) -> Buckets:
        """Check every index once, before anything is written."""
        buckets = Buckets(self.table.extent, self.table.quantum)
        for start, stop in self.requests.windows(self.most_requests):
            buckets.count(self._row_numbers(start, stop)[0])
        buckets.settle(self.most_requests)
        return buckets

    def _row_numbers(self, start: int, stop: int) -> tuple[Ints, NDArray[np.bool_] | None]:
        row_numbers, invalid = self.requests.row_numbers(self.table, start, stop)
        return (row_numbers if invalid is None else row_numbers[~invalid]), invalid

    def _read(self, start: int, stop: int) -> tuple[Ints, NDArray[Any]]:
        row_numbers, invalid = self._row_numbers(start, stop)
        rows = self.updates.read(start, stop)
        self.meter.advance((stop - start) * self.row_bytes)
        return row_numbers, (rows if invalid is None else rows[~invalid])

    def _by_bucket(
        self, buckets: Buckets, scratch: Callable[[], DiskFile], output: PanelOutput
    ) -> None:
        columns = [(np.dtype(np.int64), 1), (self.table.dtype, self.table.width)]
        updates_by_bucket = Partition(buckets, columns, self.budget.window, scratch)
        with closing(updates_by_bucket) as partition:
            for start, stop in self.requests.windows(self.most_requests):
                row_numbers, rows = self._read(start, stop)
                partition.add(row_numbers, row_numbers, rows)
            for bucket, size in enumerate(buckets.sizes.tolist()):
                if size <= self.most_requests:
                    for row_numbers, rows in partition.slices(bucket, self.most_requests):
                        output.write(bucket, self._changed_at_once(row_numbers[:, 0], rows))
                else:
                    output.write(bucket, self._changed_in_slices(bucket, partition))
                self.meter.advance(size * self.row_bytes)

    def _changed_at_once(self, row_numbers: Ints, rows: NDArray[Any]) -> Iterator[RowRuns]:
        """Yield the rows that all updates of a bucket change.

        Updates of the same destination keep their order.
        """
        order = np.argsort(row_numbers, kind="stable")
        ordered = row_numbers[order]
        for start, stop, runs in read_runs(self.table, ordered, self.budget.piece):
            self.meter.chunks_touched += runs.first.size
            positions = runs.locate(ordered[start:stop])
            self._apply(runs.rows, positions, gathered_rows(rows, order[start:stop]))
            yield runs

    def _changed_in_slices(self, bucket: int, partition: Partition) -> Iterator[RowRuns]:
        """Yield the few rows that more updates than fit in memory change, slice by slice."""
        destinations = np.zeros(0, np.int64)
        for row_numbers, _ in self._slices(partition, bucket):
            destinations = np.union1d(destinations, row_numbers)
        for start, stop, runs in read_runs(self.table, destinations, self.budget.piece // 4):
            self.meter.chunks_touched += runs.first.size
            for rows, columns in self._tiles(destinations[start:stop]):
                self._fold(runs, rows, columns, self._slices(partition, bucket))
            yield runs

    def _tiles(self, row_numbers: Ints) -> Iterator[tuple[Ints, slice]]:
        """Divide rows into tiles of rows and columns whose accumulators fit in memory."""
        most_elements = row_numbers.size * self.table.width
        if self.accumulates:
            bytes_per_element = element_bytes(self.table.dtype, self.attributes.reduction)
            most_elements = min(most_elements, self.budget.fold // bytes_per_element)
        tile_width = max(1, min(most_elements, self.table.width))
        tile_rows = max(1, most_elements // tile_width)
        for first_row in range(0, row_numbers.size, tile_rows):
            for first_column in range(0, self.table.width, tile_width):
                yield (
                    row_numbers[first_row : first_row + tile_rows],
                    slice(first_column, first_column + tile_width),
                )

    def _fold(self, runs: RowRuns, row_numbers: Ints, columns: slice, slices: Slices) -> None:
        """Apply all updates of some rows and columns of a piece, slice by slice."""
        positions, target = runs.locate(row_numbers), runs.rows[:, columns]
        updates = updates_of_rows(slices, row_numbers, columns)
        if not self.accumulates:  # consecutive scatters are the left fold
            for update_rows, values in updates:
                self._apply(target, positions[update_rows], values)
            return
        fold = new_accumulator(gathered_rows(target, positions), self.attributes)
        for update_rows, values in updates:
            fold.scatter_nd(update_rows[:, None], values)
        apply("scatter_nd", target, positions[:, None], fold.finish(), out=target)

    def _apply(self, rows: NDArray[Any], positions: Ints, updates: NDArray[Any]) -> None:
        apply(
            "scatter_nd",
            rows,
            positions[:, None],
            updates,
            **self.attributes.fold_keywords,
            out=rows,
        )

    def _slices(self, partition: Partition, bucket: int) -> Slices:
        for row_numbers, rows in partition.slices(bucket, max(1, self.most_requests // 2)):
            yield row_numbers[:, 0], rows


def updates_of_rows(slices: Slices, sorted_rows: Ints, columns: slice) -> Slices:
    """Yield the updates of sorted rows, in order: the position of each row, and its values."""
    for row_numbers, rows in slices:
        selected = np.flatnonzero(
            (row_numbers >= sorted_rows[0]) & (row_numbers <= sorted_rows[-1])
        )
        if selected.size:
            values = rows[:, columns]
            values = (
                values if selected.size == row_numbers.size else gathered_rows(values, selected)
            )
            yield np.searchsorted(sorted_rows, row_numbers[selected]), values
