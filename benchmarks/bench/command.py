"""Run the benchmark of ``python benchmarks/run.py`` and write its report."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import machine, peers, report
from .runner import NAMES, Progress, Runner
from .workloads import select


def main(
    only: Sequence[str] | None = None,
    json_file: str | Path | None = None,
    scale: float = 1.0,
    rounds: int = 7,
    families: Sequence[str] | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Run the benchmark, print its tables and write its files.

    Parameters
    ----------
    only : sequence of str, optional
        Names of workloads, parts of names or shell patterns. The default is all workloads.
    json_file : path, optional
        The file to which the report is written as JSON.
    scale : float, default 1
        The size of the arrays relative to the full workloads (a few hundred MB each).
    rounds : int, default 7
        The maximum number of timed runs of each peer; medians are shown.
    families : sequence of str, optional
        The peers to measure; all installed peers by default. NumPy is always included.
    quiet : bool, default False
        If True, do not print progress.

    Returns
    -------
    dict
        The report, as in the JSON file.

    Raises
    ------
    ValueError
        If `only`, `families`, `scale` or `rounds` is invalid.
    MemoryError
        If a workload does not fit into the available memory.
    """
    if not 0 < scale <= 16:
        raise ValueError(f"bench: `scale` must be in (0, 16], got {scale:g}")
    if rounds < 1:
        raise ValueError(f"bench: `rounds` must be at least 1, got {rounds}")
    names = select(NAMES, only)
    chosen = _families(families)
    progress: Progress = _silent if quiet else _print_line
    with _cleaning_up():
        measured = Runner(chosen, scale, rounds, progress).run(names)
    result = {**machine.describe(_command()), "scale": scale, "rounds": rounds, **measured}
    if json_file is not None:
        report.write_json(result, Path(json_file))
    if not quiet:
        report.show(result)
    return result


def _families(wanted: Sequence[str] | None) -> tuple[str, ...]:
    installed = peers.installed()
    for family in wanted or ():
        if family not in installed:
            raise ValueError(
                f"bench: --peers must be installed peers ({', '.join(installed)}), got {family!r}"
            )
    return installed if wanted is None else tuple(wanted)


@contextmanager
def _cleaning_up() -> Iterator[None]:
    """Handle SIGTERM like an interruption: end processes and remove files."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers of signals
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _command() -> list[str]:
    return ["python", "benchmarks/run.py", *sys.argv[1:]]


def _print_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _silent(line: str) -> None:
    del line
