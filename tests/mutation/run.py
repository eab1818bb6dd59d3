"""Try every mutant: change the source, build, and see whether a test fails.

    python tests/mutation/run.py                       # all of them
    python tests/mutation/run.py combine slabs 17      # those of files so named, and one by number
    python tests/mutation/run.py --results R           # go on where the run before stopped
    python tests/mutation/run.py --results R --record  # all, on the sources as committed; on record

With --record, a verdict of a run before counts while what it rests on is the same, as committed:
sources, helpers of tests, and the test that failed, with what its file has besides tests; all of
its file after a crash or a hang, and all files of tests that ran where none failed. Otherwise every
verdict in R counts.

Works in copies of the tree, build/mutants, where the core is built without optimisation, portable
or with one instruction-set level more. Tests run until one fails: what killed the mutant when it
was last tried, what killed others, of its file first, and the rest from the likeliest to fail to
the slowest. A crash kills a mutant as well as a failure does, and so does a test that does not end.
What no test can tell, as the table says, meets the quick ones. Exit status 1: a mutant has survived
without a reason in the table, or one is dead that should not be.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import queue
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutation.mutants import ROOT, Mutant, mutants, unchanged
from mutation.trees import LEVELS, PARTS, Tree, level_for, tests_for
from mutation.verdicts import Committed, Results, Verdict
from records import Run, committed


def main() -> int:
    """Try the mutants, and sum up."""
    given = arguments()
    chosen = [
        (number, mutant)
        for number, mutant in enumerate(mutants())
        if not given.files
        or any(part in mutant.file or part == str(number) for part in given.files)
    ]
    if given.list:
        print("\n".join(f"{number} {mutant}" for number, mutant in chosen))
        return 0
    run = Run("mutants", f"nox -s mutants -- {shlex.join(sys.argv[1:])}") if given.record else None
    results = Results(given.results, Committed(committed(ROOT, *PARTS)) if run else None)
    verdicts = [found for _, mutant in chosen if (found := results.of(mutant))]
    done = {verdict.mutant for verdict in verdicts}
    open_ones = [(number, mutant) for number, mutant in chosen if mutant not in done]
    if given.tests != "all":
        open_ones = [(number, mutant) for number, mutant in open_ones if not mutant.equivalent]
    # Those that no test can tell take longest, and tests written for a survivor void them.
    open_ones.sort(key=lambda entry: (bool(entry[1].equivalent), entry[1].work))
    # Before them nothing is changed, and every test passes, on each level that is built.
    built = chosen if run else open_ones
    levels = dict.fromkeys(["", *(level_for(mutant) for _, mutant in built)])
    first = [(-1, unchanged(level)) for level in levels]
    before = [entry for entry in first if not run or not results.of(entry[1])]
    if given.jobs == 0:
        print(f"{len(open_ones)} without a verdict")
        return summed_up(verdicts, None if open_ones or before else run)
    alone = only_run()
    for number, verdict in tried(before + open_ones, given.jobs, given.tests, results.likely):
        if verdict.mutant.old:
            verdicts.append(verdict)
        if verdict.killer is not None or given.tests == "all":
            results.add(verdict)
        print(f"{time.strftime('%X')} {number} {verdict.mutant}\n    {verdict}", flush=True)
    alone.close()
    return summed_up(verdicts, run)


def only_run() -> TextIO:
    """Lock the trees: two runs would build their mutants into the same, and judge each other's."""
    trees = ROOT / "build" / "mutants"
    trees.mkdir(parents=True, exist_ok=True)
    lock = (trees / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"another run is at work in {trees}")
    return lock


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="parts of file names, or numbers in the table")
    parser.add_argument("--list", action="store_true", help="print the table with its numbers")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time; 0: sum up"
    )
    parser.add_argument(
        "--results", type=Path, help="a file that keeps verdicts; what it has is done"
    )
    parser.add_argument(
        "--tests", choices=("all", "quick", "slow"), default="all",
        help="quick ones first, and then slow ones for what they have let live: saves time",
    )  # fmt: skip
    parser.add_argument(
        "--record", action="store_true",
        help="write the figures to tests/records.toml; only verdicts on what is committed count",
    )  # fmt: skip
    given = parser.parse_args()
    if given.record and (given.files or given.tests != "all"):
        parser.error("--record is for a run of all mutants with all tests")
    return given


def tried(
    chosen: list[tuple[int, Mutant]], jobs: int, tests: str, likely: Callable[[Mutant], list[str]]
) -> Iterable[tuple[int, Verdict]]:
    """Try mutants, each job in a tree of its own; yield verdicts as they come.

    None comes before all tests have passed with nothing changed, where `chosen` asks for that.
    """
    waiting: queue.SimpleQueue[tuple[int, Mutant]] = queue.SimpleQueue()
    for entry in chosen:
        waiting.put(entry)
    ready: queue.SimpleQueue[tuple[int, Verdict] | Exception] = queue.SimpleQueue()

    def work(tree: Tree) -> None:
        while True:
            try:
                number, mutant = waiting.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            try:
                killer = tree.run(mutant, tests_for(mutant, tests), likely(mutant))
            except Exception as error:  # a job that fails is told, not lost
                ready.put(error)
            else:
                ready.put((number, Verdict(mutant, killer, time.monotonic() - began)))

    compilers = max(1, (os.cpu_count() or 1) // jobs)
    trees = [Tree(number, compilers) for number in range(jobs)]
    for tree in trees:
        threading.Thread(target=work, args=(tree,), daemon=True).start()
    try:
        levels = sum(not mutant.old for _, mutant in chosen)
        yield from after_unchanged((ready.get() for _ in chosen), levels)
    finally:
        for tree in trees:
            tree.stop()


def after_unchanged(
    found: Iterable[tuple[int, Verdict] | Exception], levels: int
) -> Iterable[tuple[int, Verdict]]:
    """Hold verdicts back until those on so many levels with nothing changed have come."""
    early: list[tuple[int, Verdict]] = []
    for entry in found:
        if isinstance(entry, Exception):
            raise SystemExit(f"the run itself: {entry!r}")
        verdict = entry[1]
        if not verdict.mutant.old:
            if verdict.killer is not None:
                raise SystemExit(f"without any mutant, this fails: {verdict.killer}")
            levels -= 1
        early.append(entry)
        if levels == 0:
            yield from early
            early.clear()


def summed_up(verdicts: list[Verdict], run: Run | None) -> int:
    """Print the figures and every verdict that is wrong; put the figures on record."""
    killed = sum(verdict.killer is not None for verdict in verdicts)
    native = sum(verdict.mutant.is_native for verdict in verdicts)
    excused = sum(bool(verdict.mutant.equivalent) for verdict in verdicts)
    wrong = [verdict for verdict in verdicts if not verdict.is_right]
    for verdict in wrong:
        print(f"{verdict.mutant}\n    {verdict}")
    line = (
        f"{killed} of {len(verdicts)} mutants ({native} in C++, "
        f"{len(verdicts) - native} in Python) killed, {excused} excused, {len(wrong)} wrong"
    )
    print(line)
    if run is not None:
        run.ended(line, LEVELS, sum(verdict.seconds for verdict in verdicts))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
