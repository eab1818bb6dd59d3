"""The strategies of a gather: into memory, by windows of an output file, or by a table pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.durable.sinks import ArraySink, FileSink, Sink
from gatherum.files.formats.storage import BoxStorage
from gatherum.files.job import IndexCheck, Job, Strategy
from gatherum.files.resources.disk import PAGE, byte_view
from gatherum.files.row_access.partition import Buckets
from gatherum.files.row_access.table import Panel, RowTable, best_order

from .chunk_slices import ChunkSlices
from .stored_columns import StoredColumns
from .table_pass import TablePass
from .windows import WindowPass, Windows, valid_numbers

Ints = NDArray[np.int64]
CHECKED_INDICES = 1 << 16  # checked together, few enough to stay in the cache
# The cost of parking, in bytes read: for an output byte, which is read again, and for a row, which
# is ordered twice.
PARKED_BYTE_COST, PARKED_ROW_COST = 3, 128


def strategies(job: Job, sink: Sink) -> Iterator[Strategy[Any]]:
    """Yield the strategies that gather to a sink, one for each panel of an output file."""
    if isinstance(sink, ArraySink):
        yield IntoArray()
        return
    assert isinstance(sink, FileSink)
    if sink.array.size == 0:
        yield IndexCheck()
        return
    slices = _slice_strategy(job)
    if slices is not None and sink.array.nbytes <= job.budget.window:
        yield slices
        return
    for panel, table in job.panels():
        yield _cheaper_strategy(job, sink, Windows(job, sink.array, panel, table))


def _slice_strategy(job: Job) -> StoredColumns | None:
    """Return the strategy that reads whole slices along an axis, if the table has such slices."""
    if job.table.storage.fortran and StoredColumns.applies_to(job):
        return StoredColumns()
    if not isinstance(job.table.storage, BoxStorage):
        return None
    return ChunkSlices() if ChunkSlices.applies_to(job) else None


class IntoArray:
    """Gathers into memory: rows are read directly to their positions."""

    def run(self, job: Job, sink: ArraySink) -> None:
        """Gather panel by panel."""
        requests, fill, result = job.requests, job.fill, sink.array
        if result.size == 0 or sink.direct:
            job.check_indices()
        if result.size == 0:
            return
        if (slices := _slice_strategy(job)) is not None:
            slices.gather(job, result)
            return
        job.meter.phase("gathering")
        job.meter.expect(result.nbytes)
        rows = result.reshape(requests.count, -1)
        for panel, table in job.panels():
            self._gather(job, table, rows, panel, fill)

    def _gather(
        self, job: Job, table: RowTable, result: NDArray[Any], panel: Panel, fill: NDArray[Any]
    ) -> None:
        """Gather one panel of the rows into its columns."""
        requests, budget = job.requests, job.budget
        covers_rows = panel.width == result.shape[1]
        row_bytes = max(1, panel.width * table.dtype.itemsize)
        most_requests = (
            budget.entries
            if covers_rows
            else min(budget.entries, max(1, budget.window // row_bytes))
        )
        for start, stop in requests.windows(most_requests):
            rows = result[start:stop]
            if not covers_rows:
                rows = np.empty((stop - start, panel.width), table.dtype)
            (row_numbers, invalid), positions = requests.row_numbers(table, start, stop), None
            if invalid is not None and invalid.any():
                byte_view(rows)[:] = bytes(fill.tobytes()) * rows.size
                positions = np.flatnonzero(~invalid)
                row_numbers = row_numbers[positions]
            wanted = best_order(table, row_numbers, positions)
            job.meter.chunks_touched += table.fetch(wanted, rows, limit=budget.piece, once=False)
            if not covers_rows:
                for first, last, columns in panel.columns():
                    result[start:stop, first:last] = rows[:, columns]
            job.meter.advance((stop - start) * row_bytes)


@dataclass
class Survey:
    """The result of checking all indices: their distribution. All of them are valid."""

    buckets: Buckets
    windowed_bytes: int
    passed_bytes: int
    cached_share: float  # the share of the wanted rows in the page cache


def _cheaper_strategy(job: Job, sink: FileSink, windows: Windows) -> WindowPass | TablePass:
    """Check every index of a panel. Return the cheaper strategy for the panel.

    Windows may read the same rows repeatedly from the disk; a pass over the table reads each row
    once.
    """
    job.meter.phase("checking the indices")
    survey = _survey(sink, windows)
    job.meter.phase("gathering")
    job.meter.expect(job.requests.count * windows.row_bytes)
    if _prefers_pass(sink, windows, survey):
        return TablePass(windows, survey.buckets)
    return WindowPass(windows, survey.cached_share)


def _prefers_pass(sink: FileSink, windows: Windows, survey: Survey) -> bool:
    """Return True if one pass over the table is better. A resumed run keeps its strategy."""
    if windows.window_count == 1 or not windows.covers_rows:
        return False
    if records := sink.records():
        return any("passed" in record for record in records)
    return _is_cheaper(windows, survey)


def _is_cheaper(windows: Windows, survey: Survey) -> bool:
    """Return True if a pass saves more than parking the rows costs."""
    row_cost = PARKED_BYTE_COST * windows.row_bytes + PARKED_ROW_COST
    parked = windows.requests.count * row_cost
    return (survey.windowed_bytes - survey.passed_bytes) * (1 - survey.cached_share) > parked


def _is_settled(sink: FileSink, cached: float) -> bool:
    """Return True if windows are cheaper: rows in the page cache are never parked."""
    return cached == 1 and not sink.records()


def _survey(sink: FileSink, windows: Windows) -> Survey:
    """Check every index once, before anything is written."""
    table = windows.table
    buckets = Buckets(table.extent, table.quantum)
    if windows.window_count == 1:
        row_numbers = windows.keep_row_numbers()
        return Survey(buckets, 0, 0, table.cached_share(row_numbers))
    cached_share = table.cached_share(windows.row_numbers(0, windows.length)[0])
    is_settled = _is_settled(sink, cached_share)  # counting is not needed
    windowed_bytes = 0
    for start, stop in windows.requests.windows(CHECKED_INDICES if is_settled else windows.length):
        row_numbers, invalid = windows.row_numbers(start, stop)
        if not is_settled:
            windowed_bytes += _bytes_to_read(
                windows, buckets, buckets.count(valid_numbers(row_numbers, invalid))
            )
    return Survey(
        buckets, windowed_bytes, _bytes_to_read(windows, buckets, buckets.counts), cached_share
    )


def _bytes_to_read(windows: Windows, buckets: Buckets, counts: Ints) -> int:
    """Estimate how many bytes are read for the counted rows of each bin."""
    row, table = windows.row_bytes, windows.table
    bytes_per_row = row * table.quantum if table.is_chunked else row + PAGE  # chunks are read whole
    return int(np.minimum(counts * bytes_per_row, buckets.bin_rows * row).sum())
