"""Measure the speedup up to the number of threads of this machine, and predict it for more.

    python benchmarks/limits/curve.py [--only rows,add] [--scale 0.5] [--rounds 5] [--json FILE]
    python benchmarks/limits/curve.py --show benchmarks/curve.json    # as a table in Markdown

The prediction counts bytes. In a call on n threads, the busiest thread has

    split   1/n of all bytes: each thread has a separate part of the output, or of the updates
    shared  all indices, and 1/n of the rest: each thread searches for its share of the updates (if
            they are folded in cache, an index costs less than its bytes: the prediction is too low)
    rounds  3/n of all bytes: it also writes and reads lists of the updates
    one     everything

and takes as long as its bytes take on one thread, if every thread gets the memory bandwidth of a
single thread. The last column is the required bandwidth; more threads than it allows do not help.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import geometric_mean, median
from time import perf_counter
from typing import Any

import numpy as np

import gatherum
from gatherum._system import native

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench import machine
from bench.cases import Case
from bench.workloads import WORKLOADS, Workload, select

THREADS = (2, 4, 8, 16)
SHARED, ONE = ("divided_accumulators", "by_column", "by_range"), ("serial_accumulators",)


def busiest(case: Case, bytes_moved: int, threads: int) -> tuple[str, float]:
    """Return the algorithm for n threads, and the busiest thread's share of all bytes."""
    gatherum.set_num_threads(threads)
    name = str(gatherum.plan(case.op, *case.arrays, **case.arguments).algorithm)
    indices = case.indices.nbytes / bytes_moved
    if name in ONE:
        return name, 1.0
    if name == "in_rounds":
        return name, min(1.0, 3 / threads)
    if name == "by_column":
        threads = min(threads, case.data[0].nbytes // native.thresholds()["least_column_bytes"])
    return name, (indices + (1 - indices) / threads) if name in SHARED else 1 / threads


def measured(workload: Workload, scale: float, rounds: int) -> dict[str, Any]:
    """Time a case on one thread and on all threads, in turns; predict the rest."""
    case = workload.make(scale, np.random.default_rng(0))
    run = getattr(gatherum, case.op)
    bytes_moved = max(workload.floor(case), case.indices.nbytes)
    counts = sorted({1, *(n for n in THREADS if n <= (os.cpu_count() or 1))})
    times: dict[int, list[float]] = {n: [] for n in counts}
    for _ in range(rounds + 1):
        for n in counts:
            gatherum.set_num_threads(n)
            began = perf_counter()
            run(*case.arrays, **case.arguments)
            times[n].append(perf_counter() - began)
    middle = {n: median(spent[1:]) for n, spent in times.items()}
    expected = {n: busiest(case, bytes_moved, n) for n in THREADS}
    fastest = max(1 / share for _, share in expected.values())
    return {
        "name": workload.name,
        "milliseconds": 1e3 * middle[1],
        "measured": {str(n): middle[1] / middle[n] for n in counts[1:]},
        "expected": {str(n): [name, 1 / share] for n, (name, share) in expected.items()},
        "gigabytes_a_second": fastest * bytes_moved / middle[1] / 1e9,
    }


def markdown(report: dict[str, Any]) -> str:
    """Return a report as a table for the documentation."""
    columns = list(report["cases"][0]["measured"])
    lines = [
        f"{report['measured_on']}, by",
        "",
        f"    {report['command']}",
        "",
        f"| case | 1 thread | {' | '.join(f'measured on {n}' for n in columns)} | algorithm | "
        f"{' | '.join(f'expected on {n}' for n in THREADS)} | memory must give |",
        f"|---|--:|{'--:|' * len(columns)}---|{'--:|' * len(THREADS)}--:|",
    ]
    for case in report["cases"]:
        names = dict.fromkeys(f"`{name}`" for name, _ in case["expected"].values())
        cells = [case["name"], f"{case['milliseconds']:.1f} ms"]
        cells += (f"{case['measured'][n]:.2f}" for n in columns)
        cells += [", ".join(names), *(f"{gain:.1f}" for _, gain in case["expected"].values())]
        lines.append(f"| {' | '.join(cells)} | {case['gigabytes_a_second']:.0f} GB/s |")
    for n in columns:
        off = [case["measured"][n] / case["expected"][n][1] for case in report["cases"]]
        lines += ["", f"Measured over expected on {n} threads, geometric mean: "
                  f"{geometric_mean(off):.2f} ({min(off):.2f} to {max(off):.2f})."]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Measure and print, or show a report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", action="append")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", type=Path)
    options = parser.parse_args()
    if options.show:
        print(markdown(json.loads(options.show.read_text())))
        return
    chosen = select([workload.name for workload in WORKLOADS], options.only)
    about = machine.describe(sys.argv)
    report = {
        "measured_on": f"{about['date'][:10]}, {about['machine']['cpu']}, {os.cpu_count()} "
        f"processors, load {os.getloadavg()[0]:.1f}, scale {options.scale}",
        "command": about["command"],
        "cases": [
            measured(workload, options.scale, options.rounds)
            for workload in WORKLOADS
            if workload.name in chosen
        ],
    }
    print(markdown(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
