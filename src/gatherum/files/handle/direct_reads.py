"""Rows are read past the page cache, into aligned memory and from there to where they belong."""

import mmap
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.disk import PAGE, DiskFile, StoredRows
from gatherum.files.handle.protocol import RowReads
from gatherum.regular_files import naming, open_regular

__all__ = ["DirectReads"]

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
FLAG: int | None = getattr(os, "O_DIRECT", None)
LONGEST = 1 << 20  # bytes that are read at once, but for a row that is longer
NEAR = 4  # pages between two rows that are read with them


class DirectReads(RowReads):
    """Rows of a flat file, read by several threads at once with O_DIRECT.

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
            self._fd = open_regular(file.path, os.O_RDONLY | FLAG)
        at_end(lambda: os.close(self._fd))
        if not os.path.sameopenfile(self._fd, file.fd):
            raise OSError(f"{file.path}: was replaced while it was being opened")
        self._file, self._stored, self._readers = file, stored, readers
        self._threads = ThreadPoolExecutor(readers, "gatherum-direct") if readers > 1 else None
        if self._threads is not None:
            at_end(self._end_threads)
        self._own, self._process = threading.local(), os.getpid()

    def _end_threads(self) -> None:
        """End the threads, which a child of a fork does not have.

        They are idle, and nothing waits for them: the garbage collector may call this in any
        thread, also in one that holds a lock which an ending thread needs.
        """
        if self._threads is not None and os.getpid() == self._process:
            self._threads.shutdown(wait=False)

    def read(self, numbers: Ints, places: Ints | None, flat: Bytes) -> bool:
        """Read rows in the order of the file: those that share pages are read once."""
        if numbers.size == 0:
            return True
        order = numbers.argsort()
        numbers, places = numbers[order], order if places is None else places[order]
        if numbers[0] < 0 or numbers[-1] >= self._stored.extent:
            return False
        rows = flat.reshape(-1, self._stored.item)
        cuts = self._runs(numbers)
        runs = [(numbers[start:stop], places[start:stop], rows) for start, stop in pairwise(cuts)]
        if self._threads is None or len(runs) == 1:
            self._read_runs(runs)
            return True
        shares = [runs[first :: self._readers] for first in range(min(self._readers, len(runs)))]
        reads = [self._threads.submit(self._read_runs, share) for share in shares]
        wait(reads)  # all of them, also where one fails: they write to the caller's memory
        try:
            while reads:
                reads.pop().result()
        finally:
            reads.clear()  # an error refers to this frame, and a future to its error
        return True

    def _runs(self, numbers: Ints) -> list[int]:
        """Return where sorted numbers are cut into runs that are read at once, and their end."""
        starts = self._stored.base + numbers * self._stored.stride
        first, last = starts // PAGE, (starts + self._stored.item - 1) // PAGE
        cuts, begun = [0], int(first[0])
        apart = first[1:] - last[:-1] > NEAR
        for at in range(1, numbers.size):
            if apart[at - 1] or (last[at] + 1 - begun) * PAGE > LONGEST:
                cuts.append(at)
                begun = int(first[at])
        return [*cuts, numbers.size]

    def _read_runs(self, runs: list[tuple[Ints, Ints, Bytes]]) -> None:
        """Read one run after another."""
        for run in runs:
            self._read_run(*run)

    def _read_run(self, numbers: Ints, places: Ints, rows: Bytes) -> None:
        """Read the pages of one run, and copy its rows to their places."""
        item, stride = self._stored.item, self._stored.stride
        start = self._stored.base + int(numbers[0]) * stride
        begun = start // PAGE * PAGE
        until = self._stored.base + int(numbers[-1]) * stride + item
        found = self._pages(begun, until)
        shape = (int(numbers[-1] - numbers[0]) + 1, item)
        run: Bytes = np.ndarray(shape, np.uint8, found.data, start - begun, (stride, 1))
        rows[places] = run[numbers - numbers[0]]

    def _pages(self, begun: int, until: int) -> Bytes:
        """Return the bytes of a file from the beginning of a page on, in this thread's memory."""
        length = -(-(until - begun) // PAGE) * PAGE
        memory: Any = getattr(self._own, "memory", None)
        if memory is None or len(memory) < length:
            memory = self._own.memory = mmap.mmap(-1, length)  # which begins with a page
        view, done = memoryview(memory), 0
        while begun + done < until:
            with naming(self._file.path):
                got = os.preadv(self._fd, [view[done:length]], begun + done)
            done += got
            if begun + done < until and (got == 0 or got % PAGE):
                raise self._file.truncated(begun + done, until)
        self._file.meter.read(done)
        return np.frombuffer(memory, np.uint8, length)

    def are_resident(self, numbers: Ints) -> bool:
        """Return False: nothing is kept."""
        return False

    def expect(self, numbers: Ints) -> bool:
        """Return False: nothing is kept."""
        return False
