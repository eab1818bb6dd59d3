"""Try every mutant: change the source, build, and see whether a test fails.

    python tests/mutation/run.py                       # all of them
    python tests/mutation/run.py combine slabs 17      # those of files so named, and one by number
    python tests/mutation/run.py --results R           # go on where the run before stopped
    python tests/mutation/run.py --results R --record  # all, on the sources as committed; on record

With --record, verdicts count that were found on the same sources and tests.

Works in copies of the tree, build/mutants, where the core is built without optimisation and for
one instruction-set level. Tests run until one fails: what killed the mutant when it was last
tried, what killed others, of its file first, and the rest from the likeliest to fail to the
slowest. A crash kills a mutant as well as a failure does, and so does a test that does not end.
What no test can tell, as the table says, meets the quick ones. Exit status 1: a mutant has survived
without a reason in the table, or one is dead that should not be.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import queue
import shlex
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutation.mutants import ROOT, Mutant, mutants
from mutation.trees import LEVELS, PARTS, Tree, tests_for
from records import Run, sources

# So many tests that kill the most mutants are tried on those of which nothing is known.
MOST_FREQUENT = 30


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: `killer` is the test that failed, or what else ended the run."""

    mutant: Mutant
    killer: str | None
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether it died, unless the table says that it cannot."""
        return (self.killer is None) == bool(self.mutant.equivalent)

    def __str__(self) -> str:
        if self.killer is not None:
            wrong = "" if self.is_right else f", THOUGH EQUIVALENT: {self.mutant.equivalent}"
            return f"killed by {self.killer}{wrong}"
        return f"equivalent: {self.mutant.equivalent}" if self.is_right else "SURVIVED"


class Results:
    """Verdicts, kept in a file if it is named, one a line; they count if they are of `sources`.

    None: of any. The empty text: there are changes that no digest tells, and none counts.
    """

    def __init__(self, file: Path | None, sources: str | None = None) -> None:
        self.file = file
        self.sources = sources or ""
        self.lock = threading.Lock()
        self.kept: dict[tuple[str, str, str], tuple[str | None, float]] = {}
        self.killers: dict[tuple[str, str, str], str] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                source, old, new, killer, seconds, of = json.loads(line)
                self.killers[source, old, new] = killer or ""
                if sources is None or (of == sources and sources):
                    self.kept[source, old, new] = killer, seconds

    def likely(self, mutant: Mutant) -> list[str]:
        """Return tests that may kill it: what did, what killed others of its file, and of others.

        Those of other files have killed at least two, the most frequent ones first.
        """
        with self.lock:
            own = self.killers.get((mutant.file, mutant.old, mutant.new), "")
            of_file = [killer for key, killer in self.killers.items() if key[0] == mutant.file]
            counts = Counter(self.killers.values()).most_common(MOST_FREQUENT)
        killers = [own, *reversed(of_file), *(killer for killer, count in counts if count > 1)]
        tests = (killer.rpartition(" in ")[2] for killer in killers)  # "a crash (-11) in ..."
        return list(dict.fromkeys(test for test in tests if "::" in test))

    def of(self, mutant: Mutant) -> Verdict | None:
        """Return a verdict that needs no second look."""
        key = (mutant.file, mutant.old, mutant.new)
        if key not in self.kept:
            return None
        verdict = Verdict(mutant, *self.kept[key])
        return verdict if verdict.is_right else None

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        mutant = verdict.mutant
        key = (mutant.file, mutant.old, mutant.new)
        with self.lock:
            self.killers.pop(key, None)
            self.killers[key] = verdict.killer or ""
        if self.file is not None:
            entry = [*key, verdict.killer, round(verdict.seconds, 1), self.sources]
            with self.file.open("a") as stream:
                stream.write(json.dumps(entry) + "\n")


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
    results = Results(given.results, sources(ROOT, *PARTS) if run else None)
    verdicts = [found for _, mutant in chosen if (found := results.of(mutant))]
    done = {verdict.mutant for verdict in verdicts}
    open_ones = [(number, mutant) for number, mutant in chosen if mutant not in done]
    if given.tests != "all":
        open_ones = [(number, mutant) for number, mutant in open_ones if not mutant.equivalent]
    open_ones.sort(key=lambda entry: entry[1].work)
    if given.jobs == 0:
        print(f"{len(open_ones)} without a verdict")
        return summed_up(verdicts, None if open_ones else run)
    alone = only_run()
    for number, verdict in tried(open_ones, given.jobs, given.tests, results.likely):
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
        help="write the figures to tests/records.toml; only verdicts of these sources count",
    )  # fmt: skip
    given = parser.parse_args()
    if given.record and (given.files or given.tests != "all"):
        parser.error("--record is for a run of all mutants with all tests")
    return given


def tried(
    chosen: list[tuple[int, Mutant]], jobs: int, tests: str, likely: Callable[[Mutant], list[str]]
) -> Iterable[tuple[int, Verdict]]:
    """Try mutants, each job in a tree of its own; yield verdicts as they come."""
    compilers = max(1, (os.cpu_count() or 1) // jobs)
    waiting: queue.SimpleQueue[tuple[int, Mutant | None]] = queue.SimpleQueue()
    # First of all nothing is changed: then every test passes.
    for entry in [(-1, None), *chosen]:
        waiting.put(entry)
    ready: queue.SimpleQueue[tuple[int, Mutant | None, str | None, float]] = queue.SimpleQueue()

    def work(tree: Tree) -> None:
        while True:
            try:
                number, mutant = waiting.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            try:
                first = likely(mutant) if mutant is not None else []
                found = tree.run(mutant, tests_for(mutant, tests), first)
            except Exception as error:  # a job that fails is told, not lost
                found, mutant = f"the run itself: {error!r}", None
            ready.put((number, mutant, found, time.monotonic() - began))

    trees = [Tree(number, compilers) for number in range(jobs)]
    for tree in trees:
        threading.Thread(target=work, args=(tree,), daemon=True).start()
    try:
        for _ in range(len(chosen) + 1):
            number, mutant, found, seconds = ready.get()
            if mutant is not None:
                yield number, Verdict(mutant, found, seconds)
            elif found is not None:
                raise SystemExit(f"without any mutant, this fails: {found}")
    finally:
        for tree in trees:
            tree.stop()


def summed_up(verdicts: list[Verdict], run: Run | None) -> int:
    """Print the figures and every verdict that is wrong; put the figures on record."""
    killed = sum(verdict.killer is not None for verdict in verdicts)
    native = sum(verdict.mutant.is_native for verdict in verdicts)
    excused = sum(bool(verdict.mutant.equivalent) for verdict in verdicts)
    wrong = [verdict for verdict in verdicts if not verdict.is_right]
    for verdict in wrong:
        print(f"{verdict.mutant}\n    {verdict}")
    line = (
        f"{killed} of {len(verdicts)} mutants killed ({native} of them in C++, "
        f"{len(verdicts) - native} in Python), {excused} excused, {len(wrong)} wrong"
    )
    print(line)
    if run is not None:
        run.ended(line, LEVELS, sum(verdict.seconds for verdict in verdicts))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
