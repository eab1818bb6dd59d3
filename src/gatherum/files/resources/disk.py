"""Files on the disk and in memory, read and written at positions.

A DiskFile counts every byte and detects every change.
"""

from __future__ import annotations

import errno
import os
import tempfile
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from gatherum._plans.plans import apply
from gatherum._system import native
from gatherum._system.regular_files import naming, open_regular

from .os_calls import read_into, read_some, write_some
from .stats import Meter

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
TAKEN_BYTES = 256 << 10  # rows that are copied together; they must stay in the cache
PAGE = 4096  # minimum bytes that a disk reads
LONGEST_TRANSFER = 1 << 30
WRITE_BEHIND = 1 << 20
FEW_SCRATCH = 1 << 20  # bytes for a few rows that share pages
READ_SCRATCH = 1 << 16  # the same, for each concurrent read
ADVISE = getattr(os, "posix_fadvise", None)
WILL_NEED = getattr(os, "POSIX_FADV_WILLNEED", 0)


class StoredRows(NamedTuple):
    """The positions of the rows of a file."""

    base: int  # position of row 0
    stride: int  # bytes from one row to the next
    item: int  # bytes to read of each row
    extent: int  # number of rows


class Reading(NamedTuple):
    """The settings for reading rows."""

    waste: float = 1.0  # maximum ratio of pages read, with gaps, to pages that contain the rows
    once: bool = False  # pages are not needed again: new pages need not stay cached
    scratch: int = 1 << 20  # bytes of memory for rows that are read with their neighbours


def pages_between(stored: StoredRows, row_numbers: Ints) -> Ints:
    """Return the number of whole pages between each row and the next one."""
    starts = stored.base + row_numbers * np.int64(stored.stride)
    between: Ints = starts[1:] // PAGE - (starts[:-1] + (stored.item - 1)) // PAGE - 1
    return between


class DiskFile:
    """An open regular file with positional input and output.

    With positional reads into buffers, the page cache is not part of the resident set of the
    process. A file that shrinks causes an error instead of a fatal signal.
    """

    in_memory = False  # whether the order of reads does not matter
    local = True  # whether a second read is cheap
    waste = 1.1  # maximum ratio of bytes read to bytes of the pages that contain the rows
    in_flight = 0  # concurrent reads, if the file is open for whole pages only (O_DIRECT)

    def __init__(self, path: str, meter: Meter, flags: int = os.O_RDONLY, mode: int = 0o666):
        self.path = path
        self.meter = meter
        self.fd = open_regular(path, flags, mode)
        self._identity: tuple[int, ...] | None = self._state(os.fstat(self.fd))

    @classmethod
    def scratch(cls, directory: str, meter: Meter) -> DiskFile:
        """Return an unnamed file, which is deleted when the process ends for any reason."""
        file = cls.__new__(cls)
        with tempfile.TemporaryFile(dir=directory, buffering=0) as unnamed:
            file.fd = os.dup(unnamed.fileno())
        file.path, file.meter, file._identity = f"spill file in {directory}", meter, None
        return file

    def close(self) -> None:
        """Close the file. Further calls do nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def stop(self) -> None:
        """Do nothing, because disk reads are never pending."""

    @property
    def size(self) -> int:
        """The file's current size."""
        return os.fstat(self.fd).st_size

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill `buffer` from position `offset`. Raise OSError if the file ends too early."""
        received = 0
        while received < len(buffer):
            with naming(self.path):
                got = read_into(
                    self.fd, buffer[received : received + LONGEST_TRANSFER], offset + received
                )
            if got == 0:
                raise self.truncated(offset + received, offset + len(buffer))
            received += got
        self.meter.read(received)

    def read_rows(
        self,
        stored: StoredRows,
        row_numbers: Ints,
        positions: Ints | None,
        into: Bytes,
        reading: Reading,
    ) -> int:
        """Read row `row_numbers[i]` of the file into row `positions[i]` (None: `i`) of `into`.

        Adjacent requests for adjacent rows, in ascending order, are read together. Return the
        number of reads.
        """
        row_numbers = np.ascontiguousarray(row_numbers)
        positions = positions if positions is None else np.ascontiguousarray(positions)
        status = native.read_file_rows(
            self.fd, stored, row_numbers, positions, into, *reading, self.in_flight, False
        )
        self.meter.read(status[4])
        if status[0] != "done":
            self._raise_failed(status)
        return status[5]

    def read_few(
        self,
        stored: StoredRows,
        row_numbers: Ints,
        positions: Ints | None,
        flat: Bytes,
        cache: native.RowCache | None = None,
        *,
        are_resident: bool = False,
    ) -> int | None:
        """Read a few rows like `read_rows`. Return None if a number is out of bounds.

        Otherwise, return the nanoseconds that the read took, without the time to get the lock of
        the interpreter again; 0 if the rows were in a cache. If `are_resident`, the rows are
        probably in the page cache: the core sorts them, and reads no pages between them.

        All arrays are contiguous. `flat` contains the bytes of the rows, and is unchanged if the
        result is None. With a cache, cached rows are not read, and the other rows are cached.
        """
        waste = 1.0 if are_resident else self.waste
        if cache is None:
            scratch = FEW_SCRATCH + self.in_flight * READ_SCRATCH
            status = native.read_file_rows(
                self.fd,
                stored,
                row_numbers,
                positions,
                flat,
                waste,
                False,
                scratch,
                self.in_flight,
                are_resident,
            )
        else:
            read = cache.read(self.fd, stored, row_numbers, positions, flat, waste, FEW_SCRATCH)
            if read is None:
                return 0
            status = read
        if status[0] == "outside":
            return None
        self.meter.read(status[4])
        if status[0] != "done":
            self._raise_failed(status)
        return status[6]

    def _raise_failed(self, result: tuple[str, int, int, int, int, int, int]) -> NoReturn:
        """Raise the error for a failed read, from the result of the core."""
        status, error, position, until, *_ = result
        if status == "truncated":
            raise self.truncated(position, until)
        if status == "failed":
            raise OSError(error, os.strerror(error), self.path)
        if status == "outside":
            raise OSError(f"{self.path}: request {position} is for a row that does not exist")
        raise MemoryError(f"{self.path}: no memory to read rows into")

    def expect(self, stored: StoredRows, row_numbers: Ints) -> None:
        """Let the system begin to read all rows together, and return immediately."""
        if ADVISE is None:
            return
        for row_number in row_numbers.tolist():
            ADVISE(self.fd, stored.base + row_number * stored.stride, stored.item, WILL_NEED)

    def cached_share(self, offsets: Ints) -> float:
        """Return the share of positions that are in the page cache, or 0 if it is unknown."""
        flags = getattr(os, "RWF_NOWAIT", None)
        if flags is None or offsets.size == 0:
            return 0.0
        byte, cached = bytearray(1), 0
        for offset in offsets.tolist():
            try:
                cached += os.preadv(self.fd, [byte], offset, flags)
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    raise OSError(error.errno, error.strerror, self.path) from error
                return 0.0
        return cached / offsets.size

    def truncated(self, position: int, until: int) -> OSError:
        """Return the error for a file that has become shorter."""
        return OSError(
            f"{self.path}: ends at byte {position} of {until}: truncated while it was being read"
        )

    def read_bytes(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from position `offset`; fewer only at the file's end."""
        pieces: list[bytes] = []
        with naming(self.path):
            while length > 0 and (piece := read_some(self.fd, length, offset)):
                pieces.append(piece)
                offset += len(piece)
                length -= len(piece)
                self.meter.read(len(piece))
        return b"".join(pieces)

    def write_from(self, offset: int, buffer: memoryview | bytes) -> None:
        """Write all of `buffer` at position `offset`."""
        view = memoryview(buffer)
        written = 0
        while written < len(view):
            with naming(self.path):
                written += write_some(
                    self.fd, view[written : written + LONGEST_TRANSFER], offset + written
                )
        if written >= WRITE_BEHIND and self._identity is not None:
            # begin to write to the disk, so that `sync` takes less time
            native.start_writing(self.fd, offset, written)
        self.meter.count_written(written)

    def grow(self, size: int) -> None:
        """Make the file at least `size` bytes long."""
        if self.size < size:
            self.resize(size)

    def resize(self, size: int) -> None:
        """Make the file `size` bytes long."""
        with naming(self.path):
            os.ftruncate(self.fd, size)

    def sync(self) -> None:
        """Force everything written to the disk."""
        with naming(self.path):
            os.fsync(self.fd)

    def state(self) -> list[int]:
        """Return the file's identity and version for the journal."""
        return list(self._identity or ())

    def fresh_state(self) -> list[int]:
        """Return the current `state`, after writing."""
        return list(self._state(os.fstat(self.fd)))

    def accept_changes(self) -> None:
        """Treat the current content as unchanged, after the caller has written it."""
        self._identity = self._state(os.fstat(self.fd))

    def check_unchanged(self) -> None:
        """Raise OSError if the file was replaced, removed or written since it was opened."""
        if self._identity is None:
            return
        try:
            current_state = self._state(os.stat(self.path))
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path}: vanished while it was being read") from None
        if current_state != self._identity:
            raise OSError(f"{self.path}: changed while it was being read")

    def is_intact(self) -> bool:
        """Return True if the file was not written since it was opened, even if it was replaced."""
        return self._identity is None or self._state(os.fstat(self.fd)) == self._identity

    @staticmethod
    def _state(status: os.stat_result) -> tuple[int, ...]:
        return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class MemoryFile(DiskFile):
    """The bytes of a C-contiguous array, read and written like a file."""

    in_memory = True

    def __init__(self, array: NDArray[Any], meter: Meter) -> None:
        self.path, self.meter, self.fd = "memory", meter, -1
        self._identity = None
        self._bytes = np.frombuffer(byte_view(array), np.uint8) if array.size else np.empty(0, "u1")

    @property
    def size(self) -> int:
        """The number of bytes."""
        return int(self._bytes.size)

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill `buffer` from position `offset`."""
        buffer[:] = self._bytes[offset : offset + len(buffer)].data

    def read_rows(
        self,
        stored: StoredRows,
        row_numbers: Ints,
        positions: Ints | None,
        into: Bytes,
        reading: Reading,
    ) -> int:
        """Copy row `row_numbers[i]` into row `positions[i]` (None: `i`) of `into`."""
        item = f"V{stored.item}"
        rows = np.ndarray((stored.extent,), item, self._bytes.data, stored.base, (stored.stride,))
        rows_out = into.view(item)
        if positions is None:
            apply("gather", rows, row_numbers, out=rows_out[: row_numbers.size])
            return 1
        step = max(1, TAKEN_BYTES // stored.item)
        for start in range(0, row_numbers.size, step):
            piece = slice(start, start + step)
            piece_rows = apply("gather", rows, row_numbers[piece])
            apply("scatter_nd", rows_out, positions[piece, None], piece_rows, out=rows_out)
        return 1

    def cached_share(self, offsets: Ints) -> float:
        """Return 1, because everything is in memory."""
        return 1.0

    def write_from(self, offset: int, buffer: memoryview | bytes) -> None:
        """Write `buffer` at position `offset`."""
        self._bytes[offset : offset + len(buffer)] = np.frombuffer(buffer, np.uint8)

    def sync(self) -> None:
        """Do nothing."""


def byte_view(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a C-contiguous array of any dtype, without a copy."""
    flat = array.reshape(-1)
    if flat.size == 0:
        return memoryview(bytearray())  # writable, for reading into it
    return flat.view(np.uint8).data.cast("B")


def check_within(path: str, root: str) -> None:
    """Raise ValueError if a path is outside of `root` after links in the path are resolved."""
    if os.path.commonpath([os.path.realpath(path), root]) != root:
        raise ValueError(f"{path}: a link that leads out of the store is not followed")
