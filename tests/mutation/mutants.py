"""The table of mutants: small wrong changes of the sources, each of which some test must find."""

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Mutant", "mutants", "unchanged"]

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True)
class Mutant:
    """One change: `old`, which the file has once, becomes `new`.

    Attributes
    ----------
    file
        From the root of the repository.
    old, new
        What stands there, and what the mutant puts there.
    equivalent
        Why no test can tell the difference; empty where one must.
    """

    file: str
    old: str
    new: str
    equivalent: str = ""

    @property
    def is_native(self) -> bool:
        """Whether the core must be built anew."""
        return self.file.startswith("src/core/")

    @property
    def work(self) -> int:
        """What must be compiled: nothing, one small source, or all kernels."""
        kernels = self.file.endswith(".hpp") or "/kernels" in self.file
        return 2 if kernels else 1 if self.is_native else 0

    def __str__(self) -> str:
        name = self.file.removeprefix("src/").removeprefix("gatherum/")
        return f"{name}: {' '.join(self.old.split())} -> {' '.join(self.new.split()) or 'nothing'}"

    def applied(self, text: str) -> str:
        """Return the text of the file with the change in it."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self}: stands {text.count(self.old)} times in the file, not once")
        return text.replace(self.old, self.new)


def mutants() -> list[Mutant]:
    """Return the table, without files that this version of Python has no use for."""
    table = tomllib.loads(TABLE.read_text())
    used = {
        file: part
        for file, part in table.items()
        if sys.version_info >= tuple(part.get("since", ()))
    }
    return [Mutant(file, *entry) for file, part in used.items() for entry in part["mutants"]]


def unchanged(level: str) -> Mutant:
    """Return what no test may kill: nothing is changed. A level is built, too, unless it is ""."""
    return Mutant(level, "", "", "nothing is changed")
