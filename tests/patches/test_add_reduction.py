"""Follows the recipe "Add a reduction" by absmax.patch, and tests the effects of omitted parts."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from recipes import (
    CHECKS_CORE,
    KERNELS,
    compile_core,
    copied,
    files_of,
    needs_build,
    patched,
    run,
)
from source import ROOT

FRAMEWORK = pytest.mark.frameworks
PATCH = ROOT / "tests" / "patches" / "absmax.patch"
MOST_FILES = 8
pytestmark = CHECKS_CORE


def test_the_recipe_changes_few_files() -> None:
    assert len(set(files_of(PATCH))) <= MOST_FILES


# Tests that read their reductions from the table: they cover the new row without a change.
@needs_build
@pytest.mark.parametrize(
    ("paths", "least"),
    [
        (
            "arrays/test_reference.py arrays/test_cases.py arrays/test_reductions.py"
            " arrays/test_derivatives.py",
            8,
        ),
        ("arrays/test_accumulator.py core/test_threads.py core/test_halves.py", 30),
        ("files/test_folds.py files/test_equality.py", 30),
        pytest.param(
            "frameworks/torch/test_tensor_gradients.py",
            15,
            marks=pytest.mark.frameworks,
            id="torch",
        ),
        pytest.param("frameworks/jax/test_jax_gradients.py", 10, marks=FRAMEWORK, id="jax"),
        pytest.param("frameworks/cuda/test_kernel_folds.py", 10, id="cuda"),
    ],
)
def test_tests_try_it(tree: Path, paths: str, least: int, request: pytest.FixtureRequest) -> None:
    for package in ("torch", "jax"):
        if package in request.node.callspec.id.split("-") and not find_spec(package):
            pytest.skip(f"install {package} to test its derivatives")
    # JAX's Hessians are compared with formulas, which the patch does not add.
    chosen = "absmax and not hessians or test_reductions or test_derivatives"
    files = [f"tests/{path}" for path in paths.split()]
    said = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *files)
    (passed,) = re.findall(r"(\d+) passed", said)
    assert int(passed) >= least


CALLS = """
import numpy as np
import gatherum

data, indices = np.array([3, -7, 1], "f2"), np.array([[0], [0], [1], [2]])
updates = np.array([-5, 4, 2, -1], "f2")
options = {"reduction": "absmax"}
assert gatherum.scatter_nd(data, indices, updates, **options).tolist() == [5, 7, 1]
assert gatherum.aggregate(updates, [0, 1], [1, 1], 3, "absmax").tolist() == [0, 5, 0]
one, two = (gatherum.Accumulator(data, "absmax") for _ in range(2))
one.scatter_nd(indices[:2], updates[:2])
two.scatter_nd(indices[2:], updates[2:])
one.merge(two)
assert one.finish().tolist() == [5, 7, 1]
plan = gatherum.plan("scatter_nd", data, indices, updates, **options)
assert "reduction='absmax'" in str(plan) and plan.scratch == 12
report = gatherum.explain("scatter_nd", data, indices, updates, **options)
assert "folded in float32 and rounded once" in str(report)
assert "absmax(" in report.svg()
for word, dtype, error in (("maxabs", "f4", ValueError), ("absmax", "c8", TypeError)):
    try:
        gatherum.scatter_nd(np.zeros(2, dtype), [[0]], np.ones(1, dtype), reduction=word)
    except error as caught:
        assert "'absmax'" in str(caught)
    else:
        raise AssertionError(word)
"""
OTHERS = {
    "dask": """
import dask.array, gatherum.dask, numpy as np
data = dask.array.from_array(np.arange(20.0) - 9, chunks=5)
indices = dask.array.from_array(np.array([[1], [2], [1], [19]]), chunks=(2, 1))
updates = dask.array.from_array(np.array([5.0, -30, -7, 3]), chunks=2)
lazy = gatherum.scatter_nd(data, indices, updates, reduction="absmax")
expected = np.arange(20.0) - 9
expected[[1, 2, 19]] = 8, 30, 10
assert (lazy.compute(scheduler="synchronous") == expected).all()
""",
    "onnx": """
import onnx.parser, numpy as np
from gatherum.onnx import Evaluator
model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 18]>
    g (float[2] x, int64[1,1] i, float[1] u) => (float[2] y) {
        y = ScatterND<reduction = "absmax">(x, i, u)
    }''')
feeds = {"x": np.ones(2, "f4"), "i": np.zeros((1, 1), "i8"), "u": np.ones(1, "f4")}
try:
    Evaluator(model).run(None, feeds)
except ValueError as error:
    assert "'max', 'min' in version 18, got 'absmax'" in str(error), error
else:
    raise AssertionError
""",
}


@needs_build
def test_the_added_reduction_has_the_results_of_its_definition(tree: Path) -> None:
    run(tree, "-c", CALLS)


@pytest.mark.frameworks
@needs_build
@pytest.mark.parametrize("package", sorted(OTHERS))
def test_it_is_known_elsewhere(tree: Path, package: str) -> None:
    if not find_spec(package):
        pytest.skip(f"install {package} to test with it")
    run(tree, "-c", OTHERS[package])


@needs_build
def test_a_row_missing_in_python_is_named(tree: Path) -> None:
    table = tree / "src" / "gatherum" / "_model" / "reductions.py"
    whole = table.read_text()
    row = re.search(r'    ReductionRow\(\n        name="absmax".*?\n    \),\n', whole, re.DOTALL)
    assert row is not None
    table.write_text(whole.replace(row[0], ""))
    try:
        with pytest.raises(AssertionError, match="has no row for absmax of the core"):
            run(tree, "-c", "import gatherum; gatherum.gather")
    finally:
        table.write_text(whole)


# The file, its replaced text, the replacement, the compiled file, and the compiler's message.
TYPES = "model/types.hpp"
FORGOTTEN = {
    "the row": (
        TYPES, r"    case Reduction::absmax:.*?\};\n", "",
        TYPES, "'absmax' not handled in switch",
    ),
    "a field of the row": (
        TYPES,
        r"\.widens = kHalves,\s+(?=\.divides = false,\s+\S+ = false,\s+\S+ = Neutral::none)", "",
        TYPES, "ReductionRow",
    ),
    "the step": (
        "fold/combine.hpp", r"else if constexpr \(R == Reduction::absmax\)\n.*?;\n    (?=else)", "",
        KERNELS, "Fold::fold: a reduction has no step",
    ),
    "the step of booleans": (
        TYPES,
        r"\.values = (?=kIntegers \| kHalves \| kFloats,)", ".values = kBooleans | ",
        KERNELS, "Fold::fold_truths: a reduction has no step for booleans",
    ),
    "the neutral element that skipping NaN requires": (
        TYPES, r"(case Reduction::absmax:[^}]*skips_nan = )false", r"\1true",
        TYPES, "static assertion failed",
    ),
    "the value types of the kernels of gradients": (
        TYPES, r"(case Reduction::absmax:[^}]*Gradient::)none", r"\1product",
        TYPES, "static assertion failed",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied(tmp_path_factory.mktemp("sources"), "src", "tests")
    patched(folder, PATCH)
    return folder


@pytest.mark.parametrize("part", FORGOTTEN)
def test_a_part_missing_in_the_core_does_not_compile(sources: Path, part: str) -> None:
    name, pattern, instead, compiled, said = FORGOTTEN[part]
    path = sources / "src" / "core" / name
    whole = path.read_text()
    without, changes = re.subn(pattern, instead, whole, flags=re.DOTALL)
    assert changes == 1
    path.write_text(without)
    try:
        done = compile_core(sources, compiled)
    finally:
        path.write_text(whole)
    assert done.returncode != 0
    assert said in done.stderr


def test_with_all_its_parts_it_compiles(sources: Path) -> None:
    assert compile_core(sources).returncode == 0


@needs_build
def test_a_step_that_cuda_forgets_does_not_compile(tree: Path) -> None:
    kernels = tree / "src" / "gatherum" / "cuda" / "kernels" / "arithmetic.cuh"
    whole = kernels.read_text()
    step = re.search(
        r"else if constexpr \(R == Reduction::absmax\) \{.*?\} (?=else)", whole, re.DOTALL
    )
    assert step is not None
    kernels.write_text(whole.replace(step[0], ""))
    chosen = ["tests/frameworks/cuda/test_kernel_folds.py", "-x", "-k", "absmax and float32"]
    try:
        with pytest.raises(
            AssertionError, match=r"Fold::fold: a reduction has no step|No such file"
        ):
            run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen)
    finally:
        kernels.write_text(whole)
