"""Rows are read past the page cache, into aligned memory and from there to where they belong."""

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gatherum.files.disk import DiskFile, StoredRows
from gatherum.files.handle.protocol import RowReads
from gatherum.regular_files import naming

__all__ = ["DirectReads"]

Ints = NDArray[np.int64]
FLAG: int | None = getattr(os, "O_DIRECT", None)


class DirectReads(RowReads):
    """Rows of a flat file, read by several threads of the core at once with O_DIRECT.

    Parameters
    ----------
    file : DiskFile
        The open file.
    stored : StoredRows
        Where its rows lie.
    readers : int
        How many reads are in flight at most.
    at_end : callable
        Is given what closes the files.
    """

    def __init__(
        self, file: DiskFile, stored: StoredRows, readers: int,
        at_end: Callable[[Callable[[], object]], object],
    ) -> None:  # fmt: skip
        if FLAG is None:
            raise ValueError("open: direct=True needs O_DIRECT, which this system does not have")
        with naming(file.path):
            self._file = DiskFile(file.path, file.meter, os.O_RDONLY | FLAG)
        at_end(self._file.close)
        if not os.path.sameopenfile(self._file.fd, file.fd):
            raise OSError(f"{file.path}: was replaced while it was being opened")
        self._file.in_flight = readers
        self._stored = stored

    def read(self, numbers: Ints, places: Ints | None, flat: NDArray[np.uint8]) -> bool:
        """Read rows in the order of the file: those that share pages are read once."""
        order = numbers.argsort()
        numbers, places = numbers[order], order if places is None else places[order]
        return self._file.read_few(self._stored, numbers, places, flat)

    def are_resident(self, numbers: Ints) -> bool:
        """Return False: nothing is kept."""
        return False

    def expect(self, numbers: Ints) -> bool:
        """Return False: nothing is kept."""
        return False
