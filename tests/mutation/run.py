"""Put small mistakes into the sources, one at a time, and see a test fail for each.

    python tests/mutation/run.py --changed            # the files that differ from the last commit
    python tests/mutation/run.py --changed main~5     # ... from another one
    python tests/mutation/run.py combine slabs        # files whose names contain these words
    python tests/mutation/run.py                      # all of them, before a release

The mistakes are the rows of mutants.toml. They are made in a copy of the tree, build/mutants, where
the core is built without optimisation. A failure, a crash, a test that does not end and a core that
does not compile each count as found. The exit status is 1 if the tests passed despite a mistake.

Mull mutates what clang compiles, mutmut Python alone; the core is built by g++.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("mutants.toml")
TREE = ROOT / "build" / "mutants"
PARTS = ("src", "tests", "fuzz", "examples", "CMakeLists.txt", "pyproject.toml", "README.md")
PATIENCE = 300  # seconds after which the tests of one mutant are stopped; they take about ten


@dataclass(frozen=True)
class Mutant:
    """One mistake: `old`, which `file` contains once, becomes `new`."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    level: str

    def __str__(self) -> str:
        name = self.file.removeprefix("src/").removeprefix("gatherum/")
        return f"{name}: {' '.join(self.old.split())} -> {' '.join(self.new.split()) or 'nothing'}"

    def applied(self, text: str) -> str:
        """Return the text of the file with the mistake in it."""
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self}: the file contains this {text.count(self.old)} times, not once"
            )
        return text.replace(self.old, self.new)


def mutants() -> Iterator[Mutant]:
    """Yield the rows of the table that this version of Python can run."""
    for file, part in tomllib.loads(TABLE.read_text()).items():
        if sys.version_info >= tuple(part.get("since", ())):
            tests = tuple(f"tests/{name}" for name in part["tests"])
            for old, new in part["mutants"]:
                yield Mutant(file, old, new, tests, part.get("level", ""))


def changed_since(commit: str) -> set[str]:
    """Return the files that differ between a commit and the working tree."""
    command = ["git", "-C", str(ROOT), "diff", "--name-only", commit]
    return set(subprocess.check_output(command, text=True).split())


def copy_tree() -> None:
    """Bring the copy up to date; unchanged files keep their dates, so only changes are compiled."""
    TREE.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        source, target = ROOT / part, TREE / part
        files = [source] if source.is_file() else [p for p in source.rglob("*") if p.is_file()]
        wanted = {TREE / path.relative_to(ROOT): path for path in files}
        old = [] if source.is_file() else [p for p in target.rglob("*") if p.is_file()]
        for path in set(old) - set(wanted):
            path.unlink()
        for copy, path in wanted.items():
            if path.suffix in (".so", ".pyc") or "__pycache__" in path.parts:
                continue
            if not copy.exists() or copy.read_bytes() != path.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)


def build(level: str) -> bool:
    """Build the core of the copy for portable and one more level; return whether it compiles."""
    folder = TREE / f"build{level}"
    if not (folder / "CMakeCache.txt").exists():
        # Two levels need functions to be inlined: -O0 would let the linker mix them.
        settings = [
            "-DCMAKE_BUILD_TYPE=None", f"-DPython_EXECUTABLE={sys.executable}",
            f"-DGATHERUM_LEVELS={level}", f"-DGATHERUM_OPTIMISATION={'-O1' if level else '-O0'}",
        ]  # fmt: skip
        command = ["cmake", "-S", str(TREE), "-B", str(folder), "-G", "Ninja", *settings]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    if subprocess.run(["cmake", "--build", folder], check=False, capture_output=True).returncode:
        return False
    command = ["cmake", "--install", str(folder), "--prefix", str(TREE / "src")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return True


def failure(tests: tuple[str, ...], level: str) -> str:
    """Build the copy and run tests in it; return what fails first, "" if everything passes."""
    if not build(level):
        return "the compiler"
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0",
               "--hypothesis-profile=mutants"]  # fmt: skip
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(["src", "tests"]), "PYTHONDONTWRITEBYTECODE": "1",
        "GATHERUM_EXAMPLES": "100",
    }  # fmt: skip
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests], cwd=TREE, env=environment,
            capture_output=True, text=True, errors="replace", check=False, timeout=PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no end after {PATIENCE} s"
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if run.returncode == 0:
        return ""
    return failed[0].split(" - ")[0] if failed else f"exit status {run.returncode}"


def try_mutant(mutant: Mutant) -> str:
    """Return what fails with the mistake in the copy, which is then as it was."""
    path = TREE / mutant.file
    text = path.read_text()
    path.write_text(mutant.applied(text))
    try:
        return failure(mutant.tests, mutant.level)
    finally:
        path.write_text(text)


def main() -> int:
    """Try the chosen mistakes, and print which of them no test finds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="parts of file names; default: all files")
    parser.add_argument("--changed", nargs="?", const="HEAD", metavar="COMMIT")
    given = parser.parse_args()
    chosen = [m for m in mutants() if not given.words or any(w in m.file for w in given.words)]
    if given.changed:
        changed = changed_since(given.changed)
        chosen = [mutant for mutant in chosen if mutant.file in changed]
    copy_tree()
    for level in sorted({mutant.level for mutant in chosen}):
        tests = tuple(dict.fromkeys(t for m in chosen if m.level == level for t in m.tests))
        if failed := failure(tests, level):
            raise SystemExit(f"before any mistake was made: {failed}")
    missed = 0
    for mutant in chosen:
        found = try_mutant(mutant)
        missed += not found
        print(f"{found or 'MISSED'}: {mutant}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mistakes found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
