"""Files on Windows: missing modules are not imported, and its rules for open files are followed."""

import os
import subprocess
import sys

import pytest

from source import ROOT, SOURCE

FRAMEWORKS = {
    "torch", "jax", "dask", "distributed", "cupy", "cuda", "pyarrow", "numba", "onnxruntime",
    "onnxscript", "onnx_ir",
}  # fmt: skip
ON_LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="asks Linux which files are open"
)


def test_every_module_is_imported_without_functions_that_windows_lacks(python):
    run = python(f"""
import windows_rules
import importlib, pkgutil, sys
import gatherum

sys.modules |= dict.fromkeys({FRAMEWORKS})  # on Linux, they may need modules that Windows lacks
imported = 0
for module in pkgutil.walk_packages(gatherum.__path__, "gatherum.", onerror=lambda name: None):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
        imported += 1
    except ModuleNotFoundError as error:
        assert error.name.split(".")[0] in {FRAMEWORKS}, module.name
print(imported)
""")
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 100


@ON_LINUX
def test_one_run_at_a_time_writes_an_output(python, tmp_path):
    run = python(f"""
import windows_rules
import os
from gatherum.files.durable.journal import Journal
from gatherum.files.resources.os_calls import LOCKED_BYTE

path = {str(tmp_path / "journal")!r}
first = Journal(path, {{"n": 1}}, resume=False)
first.begin()
first.add({{"part": 1}})
try:
    Journal(path, {{"n": 1}}, resume=False)
except BlockingIOError as error:
    print(error)
first.close()
again = Journal(path, {{"n": 1}}, resume=True)
print(again.records, {{where for _, where in windows_rules.LOCKED}} == {{LOCKED_BYTE}})
again.remove()
print(os.path.exists(path))
""")
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        f"{tmp_path / 'journal'}: another run is writing this output",
        "[{'gatherum': 5, 'n': 1}, {'part': 1}] True",
        "False",
    ]


@ON_LINUX
@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "chosen"),
    [
        ("test_whole_page_reads.py", ""),
        ("test_equality.py", "rows_from_every and zarr or add_into_every and npy or larger"),
        pytest.param("test_equality.py", "", marks=pytest.mark.release),
    ],
)
def test_files_are_read_and_written_by_the_rules_of_windows(tests, chosen, tmp_path):
    support = str(ROOT / "tests" / "support")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "windows_rules",
         "--basetemp", str(tmp_path / "made"), str(ROOT / "tests" / "files" / tests),
         "-m", "not slow", "-k", chosen],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([SOURCE, support])},
        cwd=ROOT, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


@ON_LINUX
def test_an_output_that_another_program_has_open_is_left_and_the_run_resumed(python, tmp_path):
    run = python(f"""
import windows_rules
import numpy as np
from gatherum import files

table, out = {str(tmp_path / "table.npy")!r}, {str(tmp_path / "out.npy")!r}
np.save(table, np.arange(100.0))
np.save({str(tmp_path / "rows.npy")!r}, np.arange(9))
np.save(out, np.zeros(3))
call = (table, {str(tmp_path / "rows.npy")!r}, out)
with open(out, "rb"):
    try:
        files.gather_file(*call)
    except PermissionError as error:
        print(type(error).__name__)
print(np.load(out).size)
files.gather_file(*call, resume=True)
print(np.load(out).tolist() == list(range(9)))
""")
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["PermissionError", "3", "True"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.npy", "rows.npy", "table.npy"]
