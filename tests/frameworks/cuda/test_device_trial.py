"""The whole run of tests/device/first.py on doubles, so that mistakes do not cost device time."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from source import SOURCE

pytest.importorskip("torch", minversion="2.10", reason="install torch, which has a double device")
pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.release,  # only runs on a GPU use these steps
    pytest.mark.skipif(sys.platform != "linux", reason="steps are forks"),
]
HERE = Path(__file__).parent


def test_every_step_runs_on_doubles(tmp_path):
    with tarfile.open(tmp_path / "kernels.tar.xz", "w:xz"):
        pass  # nothing is launched
    out = tmp_path / "out"
    variables = {
        "PYTHONPATH": os.pathsep.join([SOURCE, str(HERE)]),
        "PYTEST_ADDOPTS": "-p gpu_double",
    }
    ran = subprocess.run(
        [sys.executable, str(HERE / "trial.py"), str(tmp_path), str(out), "--scale", "0.0001"],
        env=os.environ | variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    log = (out / "log.txt").read_text()
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + log
    lines = ran.stdout.splitlines()
    assert len(lines) == 16
    assert all(line.endswith("s  ok") for line in lines)
    assert log.count("0 of 8 calls went wrong") == 3
    assert re.search(r"^(\d+) of \1 digests as published \(cuda:0, a double", log, re.M)
    assert "20M into 256" in log
    assert sorted(path.name for path in out.iterdir()) == [
        "bench.json", "constants.json", "curve.json", "large.json", "log.txt",
        "report.md", "small.json",
    ]  # fmt: skip
    report = (out / "report.md").read_text()
    assert report.count("\n| cuda:0, a double, tensors of torch ") == 16
    assert report.count(" | ok | ") == 16
