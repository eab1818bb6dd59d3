"""The core's part of the suite on every instruction-set level that this machine has."""

import os
import shutil
import subprocess
import sys

import pytest

import gatherum
from gatherum._system import native
from source import ROOT, SOURCE

pytestmark = pytest.mark.slow

CORE = ["arrays/test_cases.py", "core/test_algorithms.py", "arrays/test_properties.py"]
OTHERS = [name for name in native.available_levels() if name != native.level()]


def _run(level, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT / "tests",
        env=os.environ | {"PYTHONPATH": SOURCE, "GATHERUM_ISA": level, "GATHERUM_EXAMPLES": "60"},
        capture_output=True,
        text=True,
        check=False,
    )


# The most different level; those in between run before a release.
@pytest.mark.parametrize(
    "level", [*(pytest.param(one, marks=pytest.mark.release) for one in OTHERS[:-1]), *OTHERS[-1:]]
)
def test_the_core_gives_the_same_answers_on_every_level(level):
    keep = "Zipf or fresh or test_cases or modes or (every_form and (f2 or i8))"
    run = _run(
        level,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-m",
        "not release",
        "-p",
        "no:cacheprovider",
        "-k",
        keep,
        *CORE,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert " passed" in run.stdout


@pytest.mark.parametrize("level", native.available_levels())
def test_a_level_can_be_forced(level):
    run = _run(
        level, "-c", "import gatherum._system.native; print(gatherum._system.native.level())"
    )
    assert run.stdout.strip() == level


def test_an_unknown_level_is_refused_with_those_there_are():
    run = _run("v9", "-c", "import gatherum; gatherum.gather")
    have = ", ".join(native.available_levels())
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == (
        f"ValueError: gatherum: GATHERUM_ISA must be one of {have} here, got 'v9'"
    )


def test_the_level_in_use_is_the_best_there_is_unless_forced():
    if "GATHERUM_ISA" not in os.environ:
        assert native.level() == native.available_levels()[0]
    assert gatherum.config()["level"] == native.level()


OBJECTS = sorted(ROOT.glob("build/*/CMakeFiles/kernels_*.dir/src/core/kernels/level/*.cpp.o"))


BUILT = any(ROOT.glob("build/*/CMakeFiles/kernels_*.dir"))


@pytest.mark.skipif(
    not BUILT or shutil.which("nm") is None,
    reason="reads the objects of a build in this tree with nm: build the wheel here first",
)
def test_no_level_offers_code_that_another_could_take():
    """The linker keeps one copy of a shared inline function, perhaps for another processor."""
    assert OBJECTS, "the objects of the kernels are in another folder"
    for path in OBJECTS:
        level = "level_" + path.parts[-6].removesuffix(".dir").removeprefix("kernels_")
        run = subprocess.run(["nm", path], capture_output=True, text=True, check=True)
        weak = [line for line in run.stdout.splitlines() if line[17:18] in ("W", "V", "u")]
        assert weak, "the names of this compiler's objects are read otherwise"
        mangled = f"{len(level)}{level}"  # a namespace, as compilers write it
        others = [line for line in weak if mangled not in line and "DW.ref." not in line]
        assert others == [], path
