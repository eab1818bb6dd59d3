"""Count the work of a run with a meter, and report it at the end as `Stats`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from .os_calls import peak_memory

Progress = Callable[[int, int], object]


class ProgressDisplay:
    """A function of the bytes done and expected that also shows the phase of a run."""

    def __call__(self, done: int, expected: int) -> None:
        """Show the progress."""
        raise NotImplementedError

    def phase(self, name: str) -> None:
        """Show the name of the phase."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Stats:
    """The statistics of a run on files.

    Attributes
    ----------
    rows : int
        Rows gathered, or updates applied: one for each index (or index tuple).
    bytes_read, bytes_written : int
        Bytes read from and written to the file system, including spilled bytes.
    chunks_touched : int
        Chunks of the table that were read: Zarr chunks or shards, or blocks of
        neighbouring rows of a flat file.
    seconds : float
        Wall-clock time.
    peak_memory : int
        The largest resident set of the process so far, in bytes.
    requests, bytes_requested : int
        The number of requests to URLs, and the number of bytes requested, including repeated
        requests.
    """

    rows: int
    bytes_read: int
    bytes_written: int
    chunks_touched: int
    seconds: float
    peak_memory: int
    requests: int = 0
    bytes_requested: int = 0
    _in_chunks: bool = True

    def __add__(self, other: Stats) -> Stats:
        """Return the statistics of two runs on the same rows, one after the other."""
        return Stats(
            max(self.rows, other.rows),
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
            self.chunks_touched + other.chunks_touched,
            self.seconds + other.seconds,
            max(self.peak_memory, other.peak_memory),
            self.requests + other.requests,
            self.bytes_requested + other.bytes_requested,
            self._in_chunks or other._in_chunks,
        )

    def __str__(self) -> str:
        chunks = "1 chunk" if self.chunks_touched == 1 else f"{self.chunks_touched:,} chunks"
        chunks_text = f"{chunks} touched, " if self._in_chunks else ""
        requests_text = f", {self.requests:,} requests for {size_text(self.bytes_requested)}"
        return (
            f"{self.rows:,} rows, read {size_text(self.bytes_read)}, "
            f"written {size_text(self.bytes_written)}, {chunks_text}"
            f"{self.seconds:.2f} s, peak memory {size_text(self.peak_memory)}"
            f"{requests_text if self.requests else ''}"
        )

    def __repr__(self) -> str:
        return f"<Stats: {self}>"


class Meter:
    """Counts bytes and chunks, and reports the progress of a run to `progress`."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.rows = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.chunks_touched = 0
        self.in_chunks = True  # whether the table is stored in chunks
        self.requests = 0
        self.bytes_requested = 0
        self.expected = 0
        self._progress = progress
        self._moved = 0
        self._lock = threading.Lock()
        self._started = time.perf_counter()

    def expect(self, nbytes: int) -> None:
        """Add `nbytes` to the bytes that the run will move."""
        self.expected += nbytes

    def phase(self, name: str) -> None:
        """Show the name of the current phase, if the progress is a display."""
        if isinstance(self._progress, ProgressDisplay):
            self._progress.phase(name)

    def read(self, nbytes: int) -> None:
        """Count bytes read."""
        with self._lock:
            self.bytes_read += nbytes

    def count_written(self, nbytes: int) -> None:
        """Count bytes written."""
        with self._lock:
            self.bytes_written += nbytes

    def count_requests(self, requests: int, nbytes: int) -> None:
        """Count requests and their bytes."""
        with self._lock:
            self.requests += requests
            self.bytes_requested += nbytes

    def advance(self, nbytes: int) -> None:
        """Report `nbytes` of the expected work as done. Only the thread of the run may call it."""
        self._moved += nbytes
        if self._progress is not None:
            self._progress(min(self._moved, self.expected), self.expected)

    @property
    def percent(self) -> int:
        """The completed percentage of the expected work."""
        return 100 * min(self._moved, self.expected) // max(1, self.expected)

    def stats(self) -> Stats:
        """Return the current statistics."""
        return Stats(
            self.rows,
            self.bytes_read,
            self.bytes_written,
            self.chunks_touched,
            time.perf_counter() - self._started,
            peak_memory(),
            self.requests,
            self.bytes_requested,
            self.in_chunks,
        )


UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(nbytes: int) -> str:
    """Format a number of bytes in a readable form."""
    unit = _unit_of(nbytes)
    return f"{_amount(nbytes, unit)} {UNITS[unit]}"


def amounts_text(done: int, expected: int) -> str:
    """Format a number of bytes that is part of a total, in the unit of the total."""
    unit = _unit_of(expected)
    return f"{_amount(done, unit)} of {_amount(expected, unit)} {UNITS[unit]}"


def _unit_of(nbytes: int) -> int:
    return next((n for n in range(len(UNITS) - 1) if nbytes < 1024 ** (n + 1)), len(UNITS) - 1)


def _amount(nbytes: int, unit: int) -> str:
    return f"{nbytes / 1024**unit:.{int(unit > 0)}f}"
