"""Serve one peer in a process: load a case, check its results, and time single runs."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from . import peers, tiny
from .cases import Array, Case
from .jobs import Job
from .limits import Meter

CHECKED_RUNS = 2
SLOW = 0.5  # seconds from which a method is checked one time less
LIMITS = "limits"  # the family of the child that measures the machine
EXACT, REORDERED, DIFFERS, FAILED = "exact", "order of sums", "differs", "failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of a result with the expected result."""

    answer: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a peer: its verdict, and the seconds of its best run during the check."""

    name: str
    verdict: Verdict
    seconds: float


def serve(channel: Connection, family: str) -> None:
    """Serve a runner's requests until it closes the channel."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner is interrupted, and ends its children
    try:
        worker = Meter() if family == LIMITS else _Worker(family)
    except Exception as error:  # the report shows why an installed peer was not measured
        channel.send(("failed", _message(error)))
        return
    channel.send(("ready", None))
    try:
        while True:
            name, arguments = channel.recv()
            channel.send(_reply(worker, name, arguments))
    except (EOFError, ConnectionError):  # the runner has finished or has been interrupted
        return


def _reply(worker: object, name: str, arguments: tuple[object, ...]) -> tuple[str, object]:
    try:
        return "done", getattr(worker, name)(*arguments)
    except Exception as error:  # sent as a message, for the report
        return "failed", _message(error)


def _message(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]


class _Worker:
    def __init__(self, family: str) -> None:
        self.family = family
        self.before: dict[str, Callable[[], object]] = getattr(peers.load(family), "BEFORE", {})
        self.case: Case | Job | None = None
        self.calls: dict[str, Callable[[], Any]] = {}
        self.timers: dict[str, tiny.Loop] = {}

    def load(self, folder: Path, job_type: str, *call: Any) -> None:
        self.drop()
        self.case = (Job if job_type == "job" else Case).load(folder, *call)

    def drop(self) -> None:
        """Forget the case and its memory."""
        self.calls, self.case = {}, None
        if "fresh" in self.before:
            self.before["fresh"]()
        gc.collect()

    def define(self, folder: Path) -> None:
        """Write the results of the first method. Other methods are compared with them."""
        case = self._loaded()
        np.save(folder / "expected.npy", _first_answer(self.family, case))
        if case.may_round:
            np.save(folder / "expected_whole.npy", _first_answer(self.family, case.whole()))

    def examine(self, folder: Path) -> list[dict[str, Any]]:
        """Run every method, check its results, and keep the methods worth timing."""
        case = self._loaded()
        self.calls = peers.methods(self.family, case)
        expected = np.load(folder / "expected.npy", mmap_mode="r")
        methods = [self._try(name, expected) for name in self.calls]
        if case.may_round and any(method.verdict.answer == DIFFERS for method in methods):
            methods = self._examine_whole(folder, case, methods)
        able = [method for method in methods if method.verdict.answer != FAILED]
        if self.family != peers.OURS and able:  # the fastest correct method
            able = [
                min(able, key=lambda method: (method.verdict.answer == DIFFERS, method.seconds))
            ]
        self.calls = {method.name: self.calls[method.name] for method in able}
        return [asdict(method) for method in methods]

    def _try(self, name: str, expected: Array) -> Method:
        call = self.calls[name]
        try:
            verdict = compare(np.asarray(call()), expected)
            spent = []
            for _ in range(CHECKED_RUNS):  # a race may show in one run and not in another
                seconds, result = _timed(call, self.before.get(name))
                spent.append(seconds)
                if verdict.answer == EXACT:
                    verdict = compare(np.asarray(result), expected)
                del result
                if seconds > SLOW:
                    break
        except Exception as error:  # the report shows which method of a peer failed and why
            if self.family == peers.OURS:
                raise
            return Method(name, Verdict(FAILED, f"{name}: {_message(error)}"), 0.0)
        return Method(name, verdict, min(spent))

    def _examine_whole(self, folder: Path, case: Case | Job, methods: list[Method]) -> list[Method]:
        """Distinguish another order of sums from lost updates, by sums of whole numbers."""
        expected = np.load(folder / "expected_whole.npy", mmap_mode="r")
        whole = case.whole()
        calls = peers.methods(self.family, whole)
        judged = []
        for method in methods:
            verdict = method.verdict
            if verdict.answer == DIFFERS:
                verdict = compare_sums(np.asarray(calls[method.name]()), expected, whole)
            judged.append(Method(method.name, verdict, method.seconds))
        return judged

    def time(self) -> dict[str, float]:
        """Time one run of each kept method, in seconds."""
        return {name: _timed(call, self.before.get(name))[0] for name, call in self.calls.items()}

    def load_tiny(self, name: str) -> list[str]:
        self.timers = tiny.loops(name, self.family)
        return list(self.timers)

    def time_tiny(self) -> dict[str, float]:
        """Time a loop of each statement, in seconds per call."""
        return {name: loop.seconds() for name, loop in self.timers.items()}

    def _loaded(self) -> Case | Job:
        if self.case is None:
            raise RuntimeError("bench: no case has been loaded")
        return self.case


def _first_answer(family: str, case: Case | Job) -> Array:
    call = next(iter(peers.methods(family, case).values()))
    return np.asarray(call())


def _timed(call: Callable[[], Any], before: Callable[[], object] | None) -> tuple[float, Any]:
    """Time one run and return its result, to be dropped after the timing."""
    if before is not None:
        before()
    gc.disable()
    start = perf_counter()
    result = call()
    seconds = perf_counter() - start
    gc.enable()
    return seconds, result


def compare(answer: Array, expected: Array) -> Verdict:
    """Compare two arrays bit by bit.

    Parameters
    ----------
    answer, expected : numpy.ndarray
        The peer's result and the expected result.

    Returns
    -------
    Verdict
        ``exact``, or ``differs`` with the fraction of different elements.

    Examples
    --------
    >>> compare(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5])).detail
    '25 % of elements differ'
    """
    if answer.shape != expected.shape or answer.dtype != expected.dtype:
        return Verdict(DIFFERS, f"gives {answer.dtype} {answer.shape}")
    integer_dtype = np.dtype(f"u{expected.itemsize}")
    wrong = np.count_nonzero(answer.view(integer_dtype) != expected.view(integer_dtype))
    if wrong == 0:
        return Verdict(EXACT)
    return Verdict(DIFFERS, f"{_percent(wrong / expected.size)} of elements differ")


def compare_sums(answer: Array, expected: Array, whole: Case | Job) -> Verdict:
    """Compare sums of whole numbers, which do not depend on the order of additions.

    Parameters
    ----------
    answer, expected : numpy.ndarray
        The peer's result and the expected result.
    whole : Case or Job
        The case; for most cases, the total of all updates is known.

    Returns
    -------
    Verdict
        ``order of sums`` if the sums agree, or ``differs`` with the lost fraction.
    """
    if compare(answer, expected).answer == EXACT:
        return Verdict(REORDERED)
    added = whole.added
    lost = float(np.sum(expected, dtype="f8")) - float(np.sum(answer, dtype="f8"))
    if added > 0 and lost > 0:
        return Verdict(DIFFERS, f"loses {_percent(lost / added)} of what is added")
    return compare(answer, expected)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
