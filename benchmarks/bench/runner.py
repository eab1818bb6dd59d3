"""Run the workloads in rounds, each peer in turn, so that noise affects all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import disk_usage
from time import sleep
from typing import Any

import numpy as np

from . import peers, records
from .children import Child
from .job_workloads import JOBS
from .machine import available_memory
from .records import Examined, Record
from .tiny import TINY, Tiny
from .worker import FAILED, LIMITS
from .workloads import WORKLOADS, Workload

SEED = 20
SECONDS_A_PEER = 6.0  # a slow peer gets fewer rounds, but at least one
PAUSE = 0.01  # so that the threads of the last peer sleep
SHARED_MEMORY = Path("/dev/shm")
ALL = (*WORKLOADS, *JOBS)
NAMES = (*(workload.name for workload in ALL), *(case.name for case in TINY))

Progress = Callable[[str], None]


class Runner:
    """The children of one benchmark run.

    Parameters
    ----------
    families : sequence of str
        The peers to measure, in addition to gatherum and NumPy, which defines the results.
    scale : float
        The size of the workloads relative to the table.
    rounds : int
        The maximum number of timed runs of each method.
    progress : callable
        Called with a line about each step.
    """

    def __init__(
        self, families: Sequence[str], scale: float, rounds: int, progress: Progress
    ) -> None:
        self.families = [f for f in peers.FAMILIES if f in {*families, peers.OURS, "numpy"}]
        self.children = {family: Child(family) for family in self.families}
        self.scale = scale
        self.rounds = rounds
        self.progress = progress
        self.meter = Child(LIMITS)

    def run(self, names: Sequence[str]) -> dict[str, Any]:
        """Measure the machine, run workloads by name, and return the limits and the records."""
        cases: list[Record] = []
        skipped: dict[str, str] = {}
        try:
            self.progress("measuring the machine's own limits")
            limits = self.meter.ask("measure", self.scale, self.rounds)
            for workload in (workload for workload in ALL if workload.name in names):
                try:
                    cases.append(self._run(workload))
                except MemoryError as error:
                    skipped[workload.name] = str(error)
            cases.extend(self._run_tiny(case) for case in TINY if case.name in names)
        finally:
            for child in (self.meter, *self.children.values()):
                child.stop()
        return {"families": self.families, "limits": limits, "cases": cases, "skipped": skipped}

    def _run(self, workload: Workload) -> Record:
        self.progress(f"{workload.name}: making arrays")
        case = workload.make(self.scale, np.random.default_rng(SEED))
        nbytes = sum(array.nbytes for array in case.arrays)
        families = [name for name in self.families if name in peers.of_case(case.op)]
        record: Record = {
            "name": workload.name,
            "title": workload.title,
            "op": case.op,
            "unit": "ms",
            "shapes": [list(array.shape) for array in case.arrays],
            "dtypes": [str(array.dtype) for array in case.arrays],
            "floor_bytes": workload.floor(case),
            "goals": {"peer": workload.peer_goal, "floor": workload.floor_goal},
        }
        call = case.call
        self._check_memory(len(families), nbytes, case.result_bytes)
        with _shared_folder(2 * nbytes) as folder:
            case.save(folder)
            del case
            examined = self._examine(workload.name, families, folder, call)
        reads: list[float] = []
        times, failed = self._time("time", _rounds_of(examined, self.rounds), 1e3, reads)
        record["floor"] = records.summary([1e3 * record["floor_bytes"] / read for read in reads])
        examined = {**examined, **failed}
        for family in families:
            if isinstance(examined[family], str):
                self.children[family].stop()  # the next case restarts it
            else:
                self.children[family].ask("drop")
        return records.of_case(record, examined, times)

    def _check_memory(self, families: int, nbytes: int, answer: int) -> None:
        """Raise if the operands and results, in every process and in files, would not fit."""
        needed = (families + 1) * (nbytes + 2 * answer)
        available = available_memory()
        if available is not None and needed > available:
            raise MemoryError(
                f"needs about {needed / 2**30:.1f} GiB at scale {self.scale:g}, and "
                f"{available / 2**30:.1f} GiB are free: choose a smaller scale or fewer peers"
            )

    def _examine(
        self, name: str, families: list[str], folder: Path, call: tuple[Any, ...]
    ) -> Examined:
        """Load, warm up and check every family; a failure is returned as its message."""
        self.children["numpy"].ask("load", folder, *call)
        self.children["numpy"].ask("define", folder)
        results: dict[str, list[Record] | str] = {}
        for family in families:
            self.progress(f"{name}: checking {family}")
            child = self.children[family]
            try:
                if family != "numpy":
                    child.ask("load", folder, *call)
                results[family] = child.ask("examine", folder)
            except RuntimeError as error:
                results[family] = _failure(family, error)
        return results

    def _time(
        self, request: str, rounds: dict[str, int], unit: float, reads: list[float] | None = None
    ) -> tuple[records.Times, dict[str, str]]:
        """Run all families in turns, each round starting with another, and measure the bandwidth.

        Returns the times, and the reasons of failures during the rounds.
        """
        times: dict[str, dict[str, list[float]]] = {family: {} for family in rounds}
        failed: dict[str, str] = {}
        families = list(rounds)
        for number in range(max(rounds.values())):
            if reads is not None:
                reads.append(self.meter.ask("read"))
            start = number % len(families)
            for family in families[start:] + families[:start]:
                if number < rounds[family] and family not in failed:
                    sleep(PAUSE)
                    try:
                        spent = self.children[family].ask(request)
                    except RuntimeError as error:
                        failed[family] = _failure(family, error)
                        continue
                    for method, seconds in spent.items():
                        times[family].setdefault(method, []).append(seconds * unit)
        return times, failed

    def _run_tiny(self, case: Tiny) -> Record:
        self.progress(f"{case.name}: timing")
        families = [family for family in self.families if family in case.statements]
        failed: dict[str, str] = {}
        for family in families:
            try:
                self.children[family].ask("load_tiny", case.name)
            except RuntimeError as error:
                failed[family] = _failure(family, error)
        able = [family for family in families if family not in failed]
        times, later = self._time("time_tiny", dict.fromkeys(able, self.rounds), 1e6)
        record: Record = {
            "name": case.name, "title": case.title, "unit": "us",
            "goals": {"peer": case.peer_goal, "floor": None},
        }  # fmt: skip
        return records.of_tiny(record, case.rivals, times, {**failed, **later})


def _failure(family: str, error: RuntimeError) -> str:
    """Return the reason why a peer failed; a failure of gatherum ends the benchmark."""
    if family == peers.OURS:
        raise error
    return str(error)


def _rounds_of(examined: Examined, rounds: int) -> dict[str, int]:
    """Return the number of rounds of each family that can run."""
    rounds_by_family = {}
    for family, methods in examined.items():
        spent = (
            []
            if isinstance(methods, str)
            else [
                float(method["seconds"])
                for method in methods
                if method["verdict"]["answer"] != FAILED
            ]
        )
        if spent:
            fastest = min(spent)
            rounds_by_family[family] = max(1, min(rounds, int(SECONDS_A_PEER / max(fastest, 1e-9))))
    return rounds_by_family


@contextmanager
def _shared_folder(nbytes: int) -> Iterator[Path]:
    """Yield a folder for the operands, in memory if they fit."""
    parent = None
    if SHARED_MEMORY.is_dir():
        parent = SHARED_MEMORY if disk_usage(SHARED_MEMORY).free > nbytes else None
    with tempfile.TemporaryDirectory(prefix="gatherum-bench-", dir=parent) as name:
        yield Path(name)
