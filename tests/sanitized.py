"""Run tests of the core on every instruction-set level of a build with a sanitizer.

    python tests/sanitized.py asan                            # on all levels that this machine has
    python tests/sanitized.py tsan --levels v3,portable       # on these
    python tests/sanitized.py asan tests/files -x            # arguments of pytest on each level

`nox -s asan` and `nox -s tsan` make the build, set its environment, and run this. The last line
summarizes each level. Exit status 1: a test failed on some level.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from gatherum._system import native

TESTS = Path(__file__).resolve().parent
# The kernels, which are compiled for each level. For tsan, those that several threads run.
KERNELS = {
    "asan": (
        "cases", "bounds", "untouched", "corner_cases", "far_offsets", "properties", "algorithms",
        "kernel_edges", "integer_bins", "range_shares", "slab_blocks", "halves", "groups",
        "staged_tiles", "aggregate", "prepare", "c_gradients", "extremes", "elementary",
        "exact_sums", "quantized", "pointed_rows", "uncounted",
    ),
    "tsan": (
        "threads", "determinism", "integer_bins", "range_shares", "slab_blocks", "groups",
        "staged_tiles", "aggregate", "prepare", "c_gradients", "extremes", "exact_sums",
        "quantized", "pointed_rows", "uncounted",
    ),
}  # fmt: skip
# Code that is compiled once runs on the best level and on portable, and not on those between.
OTHERS = {
    "asan": (
        "sanitizers", "hostile", "errors", "plan", "report", "memory_results", "races", "processes",
        "threads", "determinism", "dispatch", "accelerate", "xla_call", "sparse_edges", "table",
        "table_reads", "table_shared", "row_reads", "c_programs", "c_arguments", "c_overlaps",
        "overlaps",
    ),
    "tsan": (
        "sanitizers", "untouched", "races", "processes", "properties", "algorithms", "kernel_edges",
        "table", "table_reads", "table_shared",
    ),
}  # fmt: skip
# Tests that sanitizers make infeasible: a limit on the address space, of which AddressSanitizer
# needs terabytes, and checks of very many indices.
LEFT_OUT = "not (memory_for_grouping or past_2_to_the_32 or 30000000)"
SUMMARY = re.compile(r"=* ?((?:\d+ \w+,? ?)+ in [\d.]+s.*?) ?=*$")


def chosen_tests(task: str, level: str, there: tuple[str, ...]) -> list[str]:
    """Return the arguments of pytest for a level."""
    names = KERNELS[task]
    if level in (there[0], "portable"):
        names = OTHERS[task] + names
    return [*map(path_of, names), "-k", LEFT_OUT]


def path_of(name: str) -> str:
    """Return the path of a test module, relative to the root of the repository."""
    (path,) = TESTS.rglob(f"test_{name}.py")
    return str(path.relative_to(TESTS.parent))


def main() -> int:
    """Run the tests level by level, and print a summary."""
    options, told = arguments()
    there = native.available_levels()
    levels = tuple(options.levels.split(",")) if options.levels else there
    if absent := [level for level in levels if level not in there]:
        raise SystemExit(f"this build or processor lacks {', '.join(absent)}; it has {there}")
    ends, failed = [], False
    for level in levels:
        status, end = tried(level, told or chosen_tests(options.task, level, there))
        ends.append(f"{level} {end}")
        failed |= status != 0
    print(f"{options.task}: {'; '.join(ends)}")
    return int(failed)


def arguments() -> tuple[argparse.Namespace, list[str]]:
    """Return the parsed command line, and the arguments for pytest."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("task", choices=tuple(KERNELS))
    parser.add_argument("--levels", help="as in v3,portable; all that there are by default")
    return parser.parse_known_args()


def tried(level: str, told: list[str]) -> tuple[int, str]:
    """Run pytest on a level. Return its exit status and its last line."""
    print(f"--- {level}", flush=True)
    # If standard error were captured, a sanitizer's report would be lost with the process.
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--capture=sys", *told]
    environment = os.environ | {"GATHERUM_ISA": level}
    line = last = ""
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as pytest:
        assert pytest.stdout is not None
        for line in pytest.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    if line and not line.endswith("\n"):  # pytest ended in the middle of a line
        print()
    summary = SUMMARY.match(last)
    return pytest.returncode, summary[1] if summary else f"ended with status {pytest.returncode}"


if __name__ == "__main__":
    sys.exit(main())
