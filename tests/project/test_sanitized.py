"""`nox -s asan` and `tsan` run existing tests on every level, and name the level."""

import os
import re
import subprocess
import sys

import pytest

import sanitized
from gatherum._system import native
from sanitized import KERNELS, OTHERS, chosen_tests
from source import ROOT, SOURCE

pytestmark = pytest.mark.slow

LEVELS = native.available_levels()


@pytest.mark.parametrize("task", KERNELS)
def test_the_tests_exist_and_none_is_there_twice(task):
    names = KERNELS[task] + OTHERS[task]
    assert len(set(names)) == len(names)
    *files, _, _ = chosen_tests(task, "portable", LEVELS)
    assert len(files) == len(names)
    assert all((ROOT / file).is_file() for file in files)
    assert chosen_tests(task, LEVELS[0], LEVELS) == chosen_tests(task, "portable", LEVELS)
    between = chosen_tests(task, "between", LEVELS)
    assert len(between) == len(KERNELS[task]) + 2


def _run(*arguments):
    clean = {key: value for key, value in os.environ.items() if key != "GATHERUM_ISA"}
    return subprocess.run(
        [sys.executable, sanitized.__file__, "asan", *arguments],
        env=clean | {"PYTHONPATH": SOURCE}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_every_level_is_run_and_reported(tmp_path):
    file = tmp_path / "test_one.py"
    file.write_text(
        "from gatherum._system import native\n"
        "def test_level(): assert native.level() in ('portable', 'v3')\n"
        "def test_any(): pass\n"
    )
    run = _run("-q", str(file))
    ends = run.stdout.splitlines()[-1].removeprefix("asan: ").split("; ")
    assert [end.split(" ", 1)[0] for end in ends] == list(LEVELS)
    for level, end in zip(LEVELS, ends, strict=True):
        passed = "2 passed" if level in ("portable", "v3") else "1 failed, 1 passed"
        assert re.fullmatch(rf"{level} {passed} in [\d.]+s", end)
    assert run.returncode == int(any(" failed" in end for end in ends))


def test_a_run_that_ends_without_a_summary_has_failed(tmp_path):
    file = tmp_path / "test_one.py"
    file.write_text("import os\ndef test(): os._exit(9)\n")
    run = _run("--levels", "portable", str(file))
    assert run.stdout.splitlines()[-1] == "asan: portable ended with status 9"
    assert run.returncode == 1


def test_missing_levels_are_refused():
    run = _run("--levels", "v9,portable")
    assert run.returncode == 1
    assert run.stderr.startswith("this build or processor lacks v9; it has ")
