"""Time runs in turns and report medians."""

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


def parser(about: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of every report."""
    options = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    options.add_argument("--threads", type=int, default=gatherum.get_num_threads())
    options.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options.add_argument("--rounds", type=int, default=7)
    return options


def arguments(about: str | None) -> argparse.Namespace:
    """Parse the options of a report."""
    return parser(about).parse_args()


Runs = Mapping[str, Callable[[], object]]


def timed(runs: Runs, options: argparse.Namespace) -> dict[str, list[float]]:
    """Time the runs in turns; return the milliseconds of each round."""
    gatherum.set_num_threads(options.threads)
    clock = perf_counter if options.clock == "wall" else process_time
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            begin = clock()
            run()
            times[name].append(1e3 * (clock() - begin))
    return times


def head(options: argparse.Namespace) -> str:
    """Return the description of the machine for a report."""
    about = machine.describe(sys.argv)
    return (
        f"{about['date']}, {about['machine']['cpu']}, level {about['gatherum']['level']}\n"
        f"load {os.getloadavg()[0]:.1f}, {options.threads} threads, ms of {options.clock} time"
    )


def report(runs: Runs, options: argparse.Namespace) -> None:
    """Print the median, the minimum and the maximum of each run."""
    times = timed(runs, options)
    print(head(options))
    medians(times)


def medians(times: Mapping[str, list[float]]) -> None:
    """Print the median, the minimum and the maximum of each run."""
    for name, spent in times.items():
        print(f"{name:<36}{median(spent):>8.1f}  ({min(spent):.1f} to {max(spent):.1f})")
