"""Follows the recipe "Override another operator of torch": the gradient of a pooling layer.

Adaptive windows overlap, so the gradient of ``adaptive_max_pool2d`` adds several updates to the
elements that are the maximum of more than one window.
"""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from recipes import COPIES_CORE, copied, copy_installed_core, patched, run
from source import ROOT

PATCH = ROOT / "tests" / "patches" / "max_pool.patch"
MOST_FILES = 4
pytestmark = [
    *COPIES_CORE,
    pytest.mark.frameworks,
    pytest.mark.skipif(not find_spec("torch"), reason="install torch to test with it"),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree with the override. The core is the installed one."""
    parts = "src/gatherum", "tests", "docs", "pyproject.toml"
    folder = copied(tmp_path_factory.mktemp("override"), *parts)
    assert len(set(patched(folder, PATCH))) <= MOST_FILES
    copy_installed_core(folder)
    # This file imports the modules of all tables, and their packages.
    (folder / "docs" / "rendering" / "__init__.py").write_text("")
    return folder


CALLS = """
import torch
import gatherum.torch as room

updates = torch.tensor([[[2.0**24, 1, 1]]])  # its sum depends on the order
def gradient(updates):
    data = torch.tensor([[[0.0, 1, 0]]], requires_grad=True)
    torch.nn.functional.adaptive_max_pool2d(data, (3, 1)).backward(updates)
    return data.grad.tolist()
with room.reproducible() as context:
    assert gradient(updates.view(1, 3, 1)) == [[[0, 2.0**24, 0]]]
    assert gradient(updates.flip(-1).view(1, 3, 1)) == [[[0, 2.0**24 + 2, 0]]]
assert context.report() == ({"adaptive_max_pool2d_backward": 2}, {}), context.report()
gradient(updates.view(1, 3, 1))
assert context.report() == ({"adaptive_max_pool2d_backward": 2}, {})
"""


def test_the_operator_is_overridden_only_inside_reproducible(tree: Path) -> None:
    run(tree, "-c", CALLS)


# Tests that read their calls from the table of calls: they cover the new row without a change.
def test_tests_try_it(tree: Path) -> None:
    tests = "tests/frameworks/torch/test_reproducible.py"
    chosen = "adaptive or remembered or every"
    said = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, tests)
    (passed,) = re.findall(r"(\d+) passed", said)
    assert int(passed) >= 3


RENDER = "from docs.rendering import overrides; print(overrides.render())"


def test_the_page_of_overrides_names_it(tree: Path) -> None:
    row = "| gradient of `adaptive_max_pool2d` | `adaptive_max_pool2d_backward` | all forms |"
    assert row in re.sub(" +", " ", run(tree, "-c", RENDER))
    names = tree / "docs" / "rendering" / "overrides.py"
    whole = names.read_text()
    names.write_text(re.sub(r'    "adaptive_max_pool2d_backward".*\n', "", whole))
    try:
        with pytest.raises(AssertionError, match=r"CALLS differs from the table: \{'adaptive"):
            run(tree, "-c", RENDER)
    finally:
        names.write_text(whole)
