"""Read complete rows of an open table by number."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.indices import first_invalid
from gatherum._system import native
from gatherum._system.regular_files import naming
from gatherum.files import errors
from gatherum.files.formats.storage import FlatStorage, Source
from gatherum.files.lookups import Lookups
from gatherum.files.resources.disk import DiskFile, StoredRows, byte_view

Ints = NDArray[np.int64]
WAITED_ROW, WAITED_CALL = 2_000, 20_000  # in nanoseconds; longer reads have waited for the disk
# Up to this number of rows, the core sorts them. NumPy releases the interpreter's lock to sort, and
# threads then wait for it longer than the sort takes.
SORTED = 256
SAMPLED = 8  # every eighth row is sampled, to check whether all rows are in the page cache
DIRECT: int | None = getattr(os, "O_DIRECT", None)
NOTED = 9  # bytes per row that a cache needs in addition to the row
CALL: dict[str, Any] = {"axis": 0, "mode": "raise", "negative": False}


class RowReads:
    """Reads rows by number into a flat array of bytes."""

    def read(self, row_numbers: Ints, positions: Ints | None, flat: NDArray[np.uint8]) -> bool:
        """Read row `row_numbers[i]` to position `positions[i]` (None: `i`).

        Return False, without writing anything, if a number is out of bounds.
        """
        raise NotImplementedError

    def read_kept(
        self,
        cache: native.RowCache,
        row_numbers: Ints,
        positions: Ints | None,
        flat: NDArray[np.uint8],
    ) -> bool:
        """Read rows like `read`, from the cache if possible. Cache the rows that were not in it."""
        version = cache.version
        missing = cache.lookup(row_numbers, positions, flat)
        if missing is None or missing is False:
            return missing is None
        wanted = row_numbers[missing]
        fresh = np.empty(wanted.size * cache.row_bytes, np.uint8)  # not shared with other threads
        if not self.read(wanted, None, fresh):
            return False
        cache.insert(wanted, None, fresh, version)
        targets = missing if positions is None else positions[missing]
        flat.reshape(-1, cache.row_bytes)[targets] = fresh.reshape(-1, cache.row_bytes)
        return True

    def are_resident(self, row_numbers: Ints) -> bool:
        """Return True if the rows are probably in memory, so that reading them does not wait."""
        return False

    def expect(self, row_numbers: Ints) -> bool:
        """Let the system begin to read rows. Return False if it cannot."""
        return False


def _sorted(row_numbers: Ints, positions: Ints | None) -> tuple[Ints, Ints]:
    """Sort rows by their order in the file, so that each shared page is read once."""
    order = row_numbers.argsort()
    return row_numbers[order], order if positions is None else positions[order]


class FlatReads(RowReads):
    """Rows of a flat local file.

    After a call that waited for the disk, the next call first requests all its rows from the system
    and then reads them. Many small reads then run concurrently without additional threads.
    """

    def __init__(self, file: DiskFile, stored: StoredRows) -> None:
        self._file, self._stored = file, stored
        self._waited = False

    def read(self, row_numbers: Ints, positions: Ints | None, flat: NDArray[np.uint8]) -> bool:
        """Read rows in the order of the file."""
        count = row_numbers.size
        are_resident = count <= SORTED and not self._waited
        if count > 1 and not are_resident:
            row_numbers, positions = _sorted(row_numbers, positions)
            if self._waited and not self.expect(row_numbers):
                return False
        call = self._stored, row_numbers, positions, flat
        took = self._file.read_few(*call, are_resident=are_resident)
        return self._noted(took, count)

    def _noted(self, took: int | None, count: int) -> bool:
        """Note whether a read waited for the disk. Return False if it read nothing.

        Time in which a thread waits for the interpreter's lock does not count: the requests to the
        system release the lock, so more threads would wait for it.
        """
        self._waited = took is not None and took > WAITED_CALL + WAITED_ROW * count
        return took is not None

    def read_kept(
        self,
        cache: native.RowCache,
        row_numbers: Ints,
        positions: Ints | None,
        flat: NDArray[np.uint8],
    ) -> bool:
        """Read rows in one call to the core, unless the previous call waited for the disk."""
        if self._waited:
            return super().read_kept(cache, row_numbers, positions, flat)
        are_few = row_numbers.size <= SORTED
        call = self._stored, row_numbers, positions, flat, cache
        took = self._file.read_few(*call, are_resident=are_few)
        return self._noted(took, row_numbers.size)

    def are_resident(self, row_numbers: Ints) -> bool:
        """Return True if a sample of the rows, all of which are valid, is in the page cache."""
        sample = row_numbers[::SAMPLED]
        return self._file.cached_share(self._stored.base + sample * self._stored.stride) == 1.0

    def expect(self, row_numbers: Ints) -> bool:
        """Let the system begin to read sorted rows."""
        if row_numbers.size and not 0 <= row_numbers[0] <= row_numbers[-1] < self._stored.extent:
            return False
        self._file.expect(self._stored, row_numbers)
        return True


class DirectReads(RowReads):
    """Read rows of a flat file with O_DIRECT, past the page cache, on `readers` threads."""

    def __init__(
        self, file: DiskFile, stored: StoredRows, readers: int,
        at_end: Callable[[Callable[[], object]], object],
    ) -> None:  # fmt: skip
        if DIRECT is None:
            raise ValueError("open: direct=True needs O_DIRECT, which this system does not have")
        with naming(file.path):
            self._file = DiskFile(file.path, file.meter, os.O_RDONLY | DIRECT)
        at_end(self._file.close)
        if not os.path.sameopenfile(self._file.fd, file.fd):
            raise OSError(f"{file.path}: was replaced while it was being opened")
        self._file.in_flight = readers
        self._stored = stored

    def read(self, row_numbers: Ints, positions: Ints | None, flat: NDArray[np.uint8]) -> bool:
        """Read rows in the order of the file."""
        took = self._file.read_few(self._stored, *_sorted(row_numbers, positions), flat)
        return took is not None


class OtherReads(RowReads):
    """Rows of other tables, read by a gather: at a URL, in chunks, in Fortran order, in memory."""

    def __init__(self, table: Source, lookups: Lookups) -> None:
        self._table, self._lookups = table, lookups
        self._item = table.nbytes // table.shape[0]

    def read(self, row_numbers: Ints, positions: Ints | None, flat: NDArray[np.uint8]) -> bool:
        """Read rows, and copy them to their positions."""
        if first_invalid(row_numbers, self._table.shape[:1], "raise", False, False) is not None:
            return False
        rows, _ = self._lookups.gather("gather", row_numbers, CALL, 0)
        row_bytes = np.frombuffer(byte_view(rows), np.uint8).reshape(-1, self._item)
        flat.reshape(-1, self._item)[slice(None) if positions is None else positions] = row_bytes
        return True


def reads_of(table: Source, lookups: Lookups, reader_count: int, direct: bool) -> RowReads | None:
    """Return a reader of rows along the first dimension, or None if there are no rows.

    `direct` requires a local file with contiguous rows, which `reader_count` threads read. Raise
    ValueError for other tables, and if the system does not support direct reads.
    """
    if not table.shape or not table.nbytes:
        return None
    storage, row_bytes = table.storage, table.nbytes // table.shape[0]
    if isinstance(storage, FlatStorage) and not storage.fortran:
        stored = StoredRows(storage.array.offset, row_bytes, row_bytes, table.shape[0])
        file = storage.array.file
        if file.local and not file.in_memory:
            if direct:
                return DirectReads(file, stored, reader_count, lookups.resources.at_end)
            return FlatReads(file, stored)
    if direct:
        if table.packing is not None:
            raise ValueError(
                f"open: direct=True is for numbers as they are stored, got {table.location}, which "
                f"is packed ({table.packing}); decode=False takes the stored numbers"
            )
        raise ValueError(
            f"open: direct=True is for files on this machine whose rows lie in one piece, got "
            f"{table.location}"
        )
    return OtherReads(table, lookups)


def cache_of(nbytes: int, extent: int, item: int) -> native.RowCache:
    """Return a cache of `nbytes` in the core, for a table of `extent` rows of `item` bytes each.

    Raise ValueError if it is smaller than one row.
    """
    slots = min(nbytes // (item + NOTED), extent)
    if slots < 1:
        raise errors.cache_too_small("open", item + NOTED, nbytes)
    return native.make_row_cache(slots, extent, item)
