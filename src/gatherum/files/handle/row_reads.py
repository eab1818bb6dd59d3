"""Whole rows of an open table are read by their numbers, a few at a time."""

from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum import native
from gatherum.files.disk import DiskFile, StoredRows, byte_view
from gatherum.files.formats.storage import FlatStorage, Source
from gatherum.files.handle.direct_reads import DirectReads
from gatherum.files.handle.protocol import RowReads
from gatherum.files.lookups import Lookups
from gatherum.indices import first_invalid

__all__ = ["CALL", "OtherReads", "reads_of"]

Ints = NDArray[np.int64]
WAITED_ROW, WAITED_CALL = 2_000, 20_000  # nanoseconds, from which on the disk was waited for
SAMPLED = 8  # one row in so many is asked for, to find out whether all are in the page cache
CALL: dict[str, Any] = {"axis": 0, "mode": "raise", "negative": False}


def reads_of(table: Source, lookups: Lookups, readers: int, direct: bool) -> RowReads | None:
    """Return what reads rows along the first dimension; None where there are none.

    `direct` is for files on this machine whose rows lie in one piece, by so many `readers`.

    Raises
    ------
    ValueError
        The table is no such file, or the system has no direct reads.
    """
    if not table.shape or not table.nbytes:
        return None
    storage, nbytes = table.storage, table.nbytes // table.shape[0]
    if isinstance(storage, FlatStorage) and not storage.fortran:
        stored = StoredRows(storage.array.offset, nbytes, nbytes, table.shape[0])
        file = storage.array.file
        if file.local and not file.in_memory:
            if direct:
                return DirectReads(file, stored, readers, lookups.opening.at_end)
            return FlatReads(file, stored)
    if direct:
        raise ValueError(
            f"open: direct=True is for files on this machine whose rows lie in one piece, got "
            f"{table.location}"
        )
    return OtherReads(table, lookups)


class FlatReads(RowReads):
    """Rows of a flat file on this machine.

    Where the disk was waited for, the system is asked for all rows of the next call before they are
    read, so that many small reads are in flight; no thread is needed for that.
    """

    def __init__(self, file: DiskFile, stored: StoredRows) -> None:
        self._file, self._stored = file, stored
        self._waited = False

    def read(self, numbers: Ints, places: Ints | None, flat: NDArray[np.uint8]) -> bool:
        """Read rows in the order of the file: those that share a page are read once."""
        count = numbers.size
        begun = perf_counter_ns()
        if count > 1:
            order = numbers.argsort()
            numbers, places = numbers[order], order if places is None else places[order]
            if self._waited and not self.expect(numbers):
                return False
        done = self._file.read_few(self._stored, numbers, places, flat)
        self._waited = perf_counter_ns() - begun > WAITED_CALL + WAITED_ROW * count
        return done

    def read_kept(
        self, cache: native.RowCache, numbers: Ints, places: Ints | None, flat: NDArray[np.uint8]
    ) -> bool:
        """Read rows in one call of the core, unless the disk was waited for."""
        if self._waited:
            return super().read_kept(cache, numbers, places, flat)
        begun = perf_counter_ns()
        done = self._file.read_few(self._stored, numbers, places, flat, cache)
        self._waited = perf_counter_ns() - begun > WAITED_CALL + WAITED_ROW * numbers.size
        return done

    def are_resident(self, numbers: Ints) -> bool:
        """Whether a sample of the rows, each of which there is, lies in the page cache."""
        sample = numbers[::SAMPLED]
        return self._file.cached_share(self._stored.base + sample * self._stored.stride) == 1.0

    def expect(self, numbers: Ints) -> bool:
        """Let the system begin to read sorted rows."""
        if numbers.size and not 0 <= numbers[0] <= numbers[-1] < self._stored.extent:
            return False
        self._file.expect(self._stored, numbers)
        return True


class OtherReads(RowReads):
    """Rows of any other table, by a gather: at a URL, in chunks, in Fortran order, in memory."""

    def __init__(self, table: Source, lookups: Lookups) -> None:
        self._table, self._lookups = table, lookups
        self._item = table.nbytes // table.shape[0]

    def read(self, numbers: Ints, places: Ints | None, flat: NDArray[np.uint8]) -> bool:
        """Read rows, and put them in their places."""
        if first_invalid(numbers, self._table.shape[:1], "raise", False, False) is not None:
            return False
        rows, _ = self._lookups.gather("gather", numbers, CALL, 0)
        found = np.frombuffer(byte_view(rows), np.uint8).reshape(-1, self._item)
        flat.reshape(-1, self._item)[slice(None) if places is None else places] = found
        return True

    def are_resident(self, numbers: Ints) -> bool:
        """Return False: nothing is known."""
        return False

    def expect(self, numbers: Ints) -> bool:
        """Return False: the system keeps nothing."""
        return False
