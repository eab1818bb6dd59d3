"""Time calls on a CUDA device with other values of constants that are not measured.

    python benchmarks/cuda_constants.py                     # every constant
    python benchmarks/cuda_constants.py --only FOLDING      # constants whose name contains this
    python benchmarks/cuda_constants.py --json constants.json

Each call is captured in a CUDA graph once for each value. The graphs are replayed in turns between
two CUDA events, and a time is the median of the rounds. The results must have the same bits. If a
value is better, change the constant, and name the measurement next to it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import cuda_program
import torch
from cuda_bench import Timed
from cuda_cases import GPU
from torch import Tensor

import gatherum
from gatherum._system import native
from gatherum.cuda import folds, movement, plan_launches, small_scatters


class Trial(NamedTuple):
    """A constant of a module, the values to compare, and a call by name."""

    module: Any
    constant: str
    values: tuple[float, ...]
    name: str
    call: Callable[[], Tensor]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="constants whose name contains this")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of indices")
    options = cuda_program.parse(parser)
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, scale {options.scale:g}\n")
    print("| constant | call | microseconds by value; the current value is marked |\n|---|---|---|")
    trials = []
    for trial in (*of_small_scatters(), *of_folds(options.scale), *of_movement(options.scale)):
        if options.only in trial.constant:
            times = microseconds(trial, options.rounds)
            current = getattr(trial.module, trial.constant)
            cells = (f"{value}{'*' * (value == current)}: {t:.1f}" for value, t in times.items())
            print(f"| {trial.constant} | {trial.name} | {', '.join(cells)} |", flush=True)
            trials.append({"constant": trial.constant, "call": trial.name, "us": times})
            torch.cuda.empty_cache()
    cuda_program.write(options.json, trials=trials)
    return 0


def microseconds(trial: Trial, rounds: int) -> dict[float, float]:
    """Return the median time of a call on the device by the value of a constant."""
    current, timed, results = getattr(trial.module, trial.constant), {}, []
    try:
        for value in trial.values:
            setattr(trial.module, trial.constant, value)
            forget_programs()
            results.append(trial.call())
            timed[value] = Timed(trial.name, trial.call)
    finally:
        setattr(trial.module, trial.constant, current)
        forget_programs()
    for result in results:
        assert torch.equal(result, results[0]), f"{trial.constant}: {trial.name} differs"
    times: dict[float, list[float]] = {value: [] for value in trial.values}
    for number in range(rounds):
        for value in trial.values[:: 1 if number % 2 else -1]:
            times[value].append(timed[value].on_device())
    return {value: 1e6 * statistics.median(each) for value, each in times.items()}


def forget_programs() -> None:
    """Record the programs of later calls anew."""
    native.clear_plans()
    plan_launches.program_of.cache_clear()


def scatter(data: Tensor, index: Tensor, updates: Tensor, reduction: str) -> Callable[[], Tensor]:
    return partial(gatherum.scatter_slices, data, index, updates, reduction=reduction, mode="drop")


def of_small_scatters() -> Iterator[Trial]:
    """512 rows of 64 float32 into many destinations and into one."""
    table, updates = torch.randn(10_000, 64, device=GPU), torch.randn(512, 64, device=GPU)
    many, one = torch.randint(10_000, (512,), device=GPU), torch.zeros(512, dtype=int, device=GPU)
    calls = {
        "512 rows into 10,000": scatter(table, many, updates, "add"),
        "512 rows into one of 10": scatter(table[:10], one, updates, "add"),
        "512 rows into 10,000, no reduction": scatter(table, many, updates, "none"),
    }
    for constant, values in (
        ("MOST_TUPLES", (0, 512)),
        ("MOST_POINTS", (1 << 16, 1 << 18)),
        ("SMALL_THREADS", (128, 256, 512)),
        ("BLOCKS_PER_PROCESSOR", (1, 2, 4)),
    ):
        for name, call in calls.items():
            yield Trial(small_scatters, constant, values, name, call)


def of_folds(scale: float) -> Iterator[Trial]:
    """The threads of a group that fold, for rows in long segments and for exact sums."""
    n = max(1, int(scale * (1 << 20)))
    updates, index = torch.randn(n, 128, device=GPU), torch.randint(100, (n,), device=GPU)
    call = scatter(torch.zeros(100, 128, device=GPU), index, updates, "add")
    name = "float32 add, rows of 128, 2^20 into 100"
    yield Trial(folds, "FOLDING_THREADS", (16, 32), name, call)
    call = scatter(torch.zeros(100, 128, device=GPU), index, updates, "fsum")
    name = "fsum, rows of 128, 2^20 into 100"
    yield Trial(folds, "EXACT_FOLDING_THREADS", (4, 8, 16), name, call)


def of_movement(scale: float) -> Iterator[Trial]:
    """Updates that replace items, in lines and anywhere."""
    data = torch.zeros(1_000_000, device=GPU)
    index, updates = torch.randint(1_000_000, (5000,), device=GPU), torch.randn(5000, device=GPU)
    call = scatter(data, index, updates, "none")
    values = 0, plan_launches.SMALL_TABLE_BYTES
    yield Trial(plan_launches, "SMALL_TABLE_BYTES", values, "5000 items into 1M", call)
    n = max(1, int(scale * 4096))
    for lines, count, constant, values in (
        (n, 8192, "LINE_TABLE_BYTES", (0, 32 << 10)),
        (n, 8192, "LINE_THREADS", (256, 512, 1024)),
        (128, 8192, "FEWEST_LINES", (128, 129)),
        (n, 2048, "LEAST_UPDATED_SHARE", (1 / 4, 1 / 2)),
    ):
        table, source = (torch.randn(lines, each, device=GPU) for each in (8192, count))
        places = torch.randint(8192, (lines, count), device=GPU)
        call = partial(
            gatherum.scatter_elements, table, places, source, 1, reduction="none", mode="drop"
        )
        yield Trial(movement, constant, values, f"{lines} lines of 8192, {count} updates", call)


if __name__ == "__main__":
    sys.exit(main())
