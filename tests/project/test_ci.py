"""The script that decides whether a change lands: its exit status depends on its lanes."""

import re
import shutil
import subprocess

import pytest

from source import ROOT

SCRIPT = ROOT / ".ci" / "run"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("first", "second", "third", "status", "last"),
    [
        ("true", "true", "true", 0, "--- third lane"),
        ("false", "true", "true", 1, "failed: first"),
        ("true", "false", "true", 1, "failed:  second"),
        ("true", "true", "false", 1, "failed:  third"),
        ("false", "false", "false", 1, "failed: first second third"),
    ],
)
def test_a_failure_in_any_lane_fails(tmp_path, first, second, third, status, last):
    text = SCRIPT.read_text()
    for lane, does in (("first", first), ("second", second), ("third", third)):
        text, replaced = re.subn(
            rf"^{lane}_lane\(\) {{\n.*?^}}$",
            f"{lane}_lane() {{ {does}; }}",
            text,
            flags=re.M | re.S,
        )
        assert replaced == 1
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text(text)
    done = subprocess.run(
        ["bash", str(tmp_path / ".ci" / "run")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (status, last), done.stderr


def test_the_folders_of_frameworks_shadow_no_framework():
    """pytest puts a test's folder on the path; ``frameworks`` holds one named ``torch``."""
    assert list((SCRIPT.parent.parent / "tests" / "frameworks").glob("*.py")) == []


def test_every_module_that_needs_a_framework_is_run_with_it():
    """The quick and slow sessions do not install the frameworks, and skip these tests."""
    root = SCRIPT.parents[1]
    _, _, rows = (root / "noxfile.py").read_text().partition("FRAMEWORK_TESTS = (")
    listed = tuple(re.findall(r'"(tests/[^"]+)"', rows.partition(")")[0]))
    skips = re.compile(
        r"importorskip\(\s*\"(dask|distributed|fsspec|jax|pandas|polars|pyarrow|torch|xarray)\""
    )
    on_devices = ("test_cuda_gpu.py", "test_cuda_verify.py")  # they need a GPU or torch for CUDA
    forgotten = [
        name
        for path in sorted((root / "tests").rglob("test_*.py"))
        if path.name not in on_devices and skips.search(path.read_text())
        if not (name := path.relative_to(root).as_posix()).startswith(listed)
    ]
    assert forgotten == []
