"""Requests sorted into buckets of neighbouring rows, in memory or in a spill file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.resources.disk import DiskFile, MemoryFile
from gatherum.files.resources.stats import Meter

from .flat import FlatArray

Ints = NDArray[np.int64]
MOST_BINS = 1 << 15


class Buckets:
    """Ranges of row numbers. If possible, the requests for a range fit in memory.

    Row numbers are first counted in bins of equal width. Neighbouring bins then form a bucket. A
    bucket above the limit is always a single bin. A chunk has `quantum` rows, which are always in
    the same bucket.
    """

    def __init__(self, extent: int, quantum: int) -> None:
        self.bin_rows = quantum * max(1, -(-extent // (MOST_BINS * quantum)))
        self.counts = np.zeros(max(1, -(-extent // self.bin_rows)), np.int64)
        self.of_bin = np.zeros(self.counts.size, np.uint16)
        self.sizes = np.zeros(1, np.int64)

    def count(self, row_numbers: Ints) -> NDArray[np.int64]:
        """Add requests. Return the number of requests in each bin."""
        counts = np.bincount(row_numbers // self.bin_rows, minlength=self.counts.size)
        self.counts += counts
        return counts

    def settle(self, most_requests: int) -> None:
        """Merge bins into buckets of at most `most_requests` requests."""
        bucket, request_count = 0, 0
        assigned: list[int] = []
        for count_of_bin in self.counts.tolist():
            if request_count and request_count + count_of_bin > most_requests:
                bucket, request_count = bucket + 1, 0
            request_count += count_of_bin
            assigned.append(bucket)
        self.of_bin = np.array(assigned, np.uint16)
        self.sizes = np.bincount(self.of_bin, self.counts, bucket + 1).astype(np.int64)

    def of(self, row_numbers: Ints) -> NDArray[np.uint16]:
        """Return each row's bucket."""
        return self.of_bin[row_numbers // self.bin_rows]


class Partition:
    """Requests by bucket: row number, request number and, for scatters, the update row.

    Within a bucket, requests keep their order. The sizes of the buckets must be known, so an
    earlier pass counts the requests. `columns` are the dtypes and widths of the stored values of
    each request. If the values need more than `resident_bytes`, they are stored in the file that
    `open_scratch` returns.
    """

    def __init__(
        self,
        buckets: Buckets,
        columns: list[tuple[np.dtype[Any], int]],
        resident_bytes: int,
        open_scratch: Callable[[], DiskFile],
    ) -> None:
        self.buckets = buckets
        request_count = int(buckets.sizes.sum())
        nbytes = request_count * sum(dtype.itemsize * width for dtype, width in columns)
        fits = nbytes <= resident_bytes
        self._file = MemoryFile(np.empty(nbytes, "u1"), Meter()) if fits else open_scratch()
        self.starts = np.cumsum(buckets.sizes) - buckets.sizes
        self.filled = self.starts.copy()
        self._columns: list[FlatArray] = []
        offset = 0
        for dtype, width in columns:
            column = FlatArray(self._file, offset, (request_count, width), dtype)
            self._columns.append(column)
            offset += column.nbytes

    def add(self, row_numbers: Ints, *columns: NDArray[Any]) -> None:
        """Add requests, in order."""
        bucket = self.buckets.of(row_numbers)
        order = np.argsort(bucket, kind="stable")
        counts = np.bincount(bucket, minlength=self.buckets.sizes.size)
        filled = self.filled + counts
        if np.any(filled > self.starts + self.buckets.sizes):
            raise OSError("the indices changed while they were being read")
        ends = np.cumsum(counts)
        for column, values in zip(self._columns, columns, strict=True):
            width = column.shape[1]
            ordered = values[order].reshape(len(order), width)
            for b in np.flatnonzero(counts):
                position = int(self.filled[b]) * width
                column.write(position, ordered[ends[b] - counts[b] : ends[b]])
        self.filled = filled

    def slices(self, bucket: int, most_requests: int) -> Iterator[tuple[NDArray[Any], ...]]:
        """Yield a bucket's requests in order, at most `most_requests` at a time."""
        start, stop = int(self.starts[bucket]), int(self.filled[bucket])
        for begin in range(start, stop, most_requests):
            end = min(stop, begin + most_requests)
            columns_and_widths = ((column, column.shape[1]) for column in self._columns)
            yield tuple(
                c.read(begin * width, end * width).reshape(-1, width)
                for c, width in columns_and_widths
            )

    def close(self) -> None:
        """Close the spill file."""
        self._file.close()
