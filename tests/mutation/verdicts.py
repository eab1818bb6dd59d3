"""What became of mutants: verdicts, kept in a file from one run to the next."""

import hashlib
import json
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mutation.mutants import Mutant
from mutation.trees import tests_for

__all__ = ["Committed", "Results", "Verdict"]

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

    @property
    def tests(self) -> tuple[str, ...]:
        """The files of tests that it rests on: that of the one which failed, or all that ran."""
        if self.killer is None:
            return tests_for(self.mutant, "all")
        test = _test(self.killer)
        return (f"tests/{test.partition('::')[0]}",) if test else ()

    def __str__(self) -> str:
        if self.killer is not None:
            wrong = "" if self.is_right else f", THOUGH EQUIVALENT: {self.mutant.equivalent}"
            return f"killed by {self.killer}{wrong}"
        return f"equivalent: {self.mutant.equivalent}" if self.is_right else "SURVIVED"


class Committed:
    """The tree as it is committed: `files`, each with git's name of its content, "" if changed.

    The table and its runner do not count: a verdict is about one row, and names its tests.
    """

    def __init__(self, files: dict[str, str]) -> None:
        self.files = {name: blob for name, blob in files.items() if not name.startswith(_RUNNER)}
        self.others = [name for name in self.files if not Path(name).name.startswith("test_")]

    def behind(self, verdict: Verdict) -> str:
        """Return a digest of what a verdict rests on; "" where that is not as committed."""
        names = [*self.others, *sorted(set(verdict.tests) - set(self.others))]
        blobs = {name: self.files.get(name, "") for name in names}
        return hashlib.sha256(json.dumps(blobs).encode()).hexdigest()[:16] * all(blobs.values())


_RUNNER = "tests/mutation/"


class Results:
    """Verdicts, kept in a file if it is named, one a line; they count if the tree is the same.

    Without `tree`, those of any tree count.
    """

    def __init__(self, file: Path | None, tree: Committed | None = None) -> None:
        self.file = file
        self.tree = tree
        self.lock = threading.Lock()
        self.kept: dict[tuple[str, str, str], tuple[str | None, float, str]] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                source, old, new, *found = json.loads(line)
                self._keep((source, old, new), *found)

    def likely(self, mutant: Mutant) -> list[str]:
        """Return tests that may kill it: what did, what killed others of its file, and of others.

        Those of other files have killed at least two, the most frequent ones first.
        """
        with self.lock:
            killers = {key: killer or "" for key, (killer, *_) in self.kept.items()}
        own = killers.get((mutant.file, mutant.old, mutant.new), "")
        of_file = [killer for key, killer in killers.items() if key[0] == mutant.file]
        counts = Counter(killers.values()).most_common(MOST_FREQUENT)
        chosen = [own, *reversed(of_file), *(killer for killer, count in counts if count > 1)]
        return list(dict.fromkeys(test for killer in chosen if (test := _test(killer))))

    def of(self, mutant: Mutant) -> Verdict | None:
        """Return a verdict that needs no second look."""
        key = (mutant.file, mutant.old, mutant.new)
        if key not in self.kept:
            return None
        killer, seconds, digest = self.kept[key]
        verdict = Verdict(mutant, killer, seconds)
        if self.tree is not None and (not digest or digest != self.tree.behind(verdict)):
            return None
        return verdict if verdict.is_right else None

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        mutant = verdict.mutant
        key = (mutant.file, mutant.old, mutant.new)
        digest = self.tree.behind(verdict) if self.tree is not None else ""
        found = verdict.killer, round(verdict.seconds, 1), digest
        with self.lock:
            self._keep(key, *found)
            if self.file is not None:
                with self.file.open("a") as stream:
                    stream.write(json.dumps([*key, *found]) + "\n")

    def _keep(
        self, key: tuple[str, str, str], killer: str | None, seconds: float, digest: str
    ) -> None:
        self.kept.pop(key, None)  # the latest are last: of a file's killers they are tried first
        self.kept[key] = killer, seconds, digest


def _test(killer: str) -> str:
    """Return the test in "test", "a crash (-11) in test" and "the clock in test"; else nothing."""
    test = killer.rpartition(" in ")[2]
    return test if "::" in test else ""
