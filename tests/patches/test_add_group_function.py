"""Follows the recipe "Add a function over groups": the range of the values of each group."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from recipes import COPIES_CORE, copied, copy_installed_core, patched, run
from source import ROOT

PATCH = ROOT / "tests" / "patches" / "ptp.patch"
MOST_FILES = 5
pytestmark = COPIES_CORE


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree with the function. The core is the installed one."""
    parts = "src/gatherum", "tests", "tools", "docs", "benchmarks", "README.md", "pyproject.toml"
    folder = copied(tmp_path_factory.mktemp("ptp"), *parts)
    assert len(set(patched(folder, PATCH))) <= MOST_FILES
    run(folder, "tools/signatures")
    copy_installed_core(folder)
    return folder


# Tests that read their functions from the tables: they cover the new row without a change.
@pytest.mark.parametrize(
    ("path", "chosen", "least"),
    [
        ("groups/test_group_functions.py", "ptp or type_checkers or docstrings or oracle_has", 24),
        ("files/test_grouped.py", "in_memory and npy", 1),
    ],
)
def test_tests_try_it(tree: Path, path: str, chosen: str, least: int) -> None:
    assert _passed(tree, path, chosen) >= least


@pytest.mark.frameworks
@pytest.mark.parametrize(
    "path", ["torch/test_tensor_groups", "jax/test_jax_groups", "dask/test_dask_groups"]
)
def test_tests_of_frameworks_try_it(tree: Path, path: str) -> None:
    package = path.partition("/")[0]
    if not find_spec(package):
        pytest.skip(f"install {package} to test with it")
    assert _passed(tree, f"frameworks/{path}.py", "ptp") >= 3


def _passed(tree: Path, path: str, chosen: str) -> int:
    """Run tests in the copy. Return the number of tests that passed."""
    command = "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not release", "-k", chosen
    (passed,) = re.findall(r"(\d+) passed", run(tree, *command, f"tests/{path}"))
    return int(passed)


# A file of the recipe, the omitted part, and the name of the test that fails.
FORGOTTEN = {
    "its dtypes in the reference": (
        "reference/groups.py", r'    "ptp": .*\n', "test_the_oracle_has_the_same_functions",
    ),
    "its names": (
        "groups/function_names.py", r'"(nan)?ptp", ',
        "test_the_names_for_type_checkers_are_those_of_the_tables",
    ),
    "its description": (
        "groups/reducing.py", r'``"ptp"``', "test_docstrings_name_every_function",
    ),
}  # fmt: skip


@pytest.mark.parametrize("part", FORGOTTEN)
def test_a_missing_part_is_found(tree: Path, part: str) -> None:
    name, pattern, test = FORGOTTEN[part]
    path = tree / "src" / "gatherum" / name
    whole = path.read_text()
    without, changes = re.subn(pattern, "", whole)
    assert changes
    path.write_text(without)
    try:
        with pytest.raises(AssertionError, match=f"FAILED .*{test}"):
            _passed(tree, "groups/test_group_functions.py", test)
    finally:
        path.write_text(whole)
