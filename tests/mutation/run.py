"""Try every mutant: change the source, build, and see whether a test fails.

    python tests/mutation/run.py                 # all of them
    python tests/mutation/run.py combine slabs   # those of files so named

Works in a copy of the tree, build/mutants, where the core is built without optimisation and for one
instruction-set level. The tests run from the fastest to the slowest and stop at the first failure. A
crash kills a mutant as well as a failure does, and so does a run that takes too long. Exit status 1:
a mutant has survived without a reason in the table, or one is dead that should not be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutation.mutants import ROOT, Mutant, mutants  # noqa: E402

TREE = ROOT / "build" / "mutants"
CORE = TREE / "build"
PARTS = ("src", "tests", "fuzz", "examples", "CMakeLists.txt", "pyproject.toml", "README.md")
# The tests that look at what the operators do, from the fastest to the slowest.
TESTS = tuple(
    f"tests/test_{name}.py"
    for name in (
        "cases", "corner_cases", "errors", "plan", "report", "untouched", "fuzz_corpus", "bounds",
        "properties", "memory_results", "config", "determinism", "hostile", "far_offsets", "races",
        "threads", "processes", "peak_memory", "algorithms",
    )
)  # fmt: skip
OPTIONS = (
    "-x", "-q", "--tb=no", "--no-header", "-p", "no:cacheprovider", "--hypothesis-seed=0",
    "--hypothesis-profile=mutants",
)  # fmt: skip
# A mutant is given as many times the time of a run in which nothing fails.
PATIENCE = 4


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
            return f"killed in {self.seconds:.0f} s by {self.killer}{wrong}"
        return f"equivalent: {self.mutant.equivalent}" if self.is_right else "SURVIVED"


def main() -> int:
    """Try the mutants, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="parts of file names, or numbers in the table")
    parser.add_argument("--list", action="store_true", help="print the table with its numbers")
    parser.add_argument("--skip-equivalent", action="store_true", help="they take the longest")
    given = parser.parse_args()
    chosen = [
        (number, mutant)
        for number, mutant in enumerate(mutants())
        if not given.files
        or any(part in mutant.file or part == str(number) for part in given.files)
        if not (given.skip_equivalent and mutant.equivalent)
    ]
    if given.list:
        print("\n".join(f"{number} {mutant}" for number, mutant in chosen))
        return 0
    copy_tree()
    build()
    limit = PATIENCE * whole_run()
    verdicts = []
    for number, mutant in chosen:
        verdict = tried(mutant, limit)
        verdicts.append(verdict)
        print(f"{number} {mutant}\n    {verdict}", flush=True)
    return summed_up(verdicts)


def copy_tree() -> None:
    """Make the copy as the tree is; what has been built there stays."""
    for part in PARTS:
        source, target = ROOT / part, TREE / part
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            _write_changed(target, source.read_bytes())
            continue
        kept = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
        for old in [path for path in target.rglob("*") if path.is_file()]:
            if old.relative_to(target) not in kept:
                old.unlink()
        for name in kept:
            if name.suffix not in (".so", ".pyc"):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                _write_changed(target / name, (source / name).read_bytes())


def _write_changed(path: Path, content: bytes) -> None:
    """Write a file unless it is the same already: what depends on it would be built anew."""
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def build() -> bool:
    """Build the core of the copy; False: it does not compile."""
    if not (CORE / "build.ninja").exists():
        subprocess.run(
            [
                "cmake", "-S", TREE, "-B", CORE, "-G", "Ninja", "-DGATHERUM_LEVELS=",
                f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=None",
                "-DGATHERUM_OPTIMISATION=-O0",
            ],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    done = subprocess.run(["ninja", "-C", CORE], check=False, capture_output=True)
    if done.returncode != 0:
        return False
    (core,) = CORE.glob("_core*.so")
    shutil.copy(core, TREE / "src" / "gatherum" / core.name)
    return True


def whole_run() -> float:
    """Return the seconds that the tests take when nothing is wrong."""
    began = time.monotonic()
    killer = run_tests(None)
    if killer is not None:
        raise SystemExit(f"the tests fail without any mutant: {killer}")
    seconds = time.monotonic() - began
    print(f"all tests: {seconds:.0f} s", flush=True)
    return seconds


def tried(mutant: Mutant, limit: float) -> Verdict:
    """Put a mutant into the copy, see what kills it, and put the source back."""
    path = TREE / mutant.file
    text = path.read_text()
    began = time.monotonic()
    path.write_text(mutant.applied(text))
    try:
        # The core is built with this mutant in it, or at last without the one before.
        killer = run_tests(limit) if build() else "the compiler"
    finally:
        path.write_text(text)
    return Verdict(mutant, killer, time.monotonic() - began)


def run_tests(limit: float | None) -> str | None:
    """Run the tests, and return the one that fails, or what else went wrong."""
    environment = os.environ | {"PYTHONPATH": "src"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", "pytest", *OPTIONS, *TESTS]
    process = subprocess.Popen(
        command, cwd=TREE, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return f"the clock, after {limit:.0f} s"
    if process.returncode == 0:
        return None
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split()[1].removeprefix("tests/")
    return f"a crash, exit status {process.returncode}"


def summed_up(verdicts: list[Verdict]) -> int:
    """Print the figures and every verdict that is wrong."""
    killed = sum(verdict.killer is not None for verdict in verdicts)
    wrong = [verdict for verdict in verdicts if not verdict.is_right]
    native = sum(verdict.mutant.is_native for verdict in verdicts)
    print(
        f"\n{killed} of {len(verdicts)} mutants killed ({native} of them in C++), "
        f"{sum(bool(v.mutant.equivalent) for v in verdicts)} listed as equivalent"
    )
    for verdict in wrong:
        print(f"{verdict.mutant}\n    {verdict}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
