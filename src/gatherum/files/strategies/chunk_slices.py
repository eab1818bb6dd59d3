"""Gathers along an axis other than the first of an array in chunks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._plans.plans import apply
from gatherum.files.formats.storage import BoxStorage
from gatherum.files.job import Job
from gatherum.files.row_access.grid import Box, BoxArray
from gatherum.files.row_access.table import Ints, as_items, computed_ahead, without_duplicates

from .stored_columns import StoredColumns


class ChunkSlices(StoredColumns):
    """Reads each chunk once, and copies its slices together.

    Other strategies have a request for each row of the result, which may be a single element.
    """

    @staticmethod
    def applies_to(job: Job) -> bool:
        """Return True if an array in chunks is gathered along a later axis, and its numbers fit."""
        later = job.op == "gather" and job.call.resolved_axis > 0 and job.table.order is None
        return later and 0 < job.entries <= job.budget.entries and math.prod(job.shape) > 0

    def gather(self, job: Job, result: NDArray[np.generic]) -> None:
        """Gather into memory."""
        storage, axis, shape = job.table.storage, job.call.resolved_axis, job.table.shape
        assert isinstance(storage, BoxStorage)
        array, requests = storage.array, job.requests
        # The first requests have the position 0 in all dimensions before the axis.
        coordinates, invalid = requests.coordinates(0, job.entries)
        slice_numbers = coordinates[-1]
        assert slice_numbers is not None
        slices = as_items(result).reshape(*shape[:axis], job.entries, *shape[axis + 1 :])
        leading_dims: tuple[Any, ...] = (slice(None),) * axis
        order = np.argsort(slice_numbers, kind="stable")
        if invalid is not None and invalid.any():
            slices[(*leading_dims, np.flatnonzero(invalid))] = as_items(job.fill)
            order = order[~invalid[order]]
        ordered = slice_numbers[order]
        job.meter.phase("gathering")
        job.meter.expect(result.nbytes)
        array.announce(_boxes(array, axis, ordered))
        reads = ((box, _read(array, box)) for box in _boxes(array, axis, ordered))
        for box, values in computed_ahead(reads, array.stop):
            start, stop = np.searchsorted(ordered, [box[axis].start, box[axis].stop])
            numbers_in_box, positions = ordered[start:stop] - box[axis].start, order[start:stop]
            selected = as_items(apply("gather", values, numbers_in_box, axis=axis))
            slices[(*box[:axis], _as_slice(positions), *box[axis + 1 :])] = selected
            job.meter.chunks_touched += 1
            job.meter.advance(selected.nbytes)


def _boxes(array: BoxArray, axis: int, ordered: Ints) -> Iterator[Box]:
    """Yield the chunks that contain slices with sorted numbers."""
    dim_ranges = [
        [slice(start, min(start + step, n)) for start in range(0, n, step)]
        for n, step in zip(array.shape, array.chunks, strict=True)
    ]
    dim_ranges[axis] = [
        dim_ranges[axis][i] for i in without_duplicates(ordered // array.chunks[axis])
    ]
    yield from product(*dim_ranges)


def _read(array: BoxArray, box: Box) -> NDArray[np.generic]:
    view = array.view_box(box)
    return array.read_box(box) if view is None else view


def _as_slice(positions: Ints) -> Ints | slice:
    """Return ascending adjacent positions as a slice, which NumPy copies faster."""
    first, last = int(positions[0]), int(positions[-1])
    adjacent = last - first == positions.size - 1 and bool((np.diff(positions) == 1).all())
    return slice(first, last + 1) if adjacent else positions
