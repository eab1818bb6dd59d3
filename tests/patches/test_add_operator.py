"""Follows the recipes "Add an operator" and "Add an operator on files": a pair, and its functions.

``gather_rows`` takes slices of each batch by separate indices, ``scatter_rows`` is its inverse.
"""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from recipes import COPIES_CORE, copied, copy_installed_core, patched, run
from source import ROOT

# The patches, and how many files each may change.
FOLDER = ROOT / "tests" / "patches"
PATCHES = {FOLDER / "rows.patch": 6, FOLDER / "rows_on_files.patch": 3}
pytestmark = COPIES_CORE


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree with the operators. The core is the installed one."""
    parts = "src/gatherum", "tests", "tools", "README.md", "pyproject.toml"
    folder = copied(tmp_path_factory.mktemp("rows"), *parts)
    for patch, most in PATCHES.items():
        changed = patched(folder, patch)
        assert len(set(changed)) <= most, changed
    run(folder, "tools/signatures")
    copy_installed_core(folder)
    return folder


# Tests that read their operators from the table: they cover the new rows without a change.
@pytest.mark.parametrize(
    ("paths", "least"),
    [
        ("arrays/test_cases.py arrays/test_reference.py arrays/test_properties.py", 60),
        (
            "arrays/test_operators.py project/test_surface.py arrays/test_errors.py "
            "arrays/test_arguments.py arrays/test_check_order.py",
            30,
        ),
        ("command/test_verify.py patches/test_add_framework.py", 15),
    ],
)
def test_tests_try_them(
    tree: Path, paths: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATHERUM_EXAMPLES", "20")
    # The excluded test lists the existing names.
    chosen = "(rows or properties or fancy or ufunc) and not unknown_operator"
    files = [f"tests/{path}" for path in paths.split()]
    said = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *files)
    (passed,) = re.findall(r"(\d+) passed", said)
    assert int(passed) >= least


# `data` has two batches of three rows; each batch has two indices.
GIVEN = """
import numpy as np
import gatherum
from gatherum import reference
data = np.arange(12, dtype="f4").reshape(2, 3, 2)
indices = np.array([[2, 0], [-1, 2]])
updates = np.arange(8, dtype="f4").reshape(2, 2, 2) + 1
taken = np.stack([data[b, indices[b]] for b in range(2)])
added = reference.scatter_rows(data, indices, updates, 1, reduction="add")
def refused(kind, words, call, *operands, **attributes):
    try:
        call(*operands, **attributes)
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
"""
CALLS = {
    "numpy": """
assert (gatherum.gather_rows(data, indices, 1) == taken).all()
assert (gatherum.scatter_rows(data, indices, updates, 1, reduction="add") == added).all()
plan = gatherum.plan("gather_rows", data, indices, axis=1)
assert plan.shape == (2, 2, 2) and (plan.run(data, indices) == taken).all()
report = gatherum.explain("scatter-rows", data, indices, updates, axis=1, reduction="add")
assert "scatter_rows" in str(report) and report.plan.call.op == "scatter_rows"
for call in (gatherum.explain("gather_rows", data, indices, axis=1), report):
    assert call.svg().startswith("<svg")
assert gatherum.index_report("gather_rows", data.shape, indices, axis=1).duplicates == 1
add = gatherum.prepare("scatter_rows", data, indices, axis=1, reduction="add")
assert (add(data, updates) == added).all()
refused(TypeError, "scatter_rows: unknown argument 'dim'; write axis=",
        gatherum.scatter_rows, data, indices, updates, dim=1)
refused(ValueError, "scatter_rows: `updates` must have shape (2, 2, 2), got (7,)",
        gatherum.scatter_rows, data, indices, np.zeros(7, "f4"), 1)
refused(ValueError, "`indices` must have the batch dimensions of `data`, (2,), got (1,)",
        gatherum.gather_rows, data, indices[:1], 1)
refused(IndexError, "gather_rows: index 3 is out of bounds for axis 1 of size 3 (indices[1, 0])",
        gatherum.gather_rows, data, [[0, 0], [3, 9]], 1)
from gatherum._command.verify_cases import case_rows
assert ("scatter_rows", "float32", "add") in case_rows()
""",
    "vectors": """
from gatherum.conformance.rules import RULES
from gatherum._model.operators import OPERATORS
def answer(module, call):
    try:
        return getattr(module, call.operator)(*call.operands.values(), **call.attributes).tobytes()
    except IndexError:
        return "IndexError"
for rule in RULES.values():
    for op in ("gather_rows", "scatter_rows"):
        for call in rule.calls(OPERATORS[op], data.dtype, np.random.default_rng(3)):
            assert answer(gatherum, call) == answer(reference, call), call
""",
    "torch": """
import torch
import gatherum.torch
x, i = torch.from_numpy(data).requires_grad_(), torch.from_numpy(indices)
u = torch.from_numpy(updates).requires_grad_()
for module in (gatherum, gatherum.torch):
    result = module.gather_rows(x, i, 1)
    assert (result.detach().numpy() == taken).all()
    (slope,) = torch.autograd.grad((result * 2).sum(), x)
    assert slope.numpy().tolist() == [[[2, 2], [0, 0], [2, 2]], [[0, 0], [0, 0], [4, 4]]]
    result = module.scatter_rows(x, i, u, 1, reduction="add")
    assert (result.detach().numpy() == added).all()
    slopes = torch.autograd.grad((result * result).sum(), (x, u))
    assert (slopes[1].numpy() == 2 * np.stack([added[b, indices[b]] for b in range(2)])).all()
twice = torch.stack([x.detach(), -x.detach()])
result = torch.func.vmap(lambda one: gatherum.torch.gather_rows(one, i, 1))(twice)
assert (result[1].numpy() == -taken).all()
out = torch.empty(2, 2, 2)
assert gatherum.torch.gather_rows(x.detach(), i, axis=1, out=out) is out
for function in (gatherum.gather_rows, gatherum.torch.gather_rows):
    graph = torch.compile(lambda x, i: function(x, i, 1) * 2, fullgraph=True, backend="eager")
    assert (graph(x.detach(), i).numpy() == 2 * taken).all()
refused(ValueError, "gather_rows: `axis` must be in [-3, 3), got 5",
        gatherum.torch.gather_rows, x, i, 5)
""",
    "jax": """
import jax
import gatherum.jax
x, i, u = map(jax.numpy.asarray, (data, indices, updates))
for module in (gatherum, gatherum.jax):
    assert (np.asarray(module.gather_rows(x, i, 1)) == taken).all()
    result = jax.jit(lambda *each: module.scatter_rows(*each, axis=1, reduction="add"))(x, i, u)
    assert (np.asarray(result) == added).all()
slope = jax.grad(lambda x: (2 * gatherum.jax.gather_rows(x, i, 1)).sum())(x)
assert slope.tolist() == [[[2, 2], [0, 0], [2, 2]], [[0, 0], [0, 0], [4, 4]]]
both = jax.numpy.stack([i, 0 * i])
for xs, axes in ((x, (None, 0)), (jax.numpy.stack([x, x]), (0, 0))):
    result = jax.vmap(lambda *each: gatherum.jax.gather_rows(*each, 1), axes)(xs, both)
    assert (np.asarray(result[0]) == taken).all()
    assert (np.asarray(result[1, 0, 0]) == data[0, 0]).all()
""",
    "dask": """
import dask.array
import gatherum.dask
for chunks in ((1, 2, 1), (2, 1, 2)):
    lazy = dask.array.from_array(data, chunks=chunks)
    for module in (gatherum, gatherum.dask):
        result = module.gather_rows(lazy, dask.array.from_array(indices, chunks=1), 1)
        assert (result.compute(scheduler="synchronous") == taken).all()
        result = module.scatter_rows(lazy, indices, updates, 1, reduction="add")
        assert (result.compute(scheduler="synchronous") == added).all()
""",
    "onnx": """
import torch
from gatherum.torch import onnx_translations
translations = onnx_translations()
assert len(translations) == 8
refused(NotImplementedError, "gather_rows: ONNX has no operator for it; write the call with",
        translations[torch.ops.gatherum.gather_rows.default], None, None)
""",
    "files": """
import os, tempfile
from gatherum import files
from gatherum._command import cli
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name, array in (("data", data), ("indices", indices), ("updates", updates)):
        np.save(f"{name}.npy", array)
    operands = ["data.npy", "indices.npy"]
    files.gather_rows_file(*operands, "out.npy", axis=1)
    assert (np.load("out.npy") == taken).all()
    operands.append("updates.npy")
    files.scatter_rows_file(*operands, "out.npy", axis=1, reduction="add")
    assert (np.load("out.npy") == added).all()
    refused(TypeError, "gather_rows: unknown argument 'dim'; write axis=",
            files.gather_rows_file, *operands[:2], dim=1)
    assert cli.run(["gather-rows", *operands[:2], "-o", "new.npy", "--axis", "1"]) == 0
    assert (np.load("new.npy") == taken).all()
    line = "scatter-rows", *operands, "--in-place", "--axis", "1", "--reduction", "add"
    assert cli.run(line) == 0
    assert (np.load("data.npy") == added).all()
    os.chdir("/")
""",
}


@pytest.mark.frameworks
@pytest.mark.parametrize("name", CALLS)
def test_the_added_operators_return_the_expected_rows(tree: Path, name: str) -> None:
    needed = {"onnx": "onnxscript", "files": "click", "vectors": "numpy"}.get(name, name)
    if not find_spec(needed):
        pytest.skip(f"install {needed} to test with it")
    run(tree, "-c", GIVEN + CALLS[name])


def test_the_generated_modules_are_current(tree: Path) -> None:
    assert run(tree, "tools/signatures", "--check") == ""


# A file of the recipe, the omitted part, and the message of Python or a test.
FORGOTTEN = {
    "its function": (
        "_functions/gathers.py",
        r"@typed_as\(overloads.gather_rows\)\ndef gather_rows\(.*?(?=\nconnect)",
        "ImportError: gatherum._functions.gathers has no function for the operator gather_rows",
    ),
    "its overloads": (
        "_functions/overloads.py", r"@overload\ndef gather_rows\(.*?raise NotImplementedError\n",
        "has no attribute 'gather_rows'",
    ),
    "its inverse": (
        "_model/operators.py",
        r'    Operator\("scatter_rows".*?\n', "gather_rows: has no derivative",
    ),
}  # fmt: skip


@pytest.mark.parametrize("part", FORGOTTEN)
def test_missing_parts_are_named(tree: Path, part: str) -> None:
    name, pattern, said = FORGOTTEN[part]
    path = tree / "src" / "gatherum" / name
    whole = path.read_text()
    without, changes = re.subn(pattern, "", whole, flags=re.DOTALL)
    assert changes == 1
    path.write_text(without)
    code = (
        "from gatherum._functions import gathers\n"
        "from gatherum._model.operators import OPERATORS, inverse\n"
    )
    try:
        with pytest.raises(AssertionError, match=re.escape(said)):
            run(tree, "-c", code + "inverse(OPERATORS['gather_rows'])")
    finally:
        path.write_text(whole)
