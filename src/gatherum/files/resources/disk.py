"""A DiskFile is read and written at positions; it counts every byte and notices every change."""

import errno
import os
import tempfile
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from gatherum._system import native
from gatherum._system.regular_files import naming, open_regular

from .os_calls import read_into, read_some, write_some
from .stats import Meter

__all__ = [
    "PAGE",
    "DiskFile",
    "Reading",
    "StoredRows",
    "byte_view",
    "check_within",
    "pages_between",
]

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
PAGE = 4096  # bytes that a disk reads at least
LONGEST_TRANSFER = 1 << 30
WRITE_BEHIND = 1 << 20
FEW_SCRATCH = 1 << 20  # bytes for a few rows that share pages
READ_SCRATCH = 1 << 16  # the same, for each read that is in flight
ADVISE = getattr(os, "posix_fadvise", None)
WILL_NEED = getattr(os, "POSIX_FADV_WILLNEED", 0)


class StoredRows(NamedTuple):
    """Where the rows of a file lie."""

    base: int  # position of row 0
    stride: int  # bytes from one row to the next
    item: int  # bytes wanted of each row
    extent: int  # how many rows there are


class Reading(NamedTuple):
    """How rows are read."""

    waste: float = 1.0  # with gaps, so many times the pages that hold wanted rows are read at most
    once: bool = False  # no page is wanted again, so the system need not keep those it did not have
    scratch: int = 1 << 20  # bytes of memory for rows that are read with their neighbours


def pages_between(stored: StoredRows, numbers: Ints) -> Ints:
    """Return the whole pages between each row and the next one."""
    starts = stored.base + numbers * np.int64(stored.stride)
    between: Ints = starts[1:] // PAGE - (starts[:-1] + (stored.item - 1)) // PAGE - 1
    return between


class DiskFile:
    """An open regular file with positional input and output.

    Positional reads into the engine's own buffers keep the page cache out of the process's
    resident set, and a file that shrinks is reported as an error, not a fatal signal.
    """

    in_memory = False  # whether the order of reads does not matter
    local = True  # whether reading it twice costs little
    waste = 1.1  # bytes read over the bytes of the pages that hold wanted rows, at most
    in_flight = 0  # reads at once, of a file that is open for whole pages alone (O_DIRECT)

    def __init__(self, path: str, meter: Meter, flags: int = os.O_RDONLY, mode: int = 0o666):
        self.path = path
        self.meter = meter
        self.fd = open_regular(path, flags, mode)
        self._identity: tuple[int, ...] | None = self._state(os.fstat(self.fd))

    @classmethod
    def scratch(cls, directory: str, meter: Meter) -> "DiskFile":
        """Return an unnamed file, which disappears with the process, however that ends."""
        file = cls.__new__(cls)
        with tempfile.TemporaryFile(dir=directory, buffering=0) as unnamed:
            file.fd = os.dup(unnamed.fileno())
        file.path, file.meter, file._identity = f"spill file in {directory}", meter, None
        return file

    def close(self) -> None:
        """Close the file; further calls do nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def stop(self) -> None:
        """Do nothing: reads of a disk are never pending."""

    @property
    def size(self) -> int:
        """The file's size now."""
        return os.fstat(self.fd).st_size

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill `buffer` from position `offset`; a file that ends before is an OSError."""
        done = 0
        while done < len(buffer):
            with naming(self.path):
                got = read_into(self.fd, buffer[done : done + LONGEST_TRANSFER], offset + done)
            if got == 0:
                raise self.truncated(offset + done, offset + len(buffer))
            done += got
        self.meter.read(done)

    def read_rows(
        self, stored: StoredRows, numbers: Ints, places: Ints | None, into: Bytes, how: Reading
    ) -> int:
        """Read row `numbers[i]` of the file into row `places[i]` (None: `i`) of `into`.

        Neighbouring requests for neighbouring rows, in ascending order, are read at once. Returns
        the number of reads that this took.
        """
        numbers = np.ascontiguousarray(numbers)
        places = places if places is None else np.ascontiguousarray(places)
        found = native.read_file_rows(self.fd, stored, numbers, places, into, *how, self.in_flight)
        self.meter.read(found[4])
        if found[0] != "done":
            self._raise_failed(found)
        return found[5]

    def read_few(
        self,
        stored: StoredRows,
        numbers: Ints,
        places: Ints | None,
        flat: Bytes,
        cache: native.RowCache | None = None,
    ) -> bool:
        """Read a few rows as `read_rows` does; return False where a number is no row's.

        All arrays are contiguous; `flat` is the bytes of the rows. Nothing was written then. With
        a cache, those that it has are not read, and the others are kept.
        """
        if cache is None:
            scratch = FEW_SCRATCH + self.in_flight * READ_SCRATCH
            found = native.read_file_rows(
                self.fd, stored, numbers, places, flat, self.waste, False, scratch, self.in_flight
            )
        else:
            read = cache.read(self.fd, stored, numbers, places, flat, self.waste, FEW_SCRATCH)
            if read is None:
                return True
            found = read
        if found[0] == "outside":
            return False
        self.meter.read(found[4])
        if found[0] != "done":
            self._raise_failed(found)
        return True

    def _raise_failed(self, found: tuple[str, int, int, int, int, int]) -> NoReturn:
        """Raise the error for what the core returned of rows that it could not read."""
        status, error, position, until, _, _ = found
        if status == "truncated":
            raise self.truncated(position, until)
        if status == "failed":
            raise OSError(error, os.strerror(error), self.path)
        if status == "outside":
            raise OSError(f"{self.path}: request {position} is for a row that does not exist")
        raise MemoryError(f"{self.path}: no memory to read rows into")

    def expect(self, stored: StoredRows, numbers: Ints) -> None:
        """Let the system begin to read rows, all at the same time, and return at once."""
        if ADVISE is None:
            return
        for number in numbers.tolist():
            ADVISE(self.fd, stored.base + number * stored.stride, stored.item, WILL_NEED)

    def cached_share(self, offsets: Ints) -> float:
        """Return the share of some positions that is in the page cache; 0 if unknown."""
        flags = getattr(os, "RWF_NOWAIT", None)
        if flags is None or offsets.size == 0:
            return 0.0
        byte, there = bytearray(1), 0
        for offset in offsets.tolist():
            try:
                there += os.preadv(self.fd, [byte], offset, flags)
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    raise OSError(error.errno, error.strerror, self.path) from error
                return 0.0
        return there / offsets.size

    def truncated(self, position: int, until: int) -> OSError:
        """Return the error of a file that has become shorter."""
        return OSError(
            f"{self.path}: ends at byte {position} of {until}: truncated while it was being read"
        )

    def read_bytes(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from position `offset`, fewer only at the file's end."""
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
        done = 0
        while done < len(view):
            with naming(self.path):
                done += write_some(self.fd, view[done : done + LONGEST_TRANSFER], offset + done)
        if done >= WRITE_BEHIND and self._identity is not None:
            # start writing to the disk now, so that `sync` waits less
            native.start_writing(self.fd, offset, done)
        self.meter.wrote(done)

    def grow(self, size: int) -> None:
        """Make the file at least `size` bytes long."""
        if self.size < size:
            self.resize(size)

    def resize(self, size: int) -> None:
        """Make the file `size` bytes long."""
        with naming(self.path):
            os.ftruncate(self.fd, size)

    def sync(self) -> None:
        """Return once everything written is on the disk."""
        with naming(self.path):
            os.fsync(self.fd)

    def state(self) -> list[int]:
        """Return the file's identity and version, as the journal keeps them."""
        return list(self._identity or ())

    def fresh_state(self) -> list[int]:
        """Return `state` as it is now, after writing."""
        return list(self._state(os.fstat(self.fd)))

    def check_unchanged(self) -> None:
        """Raise OSError when the file was replaced, removed or written since it was opened."""
        if self._identity is None:
            return
        try:
            now = self._state(os.stat(self.path))
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path}: vanished while it was being read") from None
        if now != self._identity:
            raise OSError(f"{self.path}: changed while it was being read")

    @staticmethod
    def _state(status: os.stat_result) -> tuple[int, ...]:
        return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def byte_view(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a C-contiguous array, whatever its dtype, without a copy."""
    flat = array.reshape(-1)
    if flat.size == 0:
        return memoryview(bytearray())  # writable, as what is read into must be
    return flat.view(np.uint8).data.cast("B")


def check_within(path: str, root: str) -> None:
    """Raise ValueError where a path, its links followed, leaves `root`, which has no links."""
    if os.path.commonpath([os.path.realpath(path), root]) != root:
        raise ValueError(f"{path}: a link that leads out of the store is not followed")
