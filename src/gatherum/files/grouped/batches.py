"""Rows of several operands along axis 0, which are read together in batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.formats.storage import BoxStorage, FlatStorage, Source, boxes_of
from gatherum.files.resources.resources import Resources

MOST_BYTES = 32 << 20  # of a batch
FEWEST_ROWS = 1 << 17  # from which the rows of one chunk are a batch


class TooLargeError(Exception):
    """Batches or accumulators do not fit in memory."""


def batches(sources: Sequence[Source], resources: Resources) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield the rows of all sources, batch by batch. Threads read the next batch meanwhile.

    Raise TooLargeError if two batches need more than half of the memory.
    """
    row_count, meter = sources[0].shape[0], resources.meter
    batch_rows = _rows_of_batch(sources, resources)
    with ThreadPoolExecutor(len(sources), "gatherum-groups") as pool:

        def submit_reads(start: int) -> list[Future[NDArray[Any]]]:
            stop = min(start + batch_rows, row_count)
            return [pool.submit(_read_rows, source, start, stop) for source in sources]

        pending = submit_reads(0) if row_count else []
        for start in range(0, row_count, batch_rows):
            rows = tuple(future.result() for future in pending)
            pending = submit_reads(start + batch_rows) if start + batch_rows < row_count else []
            yield rows
            meter.advance(sum(part.nbytes for part in rows))


def _rows_of_batch(sources: Sequence[Source], resources: Resources) -> int:
    """Return the number of rows of a batch: the rows of whole chunks, if they fit in memory."""
    row_bytes = sum(math.prod(source.shape[1:]) * source.dtype.itemsize for source in sources) or 1
    chunked = (source.storage.array for source in sources if isinstance(source.storage, BoxStorage))
    chunk_rows = max((boxes.chunks[0] for boxes in chunked), default=1)
    batch_rows = max(1, min(resources.budget.window // 4, MOST_BYTES) // row_bytes)
    batch_rows = (
        chunk_rows
        if chunk_rows >= min(batch_rows, FEWEST_ROWS)
        else batch_rows // chunk_rows * chunk_rows
    )
    if 4 * batch_rows * row_bytes > resources.budget.total:
        raise TooLargeError
    return batch_rows


def read_whole(source: Source, resources: Resources) -> NDArray[Any]:
    """Return all elements of a source of at least one dimension."""
    values = _read_rows(source, 0, source.shape[0])
    resources.meter.advance(values.nbytes)
    return values


def _read_rows(source: Source, start: int, stop: int) -> NDArray[Any]:
    storage, shape = source.storage, (stop - start, *source.shape[1:])
    if 0 in shape or not source.dtype.itemsize:
        return np.zeros(shape, source.dtype)
    if isinstance(storage, FlatStorage) and not storage.fortran:
        width = math.prod(shape[1:])
        return storage.array.read(start * width, stop * width).view(source.dtype).reshape(shape)
    boxes = boxes_of(storage)
    box = (slice(start, stop), *(slice(0, n) for n in shape[1:]))
    rows = boxes.view_box(box)
    return (boxes.read_box(box) if rows is None else rows).view(source.dtype)
