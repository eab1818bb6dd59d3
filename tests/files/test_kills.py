"""A run that is killed at any moment can be resumed to a byte-identical result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gatherum
from files.storage import MISSING, keeps_notes

pytestmark = pytest.mark.slow

RARE = pytest.mark.release
PROGRAM = Path(__file__).with_name("kill_every_step.py")
PATHS = os.pathsep.join([str(Path(gatherum.__file__).parents[1]), str(PROGRAM.parents[1])])


@pytest.mark.parametrize(
    ("scenario", "stride", "again", "least"),
    [
        ("gather-passing", 11, 6, 15),
        ("gather-hdf5", 7, 4, 4),
        ("scatter-hdf5", 7, 0, 12),
        ("scatter-tensor", 9, 5, 8),
        ("scatter-zarr", 47, 0, 8),
        ("place", 9, 7, 8),
        ("place-memory", 3, 2, 2),
        ("place-zarr", 53, 20, 7),
        pytest.param("gather", 1, 0, 25, marks=RARE),
        pytest.param("gather-passing", 5, 0, 35, marks=RARE),
        pytest.param("gather-zarr", 17, 0, 6, marks=RARE),
        pytest.param("gather-passing-hdf5", 13, 0, 8, marks=RARE),
        pytest.param("place-hdf5", 7, 0, 12, marks=RARE),
        pytest.param("scatter", 2, 0, 40, marks=RARE),
        pytest.param("place", 2, 0, 40, marks=RARE),
        pytest.param("place-tensor", 7, 0, 12, marks=RARE),
        pytest.param("place-memory", 1, 0, 6, marks=RARE),
    ],
)
def test_killed_and_resumed(
    tmp_path: Path, scenario: str, stride: int, again: int, least: int
) -> None:
    """Kill at every `stride`-th step. If `again` is set, kill the resumed run as well."""
    for file_format, package in (("zarr", "zarr"), ("hdf5", "h5py")):
        if file_format in scenario:
            pytest.importorskip(package, reason=MISSING.format(package))
    if "place" in scenario and not keeps_notes(tmp_path):
        pytest.skip("this file system keeps no extended attributes (use one that does)")
    done = subprocess.run(
        [sys.executable, PROGRAM, scenario, tmp_path, str(stride), str(again)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYTHONPATH": PATHS},
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert int(done.stdout) >= least  # the number of kills
