"""Predict the gain of many threads on one processor: ``python benchmarks/threads_bench.py``.

All threads share one processor. Long time slices would let a running thread do the work of threads
that wait, so a slice lasts 0.1 ms. The processor time of the busiest thread then predicts the wall
time on as many processors as threads, except for the time in which threads wake up, and for the
limits of shared caches and memory. Speedups and work are relative to a call on one thread: its
processor time divided by the processor time of the busiest thread, and the processor time of all
threads divided by its own. Calls on one thread and on many threads alternate; each figure is the
median of the rounds.

The script needs Linux 6.12 or later and the right to set a real-time priority: a second process
with such a priority wakes up every 0.1 ms, so that the system ends time slices.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import statistics
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from algorithms_bench import Times, spent

import gatherum

Array = np.ndarray[Any, np.dtype[Any]]
Call = Callable[[], object]
SLICE = 100_000  # nanoseconds
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # the number of the system call
WAKER = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while os.getppid() == {}:
    time.sleep({})
"""


@contextmanager
def short_slices() -> Iterator[None]:
    """Run this process and its new threads on one processor, in short time slices."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, 0, 0, SLICE, 0, 0)
    system = ctypes.CDLL(None, use_errno=True)
    if system.syscall(SCHED_SETATTR[os.uname().machine], 0, attributes, 0) != 0:
        raise OSError(ctypes.get_errno(), "sched_setattr did not set a time slice of 0.1 ms")
    program = WAKER.format(os.getpid(), SLICE / 1e9)
    waker = subprocess.Popen([sys.executable, "-c", program])
    try:
        yield
        if waker.poll() is not None:
            raise RuntimeError("the second process ended: it needs a real-time priority")
    finally:
        waker.kill()
        waker.wait()


@dataclass(frozen=True)
class Case:
    """One call, with the goals for the speedup and the work of 16 threads."""

    name: str
    prepare: Callable[[np.random.Generator], Call]
    speedup: float
    work: float


def gather_rows(rng: np.random.Generator) -> Call:
    data, indices = rng.random((1 << 20, 128), np.float32), rng.integers(0, 1 << 20, 1 << 20)
    out = np.empty_like(data)
    return lambda: gatherum.gather(data, indices, out=out)


def gather_items(rng: np.random.Generator) -> Call:
    data, indices = rng.random(1 << 25, np.float32), rng.integers(0, 1 << 25, 1 << 23)
    return lambda: gatherum.gather(data, indices)


def gather_elements(rng: np.random.Generator) -> Call:
    data, indices = rng.random((4096, 4096), np.float32), rng.integers(0, 4096, (4096, 4096))
    return lambda: gatherum.gather_elements(data, indices, 1)


def set_rows(rng: np.random.Generator, repeats: bool) -> Call:
    data, updates = (rng.random((1 << 20, 128), np.float32) for _ in range(2))
    indices = rng.integers(0, 1 << 20, 1 << 20) if repeats else rng.permutation(1 << 20)
    return lambda: gatherum.scatter_slices(data, indices, updates, out=data)


def fold(rng: np.random.Generator, reduction: str, dtype: str, size: int, heavy: float) -> Call:
    updates = (100 * rng.random(10_000_000, np.float32)).astype(dtype)
    indices = rng.integers(0, size, len(updates))
    indices[rng.random(len(updates)) < heavy] = size // 3
    data = np.zeros(size, dtype)
    return lambda: gatherum.scatter_slices(data, indices, updates, reduction=reduction)


def fold_rows(rng: np.random.Generator) -> Call:
    data, updates = np.zeros((100_000, 64), "f4"), rng.random((1 << 20, 64), np.float32)
    indices = rng.integers(0, len(data), len(updates))
    return lambda: gatherum.scatter_slices(data, indices, updates, reduction="add")


def aggregate(rng: np.random.Generator, reduction: str) -> Call:
    data = rng.random((100_000, 64), np.float32)
    sources, targets = rng.integers(0, len(data), (2, 1 << 20))
    return lambda: gatherum.aggregate(data, sources, targets, len(data), reduction)


def reduce_groups(rng: np.random.Generator, function: str) -> Call:
    values, groups = rng.random(10_000_000), rng.integers(0, 10_000, 10_000_000)
    return lambda: gatherum.groups.reduce(values, groups, 10_000, function)


def cases() -> Iterator[Case]:
    yield Case("gather rows of 512 bytes", gather_rows, 10, 1.5)
    yield Case("gather single float32", gather_items, 10, 1.5)
    yield Case("gather_elements, last axis", gather_elements, 10, 1.5)
    yield Case("set rows, permutation", partial(set_rows, repeats=False), 8, 1.5)
    yield Case("set rows, duplicates", partial(set_rows, repeats=True), 8, 1.5)
    for size, heavy, speedup, work in (
        (1 << 20, 0, 6, 2),
        (10_000, 0, 6, 2.2),
        (10_000, 0.1, 6, 2.2),
        (256, 0, 4, 2.5),
    ):
        for reduction, dtypes in (
            ("add", ("float16", "float32", "float64", "int64")),
            ("mean", ("float32", "float64")),
            ("max", ("float32", "float64")),
            ("fsum", ("float32", "float64")),
        ):
            for dtype in dtypes:
                name = f"{reduction} of 10M {dtype} into {size:,}"
                name += ", a tenth into one place" if heavy else ""
                call = partial(fold, reduction=reduction, dtype=dtype, size=size, heavy=heavy)
                yield Case(name, call, speedup, work)
    yield Case("add rows of 64 float32, 1M into 100,000", fold_rows, 8, 1.5)
    for reduction in ("add", "mean", "max"):
        yield Case(f"aggregate, {reduction}", partial(aggregate, reduction=reduction), 8, 1.5)
    for function in ("sum", "mean", "max", "var", "nanmean", "median"):
        call = partial(reduce_groups, function=function)
        yield Case(f"groups.reduce, {function} of 10M float64", call, 6, 2.2)


def measured(case: Case, threads: int, rounds: int) -> str:
    """Return the row of a case."""
    call = case.prepare(np.random.default_rng(0))
    times: dict[int, list[Times]] = {1: [], threads: []}
    for number in range(rounds + 1):
        for count in (1, threads):
            gatherum.set_num_threads(count)
            taken = spent(call, 3)
            if number:  # the first round allocates memory
                times[count].append(taken)
    one = [t for _, t, _ in times[1]]
    speedups = [o / busiest for o, (_, _, busiest) in zip(one, times[threads], strict=True)]
    speedup = statistics.median(speedups)
    work = statistics.median(t / o for o, (_, t, _) in zip(one, times[threads], strict=True))
    missed = threads == 16 and (speedup < case.speedup or work > case.work)
    return (
        f"| {case.name} | {1e3 * statistics.median(one):.1f} | "
        f"{speedup:.1f} ({min(speedups):.1f}-{max(speedups):.1f}) | {case.speedup} | "
        f"{work:.2f} | {case.work} |{' missed' if missed else ''}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="a regular expression for the names of cases")
    arguments = parser.parse_args()
    print("| call | one thread, ms | speedup (range) | goal | work | goal |\n|---|" + "---:|" * 5)
    with short_slices():
        for case in cases():
            if re.search(arguments.only, case.name):
                print(measured(case, arguments.threads, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
