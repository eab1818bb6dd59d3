"""Compare gatherum with limit kernels: plain loops with the same accesses and no checks.

    python benchmarks/limits/run.py [--only rows,add] [--scale 0.1] [--rounds 9] [--threads 1]
                                    [--clock cpu] [--json FILE]

Requires a C++ compiler (CXX, else c++) and the peers. Everything runs in
this process, in turns: the limit kernel with the best settings of a small search, gatherum with
`out=` and into recycled memory, and the fastest correct method of each installed peer. If the
spread of the rounds is larger than the distance from the goal, the result is called "open".
On a busy machine, use ``--clock cpu`` to measure the CPU time of all threads instead.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

import gatherum
from gatherum._model.operators import OPERATORS

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from bench import machine, peers
from bench.cases import Case
from bench.workloads import WORKLOADS, Workload, select
from report import Report, Row

HERE = Path(__file__).parent
FLAGS = ["-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-pthread"]
TYPES = {"uint8": 0, "float16": 1, "float32": 1, "float64": 2, "int64": 3}
OPS = {"none": 0, "add": 1, "max": 2}
# The goal: the maximum ratio of a call's time to its limit.
GOALS = {"gather": 1.15, "scatter": 1.25}


class Call(ctypes.Structure):
    """The argument of a limit kernel, as kernels.cpp declares it."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("data", "indices", "updates", "out")),
        *((name, ctypes.c_int64) for name in ("outer", "size", "inner", "count", "item", "each")),
        *((name, ctypes.c_int64) for name in ("ahead", "stream", "columns", "threads")),
    )


@dataclass(frozen=True, slots=True)
class Form:
    """The kernel of a case, its operands, and the settings to search."""

    kernel: int
    type_number: int
    sizes: tuple[int, int, int, int]  # outer, size, inner bytes, indices of a line
    each: bool
    ahead: tuple[int, ...]
    stream: tuple[int, ...] = (0, 1)
    columns: tuple[int, ...] = (1,)


NEAR, FAR, FURTHER = (0, 1, 2), (4, 8, 16, 32), (8, 16, 32, 64)
BLOCKS = (16, 32, 64, 128)


def form_of(case: Case) -> Form:
    """Return the limit kernel and the arguments for a case."""
    if OPERATORS[case.op].addressing.shares_back:
        return _elements(case)
    type_number, item = TYPES[case.data.dtype.name], case.data.itemsize
    if case.updates is not None:
        sizes = (1, len(case.data), case.data.nbytes // len(case.data), len(case.indices))
        rows = case.data.ndim > 1
        return Form(8 if rows else 5, type_number, sizes, False, (0, 4, 8, 16, 32))
    if case.op == "gather_nd" and case.indices.shape[-1] > 1:
        sizes = (1, case.data.shape[-1], item, len(case.indices))
        return Form(2, type_number, sizes, False, FURTHER, (0,))
    leading = case.data.shape[: case.axis + 1]
    row = case.data.nbytes // int(np.prod(leading))
    sizes = (int(np.prod(leading[:-1])), leading[-1], row, case.indices.size)
    if row > 16:
        return Form(0, type_number, sizes, False, FAR)
    if case.data.ndim == 1:
        return Form(1, type_number, sizes, False, FURTHER, (0,))
    return Form(3, 4 if row == 16 else type_number, sizes, False, NEAR, (0,))


def _elements(case: Case) -> Form:
    """Return the kernel for one index per element: line by line, or in blocks of columns."""
    (rows, width), item = case.data.shape, case.data.itemsize
    type_number, scatters = TYPES[case.data.dtype.name], case.updates is not None
    if case.axis == 1:
        streams = (0, 1) if scatters else (0,)
        return Form(
            6 if scatters else 3, type_number, (rows, width, item, width), True, NEAR, streams
        )
    sizes = (1, rows, width * item, rows)
    return Form(7 if scatters else 4, type_number, sizes, True, (0, 4, 8), (0,), BLOCKS)


class Limit:
    """The limit kernel of one case, with the best settings found by a search."""

    def __init__(self, library: ctypes.CDLL, case: Case, out: np.ndarray[Any, Any]) -> None:
        self.library, self.case, self.form, self.out = library, case, form_of(case), out
        self.settings: dict[str, int] = {}
        times: dict[tuple[int, ...], float] = {}
        names = ("ahead", "stream", "columns", "threads")
        threads = (1, gatherum.get_num_threads())
        for chosen in product(self.form.ahead, self.form.stream, self.form.columns, {*threads}):
            self.settings = dict(zip(names, chosen, strict=True))
            times[chosen] = min(seconds(self.run) for _ in range(2))
        self.settings = dict(zip(names, min(times, key=times.__getitem__), strict=True))

    def run(self) -> object:
        """Run the kernel once and return its result."""
        case, form = self.case, self.form
        outer, size, inner, count = form.sizes
        updates = None if case.updates is None else case.updates.ctypes.data
        call = Call(
            case.data.ctypes.data, case.indices.ctypes.data, updates, self.out.ctypes.data,
            outer, size, inner, count, case.data.itemsize, int(form.each), *self.settings.values(),
        )  # fmt: skip
        done = self.library.run_limit(
            form.kernel, form.type_number, OPS[case.reduction], ctypes.byref(call)
        )
        if not done:
            raise ValueError(f"no limit kernel for {case.op}")
        return self.out


CLOCKS = {"wall": perf_counter, "cpu": process_time}
clock = perf_counter


def seconds(run: Callable[[], object]) -> float:
    """Return the time of a run."""
    begin = clock()
    run()
    return clock() - begin


def compiled(folder: str, source: str = "kernels.cpp") -> ctypes.CDLL:
    """Compile kernels for this processor."""
    to = Path(folder) / "limits.so"
    compiler = os.environ.get("CXX", "c++")
    subprocess.run([compiler, *FLAGS, str(HERE / source), "-o", str(to)], check=True)
    return ctypes.CDLL(str(to))


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, except for the order of additions in sums."""
    return np.allclose(one, other, rtol=1e-3)


def best_peers(case: Case, answer: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the fastest correct method of each installed peer."""
    for family in sorted({*peers.OPERATOR_PEERS} & {*peers.installed()}):
        able = {}
        for name, method in peers.load(family).methods(case).items():
            try:
                if same(np.asarray(method()), answer):
                    able[name] = min(seconds(method) for _ in range(2))
            except Exception as error:  # the peer does not support the case
                print(f"  {family} {name}: {type(error).__name__}", file=sys.stderr)
        if able:
            yield family, peers.load(family).methods(case)[min(able, key=able.__getitem__)]


def measured(workload: Workload, library: ctypes.CDLL, scale: float, rounds: int) -> Row:
    """Run one workload in turns with its limit kernel and its peers."""
    case = workload.make(scale, np.random.default_rng(0))
    ours = getattr(gatherum, case.op)
    out = np.empty(case.result_shape, case.data.dtype)
    answer = ours(*case.arrays, **case.arguments)
    limit = Limit(library, case, np.empty_like(out))
    if not same(limit.run(), answer):
        raise ValueError(f"{workload.name}: the limit kernel gives another answer")
    runs: dict[str, Callable[[], object]] = {
        "limit": limit.run,
        "out": lambda: ours(*case.arrays, **case.arguments, out=out),
        "recycled": lambda: ours(*case.arrays, **case.arguments),
        **dict(best_peers(case, answer)),
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            times[name].append(1e3 * seconds(runs[name]))
    ratios = np.quantile(np.array(times["out"]) / np.array(times["limit"]), [0.25, 0.75])
    middle = {name: median(times[name]) for name in names}
    peer = min(names[3:], key=middle.__getitem__)
    family = "gather" if case.updates is None else "scatter"
    return Row(
        workload.name, middle["limit"], middle["out"], middle["recycled"], peer, middle[peer],
        float(ratios[1] - ratios[0]), GOALS[family], limit.settings,
    )  # fmt: skip


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", action="append")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=gatherum.get_num_threads())
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    gatherum.set_num_threads(options.threads)
    global clock  # noqa: PLW0603  # used to time all runs
    clock = CLOCKS[options.clock]
    chosen = select([workload.name for workload in WORKLOADS], options.only)
    about = machine.describe(sys.argv)
    report = Report(
        f"{about['date']}, {about['machine']['cpu']}, level {about['gatherum']['level']}, "
        f"load {os.getloadavg()[0]:.1f}, scale {options.scale}, "
        f"{gatherum.get_num_threads()} threads, {options.clock} time, {options.rounds} rounds",
        about["command"],
    )
    print(report.head())
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(folder)
        library.run_limit.argtypes = [ctypes.c_int64] * 3 + [ctypes.c_void_p]
        for workload in WORKLOADS:
            if workload.name in chosen:
                report.rows.append(measured(workload, library, options.scale, options.rounds))
                print(report.rows[-1].line(), flush=True)
    print(report.means())
    if options.json:
        report.save(options.json)


if __name__ == "__main__":
    main()
