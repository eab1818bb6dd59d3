"""Measure the machine's limits, which no gather or scatter can exceed."""

from __future__ import annotations

import mmap
import os
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from gatherum._system.bandwidth import Stream, least_seconds, reads

STREAM_BYTES = 256 << 20
RANDOM_BYTES = 200 << 20
RANDOM_LOADS = 1 << 23
LEAST_BYTES = 1 << 20
FULL_SCALE = 0.01  # only tests use less: for small arrays, the limit would be the cache
PAGE = 4096


class Meter:
    """Measures all limits once, and then the read bandwidth in turns with the peers."""

    def __init__(self) -> None:
        self._read: Stream | None = None

    def measure(self, scale: float, rounds: int) -> dict[str, Any]:
        """Measure read and copy bandwidth, random loads and the first touch of memory.

        Parameters
        ----------
        scale : float
            The scale of the workloads; the sizes are reduced only below 0.01.
        rounds : int
            Runs of each measurement; the best run is used.

        Returns
        -------
        dict
            ``read_gb_s``, ``copy_gb_s`` and ``random_load_ns`` by number of threads,
            ``random_load_by`` (the method), ``first_touch_ms`` by size of page, and
            ``bytes``, the size of the streams.
        """
        part = min(1.0, scale / FULL_SCALE)
        nbytes = max(LEAST_BYTES, round(STREAM_BYTES * part))
        counts = sorted({1, os.cpu_count() or 1})
        source = np.ones(nbytes // 8, "f8")
        streams = [stream for n in counts for stream in reads(source, n)]
        spent = [stream.seconds(rounds) for stream in streams]
        self._read = streams[int(np.argmin(spent))]
        target = np.empty_like(source)
        copies = {n: Stream(np.copyto, (target, source), n).seconds(rounds) for n in counts}
        loads, by = _random_loads(max(LEAST_BYTES, round(RANDOM_BYTES * part)), counts, rounds)
        best = {
            n: min(s for s, stream in zip(spent, streams, strict=True) if stream.threads == n)
            for n in counts
        }
        return {
            "bytes": nbytes,
            "read_gb_s": {str(n): nbytes / s / 1e9 for n, s in best.items()},
            "copy_gb_s": {str(n): nbytes / s / 1e9 for n, s in copies.items()},
            "random_load_ns": loads,
            "random_load_by": by,
            "first_touch_ms": _first_touch(nbytes, rounds),
        }

    def read(self) -> float:
        """Return the current read bandwidth in bytes per second, by the best method."""
        if self._read is None:
            raise RuntimeError("bench: the machine's limits have not been measured")
        return self._read.arrays[0].nbytes / self._read.seconds(1)


def _random_loads(nbytes: int, counts: list[int], rounds: int) -> tuple[dict[str, float], str]:
    """Return the nanoseconds per random load of 4 bytes, with independent loads."""
    if find_spec("numba") is None:
        source = np.ones(nbytes // 4, "u4")
        indices = np.random.default_rng(0).integers(0, len(source), RANDOM_LOADS)
        out = np.empty(RANDOM_LOADS, "u4")
        spent = least_seconds(lambda: np.take(source, indices, out=out, mode="wrap"), rounds)
        return {"1": spent / RANDOM_LOADS * 1e9}, "np.take (its own work included)"
    return _random_loads_numba(nbytes, counts, rounds), "a numba loop"


def _random_loads_numba(nbytes: int, counts: list[int], rounds: int) -> dict[str, float]:
    numba: Any = import_module("numba")
    prange = numba.prange

    def walk(source: Any, count: Any, pieces: Any) -> Any:
        total = np.zeros(pieces, np.uint64)
        mask = np.uint64(len(source) - 1)
        for piece in prange(pieces):
            state = np.uint64(piece + 1) * np.uint64(0x9E3779B97F4A7C15)
            loaded = np.uint64(0)
            for _ in range(count // pieces):
                state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                loaded += source[(state >> np.uint64(33)) & mask]
            total[piece] = loaded
        return total

    loop = numba.njit(parallel=True)(walk)
    source = np.ones(1 << ((nbytes // 4).bit_length() - 1), "u4")  # a power of two, for the mask
    usable = int(numba.config.NUMBA_NUM_THREADS)
    nanoseconds = {}
    for count in counts:
        numba.set_num_threads(min(count, usable))
        spent = least_seconds(lambda count=count: loop(source, RANDOM_LOADS, count), rounds)  # type: ignore[misc]
        nanoseconds[str(count)] = spent / RANDOM_LOADS * 1e9
    return nanoseconds


def _first_touch(nbytes: int, rounds: int) -> dict[str, float]:
    """Return the milliseconds of the first access to memory, in small and huge pages."""
    advice = {"4 KiB": getattr(mmap, "MADV_NOHUGEPAGE", None)}
    advice["2 MiB"] = getattr(mmap, "MADV_HUGEPAGE", None)
    milliseconds = {}
    for name, value in advice.items():
        if value is not None:
            spent = [_touch(nbytes, value) for _ in range(rounds)]
            milliseconds[name] = min(spent) * 1e3
    return milliseconds


def _touch(nbytes: int, advice: int) -> float:
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # shared memory has small pages only
    with mmap.mmap(-1, nbytes, flags=private) as memory:
        memory.madvise(advice)
        pages = np.frombuffer(memory, "u1")[::PAGE]
        start = perf_counter()
        pages[...] = 1
        spent = perf_counter() - start
        del pages
    return spent
