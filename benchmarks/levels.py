"""Compare two instruction-set levels of the kernels: the same calls on each, in turns.

    python benchmarks/levels.py [--levels v3 v4] [--scale 0.2] [--rounds 9] [--only add]

Both run in one process on the same arrays, on one thread, with `out=`; CPU time is measured.
The workloads are the workloads of `run.py`, and folds of rows and of items of several types.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from itertools import chain

import numpy as np
from bench import machine
from bench.cases import Case
from bench.workloads import WORKLOADS

import gatherum
from gatherum import _core


def folds(scale: float) -> Iterator[tuple[str, Case]]:
    """Yield scatters of rows of 64 into 20,000, and of items into 100,000."""
    rng = np.random.default_rng(0)
    for dtype_name in ("float16", "float32", "float64", "int8", "int32"):
        for shape, size in [((int(200_000 * scale), 64), 20_000), ((int(4e6 * scale),), 100_000)]:
            updates = rng.integers(0, 99, shape).astype(dtype_name)
            indices = rng.integers(0, size, shape[0])
            data = np.zeros((size, *shape[1:]), dtype_name)
            for reduction in ("add", "max", "mean"):
                what = "rows" if len(shape) > 1 else "items"
                case = Case("scatter_slices", data, indices, updates, 0, reduction)
                yield f"{what}, {dtype_name}, {reduction}", case


def compared(case: Case, levels: list[str], rounds: int) -> str:
    """Time a case on both levels in turns, and return cells of a table."""
    call, out = getattr(gatherum, case.op), np.empty(case.result_shape, case.data.dtype)
    times: dict[str, list[float]] = {level: [] for level in levels}
    for number in range(rounds + 1):
        for level in levels[:: -1 if number % 2 else 1]:
            _core.choose_level(level)
            began = time.process_time()
            call(*case.arrays, **case.arguments, out=out)
            if number:
                times[level].append(time.process_time() - began)
    first, second = (times[level] for level in levels)
    low, middle, high = statistics.quantiles([b / a for a, b in zip(first, second, strict=True)])
    shown = " | ".join(f"{1e3 * statistics.median(spent):.2f} ms" for spent in (first, second))
    return f"{shown} | {middle:.2f} ({low:.2f}-{high:.2f}) |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--levels", nargs=2, default=["v3", "v4"], choices=_core.available_levels())
    parser.add_argument("--scale", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="cases whose name has this")
    options = parser.parse_args()
    gatherum.set_num_threads(1)
    print(machine.describe([])["machine"]["cpu"])
    print(f"\n| case | {options.levels[0]} | {options.levels[1]} | ratio |\n|---|--:|--:|--:|")
    rng = np.random.default_rng(1)
    workloads = ((work.name, work.make(options.scale, rng)) for work in WORKLOADS)
    for name, case in chain(workloads, folds(options.scale)):
        if options.only in name:
            print(f"| {name} | {compared(case, options.levels, options.rounds)}", flush=True)


if __name__ == "__main__":
    main()
