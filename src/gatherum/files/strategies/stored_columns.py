"""Gathers along the last axis of a file in Fortran order, whose slices are contiguous."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gatherum.files.durable.sinks import WHOLE, FileSink
from gatherum.files.formats.storage import FlatStorage
from gatherum.files.job import Job
from gatherum.files.resources.disk import byte_view
from gatherum.files.row_access.flat import FlatRows
from gatherum.files.row_access.table import Panel, best_order


class StoredColumns:
    """Reads each slice as one run of bytes, and transposes the slices in memory.

    Other strategies read every element of a slice separately, 8 bytes at a time.
    """

    @staticmethod
    def applies_to(job: Job) -> bool:
        """Return True if slices of a table in Fortran order are contiguous and fit in a window."""
        table = job.table
        storage = table.storage
        if job.op != "gather" or not isinstance(storage, FlatStorage):
            return False
        last = job.call.resolved_axis == len(table.shape) - 1 and table.order is None
        return last and 0 < _slice_bytes(job) <= job.budget.window

    def run(self, job: Job, sink: FileSink) -> None:
        """Write a result that fits in memory."""
        if sink.has_finished(WHOLE):
            return
        result: NDArray[np.generic] = np.empty(job.shape, job.table.dtype)
        self.gather(job, result)
        sink.array.write(0, result)
        sink.finish(WHOLE, result.nbytes)

    def gather(self, job: Job, result: NDArray[np.generic]) -> None:
        """Gather into memory."""
        storage, shape_before = job.table.storage, job.table.shape[:-1]
        assert isinstance(storage, FlatStorage)
        slice_size, count = math.prod(shape_before), job.entries
        rows = FlatRows(
            storage.array, (1,), slice_size, Panel.of((slice_size,), ((0, slice_size),))
        )
        columns = result.reshape(*shape_before, count)
        most_slices = max(1, job.budget.window // _slice_bytes(job))
        job.meter.phase("gathering")
        job.meter.expect(result.nbytes)
        for start in range(0, count, most_slices):
            stop = min(start + most_slices, count)
            # The first requests have the position 0 in all other dimensions.
            coordinates, invalid = job.requests.coordinates(start, stop)
            row_numbers, positions = coordinates[-1], None
            assert row_numbers is not None
            slices = np.empty((stop - start, slice_size), job.table.dtype)
            if invalid is not None and invalid.any():
                byte_view(slices)[:] = job.fill.tobytes() * slices.size
                positions = np.flatnonzero(~invalid)
                row_numbers = row_numbers[positions]
            wanted = best_order(rows, row_numbers, positions)
            job.meter.chunks_touched += rows.fetch(
                wanted, slices, limit=job.budget.piece, once=False
            )
            columns[..., start:stop] = slices.reshape(stop - start, *shape_before[::-1]).T
            job.meter.advance(slices.nbytes)


def _slice_bytes(job: Job) -> int:
    return math.prod(job.table.shape[:-1]) * job.table.dtype.itemsize
