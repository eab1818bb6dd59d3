"""Replays of device programs in the core; see `replay_cases.py`."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import stand_in
from shim.device import COMPILER, NO_COMPILER

from source import SOURCE

HAS_BINDINGS = importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.bindings")
pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not HAS_BINDINGS, reason="needs cuda.bindings: pip install cuda-bindings"),
    pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER),
]


def run_cases(file, mark, tmp_path, **variables):
    """Run the tests of a file that have a mark, in a process with the driver of `libcuda.c`."""
    environment = stand_in.build(tmp_path) | {"PYTHONPATH": SOURCE} | variables
    cases = str(Path(__file__).with_name(file))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", mark, cases]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.frameworks
@pytest.mark.parametrize("mark", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_replays(mark, tmp_path):
    run_cases("replay_cases.py", mark, tmp_path)
