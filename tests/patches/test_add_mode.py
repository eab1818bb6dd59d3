"""Follows the recipe "Add a mode" by first.patch, and tests the effects of omitted parts.

In the mode ``"first"``, an invalid index selects the first slice or element.
"""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from recipes import (
    CHECKS_CORE,
    compile_core,
    copied,
    files_of,
    needs_build,
    patched,
    run,
)
from source import ROOT

PATCH = ROOT / "tests" / "patches" / "first.patch"
MOST_FILES = 8
pytestmark = CHECKS_CORE


def test_the_recipe_changes_few_files() -> None:
    assert len(set(files_of(PATCH))) <= MOST_FILES


# Tests that read their modes from the table: they cover the new row without a change.
@needs_build
@pytest.mark.parametrize(
    ("paths", "chosen", "least"),
    [
        ("arrays/test_cases.py arrays/test_operators.py", "first or mode", 3),
        (
            "arrays/test_properties.py core/test_no_python.py arrays/test_quantized.py",
            "properties or first",
            20,
        ),
        ("files/test_random.py", "random", 1),
        pytest.param(
            "frameworks/torch/test_plain_scatters.py",
            "first",
            1,
            marks=pytest.mark.frameworks,
            id="torch",
        ),
        pytest.param("frameworks/cuda/test_cuda_operands.py", "first", 1, id="cuda"),
    ],
)
def test_tests_try_it(
    tree: Path, paths: str, chosen: str, least: int, request: pytest.FixtureRequest
) -> None:
    if "torch" in request.node.callspec.id.split("-") and not find_spec("torch"):
        pytest.skip("install torch to test it with tensors")
    files = [f"tests/{path}" for path in paths.split()]
    said = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *files)
    (passed,) = re.findall(r"(\d+) passed", said)
    assert int(passed) >= least


CALLS = """
import numpy as np
import gatherum
from gatherum import files, reference
from gatherum.conformance.rules import RULES
from gatherum._model.operators import OPERATORS

data, indices = np.array([5, 6, 7], "f4"), np.array([1, 3, -1, -9])
assert gatherum.gather(data, indices, mode="first").tolist() == [6, 5, 7, 5]
assert gatherum.gather(data, indices, mode="first", negative=False).tolist() == [6, 5, 5, 5]
assert gatherum.gather(data, np.array([2**64 - 1], "u8"), mode="first").tolist() == [5]
added = gatherum.scatter_slices(data, indices, 1, reduction="add", mode="first")
assert added.tolist() == [7, 7, 8]
assert gatherum.groups.reduce(data, [0, 9, 1], 2, mode="first").tolist() == [11, 7]
assert files.gather_file(data, indices, mode="first").tolist() == [6, 5, 7, 5]
report = gatherum.explain("gather", data, indices, mode="first")
assert "else 0" in str(report) and "first" in report.svg()
assert gatherum.index_report("gather", data.shape, indices, mode="first").invalid == 2
try:
    gatherum.gather(data[:0], [1], mode="first")
except IndexError as error:
    assert "index 1 cannot be moved into axis 0, which has size 0" in str(error), error
else:
    raise AssertionError
calls = RULES["modes"].calls(OPERATORS["gather"], data.dtype, np.random.default_rng(3))
assert "first" in {call.attributes["mode"] for call in calls}
"""


@needs_build
def test_it_is_the_mode_that_was_meant(tree: Path) -> None:
    run(tree, "-c", CALLS)


@needs_build
def test_a_row_missing_in_python_is_named(tree: Path) -> None:
    table = tree / "src" / "gatherum" / "_model" / "modes.py"
    whole = table.read_text()
    without, changes = re.subn(r'    MovingRow\("first".*\n', "", whole)
    assert changes == 1
    table.write_text(without)
    try:
        with pytest.raises(AssertionError, match="modes has no row for first of the core"):
            run(tree, "-c", "import gatherum; gatherum.gather")
    finally:
        table.write_text(whole)


def test_a_rule_missing_in_the_core_does_not_compile(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    sources = copied(tmp_path_factory.mktemp("sources"), "src", "tests")
    patched(sources, PATCH)
    rules = "kernels/indices.hpp"
    path = sources / "src" / "core" / rules
    whole = path.read_text()
    without, changes = re.subn(r"    case Mode::first:\n.*?\}\);\n", "", whole, flags=re.DOTALL)
    assert changes == 1
    path.write_text(without)
    done = compile_core(sources, rules)
    assert done.returncode != 0
    assert "'first' not handled in switch" in done.stderr
    path.write_text(whole)
    assert compile_core(sources, rules).returncode == 0
