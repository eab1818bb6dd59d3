"""Every allocation of a call fails once: MemoryError or the right bits, and no crash."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from source import ROOT, SOURCE

HERE = Path(__file__).parent
COMPILER = shutil.which("c++")
pytestmark = [
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="preloads functions of glibc"),
    pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler"),
    pytest.mark.skipif("SANITIZER" in os.environ, reason="sanitizers allocate by themselves"),
]
SMALL = "small", "lists", "plan", "report", "invalid"
OPERATORS = (
    "gather", "rows", "fill", "gather_elements", "gather_nd", "scatter_slices", "scatter_elements",
    "scatter_nd",
)  # fmt: skip
FOLDS = "aggregate", "prepare", "prepare items", "accumulator", "merge", "rounds"
FILES = "file gather", "file gathered", "file scatter"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("preload") / "failing.so"
    source = HERE / "failing_allocations.cpp"
    command = [COMPILER, "-std=c++20", "-O1", "-fPIC", "-shared", source, "-o", path, "-ldl"]
    subprocess.run(command, check=True)
    return path


def assert_nothing_fails(library, names, allocator, step=1):
    path = os.pathsep.join([SOURCE, str(ROOT / "tests" / "support")])
    # Python's own allocator would request memory only for a page at a time.
    settings = {"PYTHONPATH": path, "LD_PRELOAD": str(library), "PYTHONMALLOC": allocator}
    settings["FAILING_STEP"] = str(step)
    done = subprocess.run(
        [sys.executable, HERE / "failing_calls.py", *names],
        capture_output=True, text=True, check=False, env=os.environ | settings,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if ", allocation" in line] == []
    counts = {name: int(n) for name, n in re.findall(r"(.+): (\d+) allocations", done.stdout)}
    assert list(counts) == list(names)
    assert all(10 < n < 900 for n in counts.values())


def test_allocations_of_the_core_in_small_calls(library):
    assert_nothing_fails(library, SMALL, "pymalloc")


@pytest.mark.slow
@pytest.mark.parametrize("step", [15, pytest.param(1, marks=pytest.mark.release)])
@pytest.mark.parametrize("names", [SMALL, OPERATORS, FOLDS, FILES], ids=" ".join)
def test_allocations_of_the_core_and_of_python(library, names, step):
    assert_nothing_fails(library, names, "malloc", step)
