"""Measure this machine's read bandwidth, an upper limit for the speed of calls."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The reduction that is as fast as memory differs between processors, so the fastest one counts.
READS: tuple[tuple[Any, str], ...] = (
    (np.add.reduce, "f8"),
    (np.maximum.reduce, "f4"),
    (np.bitwise_or.reduce, "i8"),
    (np.maximum.reduce, "u1"),
)
QUICK_BYTES = 128 << 20
QUICK_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Stream:
    """A function that runs on parts of arrays, one per thread. NumPy releases the GIL."""

    function: Callable[..., object]
    arrays: tuple[NDArray[Any], ...]
    threads: int

    def seconds(self, rounds: int) -> float:
        """Return the shortest of several run times, which is closest to the machine's limit."""
        parts_of_threads = list(
            zip(*(np.array_split(a, self.threads) for a in self.arrays), strict=True)
        )
        if self.threads == 1:
            return least_seconds(lambda: self.function(*parts_of_threads[0]), rounds)
        with ThreadPoolExecutor(self.threads) as pool:
            return least_seconds(
                lambda: list(pool.map(lambda part: self.function(*part), parts_of_threads)), rounds
            )


def least_seconds(run: Callable[[], object], rounds: int) -> float:
    """Return the shortest time of `rounds` runs after one warm-up run."""
    spent = []
    for _ in range(rounds + 1):
        start = perf_counter()
        run()
        spent.append(perf_counter() - start)
    return min(spent[1:])


def reads(source: NDArray[np.float64], threads: int) -> list[Stream]:
    """Return a `Stream` for each method of reading the array on `threads` threads."""
    return [Stream(function, (source.view(dtype),), threads) for function, dtype in READS]


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """The result of a quick measurement: bytes read per second, and the method."""

    bytes_per_second: float
    measured: str


@cache
def quick_read(threads: int) -> Bandwidth:
    """Measure the read bandwidth in about a second, once per process.

    Parameters
    ----------
    threads : int
        The number of threads that read in parallel.

    Returns
    -------
    Bandwidth
        The best of several reductions over an array that exceeds most caches.
    """
    source = np.ones(QUICK_BYTES // 8, "f8")
    spent = min(stream.seconds(QUICK_ROUNDS) for stream in reads(source, threads))
    measured = (
        f"the fastest of {len(READS)} NumPy reductions over {QUICK_BYTES >> 20} MiB "
        f"on {threads} {'thread' if threads == 1 else 'threads'}"
    )
    return Bandwidth(QUICK_BYTES / spent, measured)
