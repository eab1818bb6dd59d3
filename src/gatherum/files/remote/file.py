"""Read a file at a URL like a file on disk, several parts at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from gatherum._system import native
from gatherum.files.remote.store import AT_ONCE, Pipeline, Remote
from gatherum.files.remote.urls import UrlAddress
from gatherum.files.resources.disk import Bytes, DiskFile, Ints, Reading, StoredRows, pages_between
from gatherum.files.resources.stats import Meter

HEAD = 64 << 10  # bytes to request when a file is opened; most headers fit
SHORTEST, LONGEST = 256 << 10, 4 << 20  # bytes of a request if a long part is divided
SMALLEST = 4096  # bytes of a request for rows if memory is short


class RemoteFile(DiskFile):
    """An object at a URL, read in parts. `options` are options of fsspec's filesystem."""

    local = False
    # A request that runs concurrently with others takes as long as reading 64 KiB, so smaller gaps
    # are read.
    waste = 16.0

    def __init__(self, address: UrlAddress, meter: Meter, options: Mapping[str, Any]) -> None:
        self.path, self.meter, self.fd = str(address), meter, -1
        self._remote = Remote(address, meter, options)
        first_bytes = bytearray(HEAD)
        self._version, count = self._remote.wait(
            self._remote.read_beginning(memoryview(first_bytes))
        )
        self._head = bytes(first_bytes[:count])
        meter.read(count)
        # an object without a version is identified only by its URL
        self._mark = address.digest()

    def close(self) -> None:
        """Cancel pending requests."""
        self.stop()

    def stop(self) -> None:
        """Cancel pending requests, because a server may be slow."""
        self._remote.stop()

    @property
    def size(self) -> int:
        """The object's size."""
        return self._version.size

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill `buffer` from position `offset`. Raise OSError if the object ends too early."""
        until = offset + len(buffer)
        if until > self.size:
            raise self.truncated(self.size, until)
        if until <= len(self._head):
            buffer[:] = self._head[offset:until]
            return
        length = min(max(-(-len(buffer) // AT_ONCE), SHORTEST), LONGEST)
        with Pipeline(self._remote, AT_ONCE) as pipeline:
            self._read_pieces(pipeline, offset, buffer, length)

    def _read_pieces(
        self, pipeline: Pipeline, offset: int, buffer: memoryview, length: int
    ) -> None:
        for start in range(0, len(buffer), length):
            piece = buffer[start : start + length]
            pipeline.add(partial(self._remote.fill, offset + start, piece, self._version))

    def read_bytes(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from position `offset`; fewer only at the file's end."""
        content = bytearray(max(0, min(length, self.size - offset)))
        self.read_into(offset, memoryview(content))
        return bytes(content)

    def read_rows(
        self,
        stored: StoredRows,
        row_numbers: Ints,
        positions: Ints | None,
        into: Bytes,
        reading: Reading,
    ) -> int:
        """Read rows like `DiskFile.read_rows`. A request has at most `reading.scratch` bytes."""
        positions = np.arange(row_numbers.size) if positions is None else positions
        rows = into[: into.size // stored.item * stored.item].reshape(-1, stored.item)
        if min(row_numbers.min(), positions.min()) < 0 or row_numbers.max() >= stored.extent:
            raise OSError(f"{self.path}: a request is for a row that does not exist")
        if positions.max() >= len(rows):
            raise OSError(f"{self.path}: a request is for a place that does not exist")
        if np.any(row_numbers[1:] < row_numbers[:-1]):
            order = np.argsort(row_numbers, kind="stable")
            row_numbers, positions = row_numbers[order], positions[order]
        longest = max(min(reading.scratch // AT_ONCE, LONGEST), SMALLEST)
        cuts = _runs(stored, np.ascontiguousarray(row_numbers), reading.waste, longest)
        # a run of one row needs no scratch memory
        at_once = (
            AT_ONCE if stored.item >= longest else min(AT_ONCE, max(1, reading.scratch // longest))
        )
        with Pipeline(self._remote, at_once) as pipeline:
            for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
                self._read_run(
                    pipeline, stored, row_numbers[start:stop], positions[start:stop], rows
                )
        return int(cuts.size - 1)

    def _read_run(
        self, pipeline: Pipeline, stored: StoredRows, row_numbers: Ints, positions: Ints,
        rows: Bytes,
    ) -> None:  # fmt: skip
        """Request one run of rows. A single row is read directly to its position."""
        first, count = int(row_numbers[0]), int(row_numbers[-1] - row_numbers[0]) + 1
        offset, length = stored.base + first * stored.stride, (count - 1) * stored.stride
        if (until := offset + length + stored.item) > self.size:
            raise self.truncated(self.size, until)
        if count == 1:
            row = rows[positions[0]]
            when_received = partial(
                _copy, row[None], np.zeros(positions.size - 1, np.int64), positions[1:], rows
            )
            pipeline.add(partial(self._remote.fill, offset, row.data, self._version), when_received)
            return
        space = bytearray(length + stored.item)
        shape, strides = (count, stored.item), (stored.stride, 1)
        run: Bytes = np.ndarray(shape, np.uint8, space, 0, strides)
        when_received = partial(_copy, run, row_numbers - first, positions, rows)
        pipeline.add(
            partial(self._remote.fill, offset, memoryview(space), self._version), when_received
        )

    def cached_share(self, offsets: Ints) -> float:
        """Return 0, because nothing is cached."""
        return 0.0

    def write_from(self, offset: int, buffer: memoryview | bytes) -> None:
        """Raise NotImplementedError: URLs are only read."""
        raise NotImplementedError(self.path)

    def state(self) -> list[Any]:
        """Return the object's version for the journal."""
        size, tag, modified = self._version
        return [size, tag or modified or self._mark]

    def check_unchanged(self) -> None:
        """Raise OSError if the object is missing or has been replaced."""
        if self._version.is_other(self._remote.wait(self._remote.version())):
            raise OSError(f"{self.path}: changed while it was being read")

    def is_intact(self) -> bool:
        """Return False: a server does not keep a replaced object."""
        return False


def _runs(stored: StoredRows, row_numbers: Ints, waste: float, longest: int) -> Ints:
    """Divide sorted requests into runs of at most `longest` bytes. Return their limits."""
    apart = pages_between(stored, row_numbers) > native.file_rows_bridge(stored, row_numbers, waste)
    starts = row_numbers * np.int64(stored.stride)
    run_starts = np.maximum.accumulate(np.where(np.r_[True, apart], starts, -1))
    piece_numbers = (starts - run_starts) // max(1, longest - stored.item + 1)
    cuts: Ints = np.flatnonzero(apart | (np.diff(piece_numbers) != 0)) + 1
    return np.concatenate([[0], cuts, [row_numbers.size]])


def _copy(source: Bytes, source_rows: Ints, positions: Ints, rows: Bytes) -> None:
    """Copy rows from the memory of a run to their positions."""
    rows[positions] = source[source_rows]
