"""Runs timed in turns, and their medians."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import gatherum

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench import machine


def arguments(about: str | None) -> argparse.Namespace:
    """Read what a report is asked for."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, default=gatherum.get_num_threads())
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def report(runs: Mapping[str, Callable[[], object]], given: argparse.Namespace) -> None:
    """Time the runs in turns, and print the medians, the least and the greatest of each."""
    gatherum.set_num_threads(given.threads)
    clock = perf_counter if given.clock == "wall" else process_time
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(given.rounds):
        for name, run in runs.items():
            begin = clock()
            run()
            times[name].append(1e3 * (clock() - begin))
    about = machine.describe(sys.argv)
    print(f"{about['date']}, {about['machine']['cpu']}, level {about['gatherum']['level']}")
    print(f"load {os.getloadavg()[0]:.1f}, {given.threads} threads, ms of {given.clock} time")
    for name, spent in times.items():
        print(f"{name:<36}{median(spent):>8.1f}  ({min(spent):.1f} to {max(spent):.1f})")
