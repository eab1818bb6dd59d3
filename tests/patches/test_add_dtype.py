"""Follows the recipe "Add a value type" by float4.patch: a type that only moves.

NumPy arrays hold each item in a byte; other frameworks pack two items into a byte.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import dtype_stub
from recipes import build, copied, needs_build, patched, run
from source import ROOT

PATCH = ROOT / "tests" / "patches" / "float4.patch"
NAME = "float4_e2m1fn"
COMPILER = os.environ.get("CXX", "g++")
MOST_FILES = 6
pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="the command lines are those of Unix"),
    pytest.mark.skipif(not shutil.which("patch"), reason="applies a patch: install patch"),
    pytest.mark.skipif(
        not COMPILER or not shutil.which(COMPILER),
        reason="compiles the table: install a C++ compiler, or name it in CXX",
    ),
]
PROGRAM = """
#include <cstdio>
#include "model/dtypes.hpp"
int main() {
  for (const gatherum::DTypeRow& row : gatherum::kDTypes) std::puts(row.name);
}
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources with the type."""
    folder = copied(tmp_path_factory.mktemp("float4"), "src", "tests", "CMakeLists.txt")
    changed = patched(folder, PATCH)
    assert len(set(changed)) <= MOST_FILES, changed
    (folder / "names.cpp").write_text(PROGRAM)
    return folder


def compile_table(sources: Path) -> subprocess.CompletedProcess[str]:
    command = [COMPILER, "-std=c++20", f"-I{sources / 'src' / 'core'}", "names.cpp", "-o", "names"]
    english = os.environ | {"LC_ALL": "C"}
    return subprocess.run(
        command, cwd=sources, capture_output=True, text=True, check=False, env=english
    )


def test_the_stub_is_generated_from_the_table(sources: Path) -> None:
    done = compile_table(sources)
    assert done.returncode == 0, done.stderr
    names = subprocess.run([sources / "names"], capture_output=True, text=True, check=True)
    assert names.stdout.split()[-1] == NAME
    stub = (sources / "src" / "gatherum" / "_core.pyi").read_text()
    assert dtype_stub.generated(stub, {"DType": names.stdout.split()}) == stub


# A pattern in the table, its replacement, and the compiler's message.
MISTAKES = {
    "no enumerator": (rf"  {NAME},\n", "", NAME),
    "no row": (rf"    \{{DType::{NAME}.*?\}},\n", "", "static assertion failed"),
    "a row without its last field": (
        r"32, Value::none,\s+kNoFormat\}", "32, Value::none}", "FloatFormat",
    ),
    "more bits than bytes": (rf'"{NAME}", 1, 4,', f'"{NAME}", 1, 9,', "a row of kDTypes differs"),
    "the value type of another dtype": (
        "32, Value::none", "32, Value::int8", "a row of kDTypes differs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_table_does_not_compile(sources: Path, mistake: str) -> None:
    pattern, instead, message = MISTAKES[mistake]
    table = sources / "src" / "core" / "model" / "dtypes.hpp"
    whole = table.read_text()
    wrong, changes = re.subn(pattern, instead, whole, flags=re.DOTALL)
    assert changes == 1
    table.write_text(wrong)
    try:
        done = compile_table(sources)
    finally:
        table.write_text(whole)
    assert done.returncode != 0
    assert message in done.stderr


@pytest.fixture(scope="module")
def tree(sources: Path) -> Path:
    build(sources)
    return sources


@needs_build
@pytest.mark.parametrize(
    ("paths", "least"),
    [
        (
            "arrays/test_dtypes.py arrays/test_ml_dtypes.py arrays/test_views.py"
            " project/test_stub.py",
            60,
        ),
        ("c_interface/test_c_programs.py files/test_numbers.py", 20),
        pytest.param(
            "frameworks/jax/test_jax_equality.py", 10, marks=pytest.mark.frameworks, id="jax"
        ),
    ],
)
def test_tests_pass(tree: Path, paths: str, least: int) -> None:
    files = [f"tests/{path}" for path in paths.split()]
    said = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
    (passed,) = re.findall(r"(\d+) passed", said)
    assert int(passed) >= least


CALLS = """
import sys
sys.modules["ml_dtypes"] = None  # as if it were not installed
import numpy as np
import gatherum
from gatherum import _core

plan = gatherum.plan("gather", ((4, 4), "float4_e2m1fn"), ((3,), "i8"))
assert "float4_e2m1fn" in str(plan) and plan.shape == (3, 4)
assert _core.DType.float4_e2m1fn.value == 26
assert _core.dtype_of_dlpack(17, 4) is None  # packed
"""
WITH_ML_DTYPES = """
import numpy as np, ml_dtypes
import gatherum
from gatherum import files

table = np.arange(12).astype("u1").view(ml_dtypes.float4_e2m1fn).reshape(6, 2)
assert gatherum.gather(table, [5, 0]).tobytes() == table[[5, 0]].tobytes()
assert gatherum.scatter_slices(table, [1], table[:1]).dtype == table.dtype
for call, error in (
    (lambda: gatherum.scatter_slices(table, [1], table[:1], reduction="add"), TypeError),
    (lambda: files.gather_file(table, [1], "o.safetensors:x"), ValueError),
):
    try:
        call()
    except error as raised:
        assert "float4_e2m1fn" in str(raised), raised
    else:
        raise AssertionError(error)
"""


@needs_build
@pytest.mark.parametrize("calls", [CALLS, WITH_ML_DTYPES], ids=["alone", "with ml_dtypes"])
def test_it_moves(tree: Path, calls: str) -> None:
    if calls is WITH_ML_DTYPES:
        pytest.importorskip("ml_dtypes", minversion="0.5", reason="install ml_dtypes 0.5")
    run(tree, "-c", calls)


@needs_build
def test_a_format_that_forgets_it_names_it(tree: Path) -> None:
    form = tree / "src" / "gatherum" / "files" / "formats" / "safetensors.py"
    whole = form.read_text()
    form.write_text(whole.replace(f', "{NAME}"', ""))
    try:
        with pytest.raises(
            AssertionError, match=f"safetensors has no spelling for dtype {NAME} of the core"
        ):
            run(tree, "-c", "import gatherum.files.formats")
    finally:
        form.write_text(whole)
