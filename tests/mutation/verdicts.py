"""What became of mutants: verdicts, kept in a file from one run to the next."""

import ast
import hashlib
import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mutation.mutants import ROOT, Mutant
from mutation.trees import COMPILER, HOW, level_for, tests_for

__all__ = ["Committed", "Results", "Verdict"]

# So many tests that kill the most mutants are tried on those of which nothing is known.
MOST_FREQUENT = 30
# A verdict names its test, and how tests run is in HOW; one of them runs the README's examples.
NOT_READ = ("tests/mutation/", "README.md")
READS_TOO = {"tests/test_surface.py": "README.md"}


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
        if self.killer == COMPILER:
            return ()
        file = _test(self.killer or "").partition("::")[0]
        return (f"tests/{file}",) if file else tests_for(self.mutant, "all")

    def __str__(self) -> str:
        if self.killer is not None:
            wrong = "" if self.is_right else f", THOUGH EQUIVALENT: {self.mutant.equivalent}"
            return f"killed by {self.killer}{wrong}"
        return f"equivalent: {self.mutant.equivalent}" if self.is_right else "SURVIVED"


@cache
def _read(blob: str) -> str:
    command = ["git", "cat-file", "blob", blob]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode()


class Committed:
    """The tree as it is committed: `files`, each with git's name of its content, "" if changed.

    `read` returns the text that has such a name.
    """

    def __init__(self, files: dict[str, str], read: Callable[[str], str] = _read) -> None:
        self.files = files
        self.read = read
        # Tests of its own file apart, a verdict may rest on any of these.
        self.shared = [
            name
            for name in files
            if not Path(name).name.startswith("test_") and not name.startswith(NOT_READ)
        ]

    def behind(self, verdict: Verdict) -> str:
        """Return a digest of what a verdict rests on; "" where that is not as committed."""
        more = [READS_TOO[test] for test in verdict.tests if test in READS_TOO]
        names = (*self.shared, *verdict.tests, *more)
        blobs = {name: self.files.get(name, "") for name in names}
        if not all(blobs.values()):
            return ""
        file, _, test = _test(verdict.killer or "").partition("::")
        # Others in its file may come and change; but what ends Python may come from one before.
        if test and (verdict.killer or "").startswith(file):
            text = self.read(self.files[f"tests/{file}"])
            blobs[f"tests/{file}"] = _without_others(text, test)
        whole = json.dumps([blobs, HOW, level_for(verdict.mutant)], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()[:16]


class Results:
    """Verdicts, kept in a file if it is named, one a line; they count if the tree is the same.

    Without `tree`, those of any tree count.
    """

    def __init__(self, file: Path | None, tree: Committed | None = None) -> None:
        self.file = file
        self.tree = tree
        self.lock = threading.Lock()
        # What was found of a mutant, the latest last: the killer, the seconds, what it rests on.
        self.kept: dict[tuple[str, str, str], list[tuple[str | None, float, str]]] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                source, old, new, *found = json.loads(line)
                self._keep((source, old, new), *found)

    def likely(self, mutant: Mutant) -> list[str]:
        """Return tests that may kill it: what did, what killed others of its file, and of others.

        Those of other files have killed at least two, the most frequent ones first.
        """
        with self.lock:
            killers = {key: found[-1][0] or "" for key, found in self.kept.items()}
        own = killers.get((mutant.file, mutant.old, mutant.new), "")
        of_file = [killer for key, killer in killers.items() if key[0] == mutant.file]
        counts = Counter(killers.values()).most_common(MOST_FREQUENT)
        chosen = [own, *reversed(of_file), *(killer for killer, count in counts if count > 1)]
        tests = (_test(killer) for killer in chosen)
        return list(dict.fromkeys(test for test in tests if "::" in test))

    def of(self, mutant: Mutant) -> Verdict | None:
        """Return the latest verdict that needs no second look."""
        key = (mutant.file, mutant.old, mutant.new)
        for killer, seconds, digest in reversed(self.kept.get(key, ())):
            verdict = Verdict(mutant, killer, seconds)
            if self.tree is None or (digest and digest == self.tree.behind(verdict)):
                return verdict if verdict.is_right else None
        return None

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
        before = self.kept.pop(key, [])  # put last: of a file's killers the latest are tried first
        self.kept[key] = [*before, (killer, seconds, digest)]


def _test(killer: str) -> str:
    """Return the test in "test", "a crash (-11) in test" and "the clock in test", or its file.

    "" where there is none. Names of tests may have any words in brackets.
    """
    file, separator, name = killer.partition("::")
    file = file.rpartition(" in ")[2]
    return file + separator + name if file.endswith(".py") else ""


@cache
def _without_others(text: str, test: str) -> str:
    """Return a file of tests without those that are not `test`, and the empty lines above them."""
    lines = text.split("\n")
    tests = {
        node.name: node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    if tests.pop(test.partition("[")[0], None) is None:
        return text
    for node in reversed(tests.values()):  # from the end, so that numbers of lines stay right
        first = min(part.lineno for part in (node, *node.decorator_list)) - 1
        while first and not lines[first - 1].strip():
            first -= 1
        del lines[first : node.end_lineno]
    return "\n".join(lines)
