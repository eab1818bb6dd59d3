"""The machine's own limits, measured: what no gather or scatter can beat."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from .cases import Array

STREAM_BYTES = 256 << 20
RANDOM_BYTES = 200 << 20
RANDOM_LOADS = 1 << 23
LEAST_BYTES = 1 << 20
PAGE = 4096


def measure(scale: float = 1.0, rounds: int = 5) -> dict[str, Any]:
    """Measure read and copy bandwidth, random loads and the first touch of memory.

    Parameters
    ----------
    scale : float
        The size of the arrays against the full 200 to 256 MiB.
    rounds : int
        Runs of each measurement; bandwidths are the best of the medians over thread counts.

    Returns
    -------
    dict
        ``read_gb_s``, ``copy_gb_s``, ``random_load_ns`` (with ``threads`` as keys),
        ``random_load_by`` (what measured it) and ``first_touch_ms`` (by page size).
    """
    nbytes = max(LEAST_BYTES, round(STREAM_BYTES * scale))
    counts = sorted({1, os.cpu_count() or 1})
    source = np.ones(nbytes // 8, "f8")
    target = np.empty_like(source)
    read = {n: nbytes / _best_read(source, n, rounds) / 1e9 for n in counts}
    copy = {n: nbytes / _copy(source, target, n, rounds) / 1e9 for n in counts}
    del source, target
    loads, by = _random_loads(max(LEAST_BYTES, round(RANDOM_BYTES * scale)), counts, rounds)
    return {
        "bytes": nbytes,
        "read_gb_s": max(read.values()),
        "read_gb_s_by_threads": {str(n): value for n, value in read.items()},
        "copy_gb_s": max(copy.values()),
        "copy_gb_s_by_threads": {str(n): value for n, value in copy.items()},
        "random_load_ns": loads,
        "random_load_by": by,
        "first_touch_ms": _first_touch(nbytes, rounds),
    }


def _seconds(run: Callable[[], object], rounds: int) -> float:
    spent = []
    for _ in range(rounds + 1):
        start = perf_counter()
        run()
        spent.append(perf_counter() - start)
    return median(spent[1:])


def _best_read(source: Array, threads: int, rounds: int) -> float:
    """Return the seconds of the fastest reduction: which one keeps up differs by processor."""
    views = [source.view(kind) for kind in ("f8", "f4", "i8", "u1")]
    reductions: list[tuple[Any, Array]] = [
        (np.add.reduce, views[0]), (np.maximum.reduce, views[1]),
        (np.bitwise_or.reduce, views[2]), (np.maximum.reduce, views[3]),
    ]  # fmt: skip
    return min(_in_parts(reduce, [a], threads, rounds) for reduce, a in reductions)


def _copy(source: Array, target: Array, threads: int, rounds: int) -> float:
    return _in_parts(np.copyto, [target, source], threads, rounds)


def _in_parts(
    function: Callable[..., object], arrays: list[Array], threads: int, rounds: int
) -> float:
    """Time a function over parts of arrays, one a thread (NumPy lets go of the interpreter)."""
    parts = list(zip(*(np.array_split(array, threads) for array in arrays), strict=True))
    if threads == 1:
        return _seconds(lambda: function(*parts[0]), rounds)
    with ThreadPoolExecutor(threads) as pool:
        return _seconds(lambda: list(pool.map(lambda part: function(*part), parts)), rounds)


def _random_loads(
    nbytes: int, counts: list[int], rounds: int
) -> tuple[dict[str, float], str]:
    """Return nanoseconds a load of 4 bytes at random, independent of each other."""
    if find_spec("numba") is None:
        source = np.ones(nbytes // 4, "u4")
        indices = np.random.default_rng(0).integers(0, len(source), RANDOM_LOADS)
        out = np.empty(RANDOM_LOADS, "u4")
        spent = _seconds(lambda: np.take(source, indices, out=out, mode="wrap"), rounds)
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
            found = np.uint64(0)
            for _ in range(count // pieces):
                state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                found += source[(state >> np.uint64(33)) & mask]
            total[piece] = found
        return total

    loop = numba.njit(parallel=True)(walk)
    source = np.ones(1 << ((nbytes // 4).bit_length() - 1), "u4")  # a power of two, for the mask
    usable = int(numba.config.NUMBA_NUM_THREADS)
    found = {}
    for count in counts:
        numba.set_num_threads(min(count, usable))
        spent = _seconds(lambda count=count: loop(source, RANDOM_LOADS, count), rounds)  # type: ignore[misc]
        found[str(count)] = spent / RANDOM_LOADS * 1e9
    return found


def _first_touch(nbytes: int, rounds: int) -> dict[str, float]:
    """Return the milliseconds to touch fresh memory, in small and, if offered, large pages."""
    advice = {"4 KiB": getattr(mmap, "MADV_NOHUGEPAGE", None)}
    advice["2 MiB"] = getattr(mmap, "MADV_HUGEPAGE", None)
    found = {}
    for name, value in advice.items():
        if value is not None:
            spent = [_touch(nbytes, value) for _ in range(rounds)]
            found[name] = median(spent) * 1e3
    return found


def _touch(nbytes: int, advice: int) -> float:
    with mmap.mmap(-1, nbytes) as memory:
        memory.madvise(advice)
        pages = np.frombuffer(memory, "u1")[::PAGE]
        start = perf_counter()
        pages[...] = 1
        spent = perf_counter() - start
        del pages
    return spent
