"""Compare exact sums with sums in a fixed order: ``python benchmarks/exact_sums.py``.

Each row is one scatter of 10M updates, with "add" and with "fsum" in turns, so that noise affects
both. The script prints medians and their ratio. `--others` adds two methods without this package:
`math.fsum` over each group, and a sum in long double, which is not exact.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import gatherum

UPDATES = 10_000_000
BINS = (100, 10_000, 1_000_000)
ROWS = (1_000_000, 64, 100_000)


def seconds(rounds: int, *calls: Callable[[], Any]) -> list[float]:
    """Return the median time of each call, in turns, after one untimed round."""
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for call, times in zip(calls, taken, strict=True):
            begin = perf_counter()
            call()
            times.append(perf_counter() - begin)
    return [median(times[1:]) for times in taken]


def cases(updates: int) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield the name, data, indices and updates of each row."""
    rng = np.random.default_rng(0)
    dtypes = ["float32", "float64", "float16"]
    try:
        import ml_dtypes

        dtypes.append(ml_dtypes.bfloat16)
    except ImportError:
        pass
    for dtype in map(np.dtype, dtypes):
        values = rng.standard_normal(updates).astype(dtype)
        for bins in BINS:
            indices = rng.integers(0, bins, (updates, 1), np.int32)
            yield f"{dtype.name}, {bins:,} bins", np.zeros(bins, dtype), indices, values
    count, width, rows = ROWS
    values = rng.standard_normal((count * updates // UPDATES, width), np.float32)
    indices = rng.integers(0, rows, (len(values), 1), np.int32)
    yield f"rows of {width} float32", np.zeros((rows, width), np.float32), indices, values


def others(updates: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield other methods to sum float64 into 100 bins."""
    rng = np.random.default_rng(1)
    values, groups = rng.standard_normal(updates), rng.integers(0, 100, updates)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(101))

    def by_fsum() -> list[float]:
        ordered = values[order]
        return [math.fsum(ordered[a:b]) for a, b in pairwise(starts)]

    def in_long_double() -> Any:
        totals = np.zeros(100, np.longdouble)
        np.add.at(totals, groups, values)
        return totals

    yield "math.fsum of each group, sorted before", by_fsum
    yield "np.add.at of long doubles", in_long_double


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--others", action="store_true")
    options = parser.parse_args()
    config = gatherum.config()
    print(f"{options.updates:,} updates, {config['threads']} threads, level {config['level']}\n")
    print("| updates | add, ms | fsum, ms | ratio | algorithm |\n|---|---|---|---|---|")
    for name, data, indices, values in cases(options.updates):

        def call(reduction: str, operands: Any = (data, indices, values)) -> Any:
            return gatherum.scatter_nd(*operands, reduction=reduction)

        add, fsum = seconds(options.rounds, lambda c=call: c("add"), lambda c=call: c("fsum"))
        plan = gatherum.plan("scatter_nd", data, indices, values, reduction="fsum")
        row = f"{1e3 * add:.1f} | {1e3 * fsum:.1f} | {fsum / add:.2f} | {plan.algorithm}"
        print(f"| {name} | {row} |", flush=True)
    for name, call in others(options.updates) if options.others else ():
        print(f"{name}: {1e3 * seconds(1, call)[0]:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
