"""Measure the gain of each algorithm of the core: ``python benchmarks/algorithms_bench.py``.

Each row runs one call with the full list of algorithms and without the algorithm of the row, in
turns in one process, into the same output. The threshold `omitted_algorithms` leaves the algorithm
out, so that the next one of the list runs. The gain is the time without the algorithm divided by
the time with it: the median of the pairs, and the quartiles.

Other programs on the machine lengthen wall time. They change the total processor time and the
processor time of the busiest thread less. The time of the busiest thread predicts wall time if each
thread has a processor. The script reads processor times in /proc, so it needs Linux.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import gatherum
from gatherum._model.operators import OPERATORS
from gatherum._system import native

NAMES = native.algorithm_names()
Array = np.ndarray[Any, np.dtype[Any]]
Times = tuple[float, float, float]


@dataclass
class Case:
    """One call: its shapes and dtype, the size of the indexed dimension, and the attributes.

    The call is measured on each number of threads, `loops` times per measurement. `sizes` are other
    thresholds. A share `heavy` of the indices is the same. Indices are sorted if `ordered`.
    """

    algorithm: str
    op: str
    data: tuple[int, ...]
    indices: tuple[int, ...]
    dtype: str
    attributes: dict[str, Any]
    threads: tuple[int, ...] = (1, 2)
    sizes: dict[str, int] = field(default_factory=dict)
    loops: int = 1
    heavy: float = 0
    ordered: bool = False

    def operands(self) -> list[Array]:
        rng = np.random.default_rng(0)
        axis = self.attributes.get("axis", 0)
        indices = rng.integers(0, self.data[axis], self.indices, np.int64)
        if self.heavy:
            indices[rng.random(self.indices) < self.heavy] = self.data[axis] // 3
        if self.ordered:
            indices.sort()
        shapes = [self.data]
        if self.op == "scatter_elements":
            shapes.append(self.indices)
        elif OPERATORS[self.op].scatters:
            shapes.append((*self.indices[:1], *self.data[1:]))
        data, *updates = (
            (100 * rng.random(shape, np.float32)).astype(self.dtype) for shape in shapes
        )
        return [data, indices, *updates]

    def __str__(self) -> str:
        named = ", ".join(f"{name}={value}" for name, value in self.attributes.items())
        data = "x".join(f"{n:,}" for n in self.data)
        indices = "x".join(f"{n:,}" for n in self.indices)
        call = f"`{self.op}`, {indices} indices, {self.dtype} data of {data}"
        if self.heavy:
            call += f", {self.heavy:.0%} of the indices the same"
        if self.ordered:
            call += ", sorted indices"
        return f"{call}, {named}" if named else call


ADD, MAX, MEAN = {"reduction": "add"}, {"reduction": "max"}, {"reduction": "mean"}
FSUM, NEW, LINES = {"reduction": "fsum"}, {"include_self": False}, {"axis": 1}
ONE, MANY, ROUNDS = (1,), (2, 16), (6, 8, 16)
COLUMNS = {"least_column_bytes": 128}
CASES = [
    Case("prefetched", "gather_elements", (4096, 4096), (4096, 4096), "f4", {"axis": 1}),
    Case("prefetched", "gather_elements", (40_000, 1000), (40_000, 250), "f4", {"axis": 1}),
    Case("prefetched", "gather", (100_000, 256), (256,), "f4", {"axis": 1}),
    Case("packed", "gather_elements", (4096, 4096), (4096, 4096), "f4", {"axis": 0}),
    Case("packed", "gather_elements", (10_000, 1000), (10_000, 1000), "f8", {"axis": 0}),
    Case("streamed", "gather", (1 << 20, 128), (1 << 20,), "f4", {}),
    Case("streamed", "gather", (20_000, 64), (1 << 20,), "f4", {}),
    Case("streamed", "gather", (1 << 22,), (10_000_000,), "f4", {}),
    Case("streamed", "gather", (4096,), (4_000_000,), "f8", {}),
    Case(
        "uncounted_accumulators", "scatter_slices", (10_000,), (400_000,), "f4", ADD | NEW, loops=10
    ),
    Case(
        "uncounted_accumulators", "scatter_slices", (10_000,), (400_000,), "i4", MAX | NEW, loops=10
    ),
    Case("uncounted_accumulators", "scatter_slices", (1_000_000,), (10_000_000,), "f8", ADD | NEW),
    Case("partitioned", "scatter_slices", (10_000_000,), (10_000_000,), "f4", ADD),
    Case("partitioned", "scatter_slices", (50_000_000,), (20_000_000,), "f4", ADD),
    Case("private_accumulators", "scatter_slices", (10_000,), (10_000_000,), "f8", MAX, MANY),
    Case("private_accumulators", "scatter_slices", (10_000,), (10_000_000,), "i8", ADD, MANY),
    Case("private_accumulators", "scatter_slices", (100,), (10_000_000,), "f8", FSUM),
    Case("in_rounds", "scatter_slices", (256,), (1 << 20,), "f4", ADD, (16,), loops=5),
    Case("in_rounds", "scatter_slices", (256,), (10_000_000,), "f4", ADD, ROUNDS),
    Case("in_rounds", "scatter_slices", (10_000,), (1 << 20,), "f4", ADD, (16,), loops=5),
    Case("in_rounds", "scatter_slices", (10_000,), (10_000_000,), "f4", ADD, ROUNDS),
    Case("in_rounds", "scatter_slices", (10_000,), (10_000_000,), "f2", ADD, ROUNDS),
    Case("in_rounds", "scatter_slices", (10_000,), (10_000_000,), "f8", ADD, ROUNDS),
    Case("in_rounds", "scatter_slices", (10_000,), (10_000_000,), "f4", MEAN, ROUNDS),
    Case("in_rounds", "scatter_slices", (10_000,), (10_000_000,), "f4", ADD, ROUNDS, heavy=0.1),
    Case("in_rounds", "scatter_slices", (1_000_000,), (1 << 20,), "f4", ADD, (16,), loops=3),
    Case("in_rounds", "scatter_slices", (1_000_000,), (20_000_000,), "f4", ADD, ROUNDS),
    Case("divided_accumulators", "scatter_slices", (1_000_000,), (20_000_000,), "f4", ADD, (2, 3)),
    Case("divided_accumulators", "scatter_slices", (100_000,), (10_000_000,), "f8", ADD, (3,)),
    Case(
        "divided_accumulators",
        "scatter_slices",
        (1_000_000,),
        (20_000_000,),
        "f4",
        ADD,
        (2, 3, 5),
        ordered=True,
    ),
    Case("serial_accumulators", "scatter_slices", (10_000,), (10_000_000,), "f4", ADD, ONE),
    Case("serial_accumulators", "scatter_slices", (10_000,), (10_000_000,), "f2", ADD, ONE),
    Case("batch_accumulators", "scatter_elements", (4096, 4096), (4096, 4096), "f4", ADD),
    Case("batch_accumulators", "scatter_elements", (4096, 4096), (4096, 4096), "f4", ADD | LINES),
    Case("batch_accumulators", "scatter_elements", (4096, 4096), (4096, 4096), "f2", ADD | LINES),
    Case("by_destination", "scatter_slices", (100_000, 64), (1_000_000,), "f4", ADD),
    Case("by_destination", "scatter_slices", (100_000, 256), (1_000_000,), "f4", ADD),
    Case("last_updates", "scatter_slices", (1 << 20, 128), (1 << 20,), "f4", {}, (1, 2, 16)),
    Case("last_updates", "scatter_slices", (1 << 19, 32), (1 << 20,), "f4", {}, (1, 2, 16)),
    Case("last_updates", "scatter_slices", (1 << 13, 128), (1 << 14,), "f4", {}, loops=10),
    Case("by_column", "scatter_slices", (1000, 256), (300_000,), "f4", ADD, (2, 8), COLUMNS),
    Case("by_column", "scatter_slices", (100_000, 256), (300_000,), "f4", ADD, (2, 8), COLUMNS),
    Case("by_range", "scatter_slices", (1000, 256), (300_000,), "f4", ADD, MANY),
    Case("by_range", "scatter_slices", (100_000, 64), (300_000,), "f4", ADD, MANY),
    Case("by_range", "scatter_slices", (10_000_000,), (1_000_000,), "f4", ADD, MANY),
]


def left_out(case: Case) -> int:
    """Return the bit of a case's algorithm. Names of gathers precede names of
    scatters; both lists end with `direct`.
    """
    first = NAMES.index("direct") + 1 if OPERATORS[case.op].scatters else 0
    return 1 << NAMES.index(case.algorithm, first)


def thread_times() -> dict[str, int]:
    """Return the processor time of each thread in nanoseconds."""
    tasks = Path("/proc/self/task").glob("*/schedstat")
    return {path.parts[-2]: int(path.read_text().split()[0]) for path in tasks}


def spent(call: Callable[[], object], loops: int) -> Times:
    """Return the seconds of a call: wall time, processor time, and the busiest thread's."""
    before, begin = thread_times(), time.perf_counter()
    for _ in range(loops):
        call()
    wall = (time.perf_counter() - begin) / loops
    each = [(t - before.get(name, 0)) / loops / 1e9 for name, t in thread_times().items()]
    return wall, sum(each), max(each)


def rows(case: Case, rounds: int) -> Iterator[str]:
    """Yield the row of a case for each number of threads."""
    operands = case.operands()
    run = getattr(gatherum, case.op)
    expected = run(*operands, **case.attributes)
    out = np.empty_like(expected)
    for threads in case.threads:
        gatherum.set_num_threads(threads)
        chosen: dict[int, str] = {}
        times: dict[int, list[Times]] = {}
        for number in range(rounds + 1):
            for mask in (0, left_out(case))[:: 1 if number % 2 else -1]:
                native.set_thresholds({"omitted_algorithms": mask} | case.sizes)
                if number == 0:
                    plan = gatherum.plan(case.op, *operands, **case.attributes, out=out)
                    chosen[mask] = plan.algorithm
                taken = spent(lambda: run(*operands, **case.attributes, out=out), case.loops)
                assert number or out.tobytes() == expected.tobytes()
                times.setdefault(mask, []).append(taken)
        name, instead = chosen[0], chosen[left_out(case)]
        assert name == case.algorithm != instead, (case, name, instead)
        yield row(case, threads, instead, times[0][1:], times[left_out(case)][1:])


def row(case: Case, threads: int, instead: str, full: list[Times], without: list[Times]) -> str:
    """Return a row of the table from the times with the full list and without the algorithm."""
    wall, _, busiest = (1e3 * statistics.median(times) for times in zip(*full, strict=True))
    gains = []
    for clock in range(3):
        ratios = [b[clock] / a[clock] for a, b in zip(full, without, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        gains.append(f"{middle:.2f} ({low:.2f}-{high:.2f})")
    times = f"{wall:.2f} | {busiest:.2f} | {' | '.join(gains)}"
    return f"| `{case.algorithm}` | {case} | {threads} | `{instead}` | {times} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", help="the name of an algorithm")
    arguments = parser.parse_args()
    print(
        "| algorithm | call | threads | instead | wall, ms | busiest thread, ms "
        "| gain, wall | gain, processor | gain, busiest thread |\n|---|---|---:|---|" + "---:|" * 5
    )
    kept = native.thresholds()
    for case in CASES:
        if arguments.only in (None, case.algorithm):
            for text in rows(case, arguments.rounds):
                print(text, flush=True)
            native.set_thresholds(kept)


if __name__ == "__main__":
    main()
