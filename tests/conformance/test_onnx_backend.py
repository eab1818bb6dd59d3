"""ONNX's backend interface, and ONNX's own backend test runner against it."""

from __future__ import annotations

import re
import unittest
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="install onnx to test the ONNX backend")

import onnx
from onnx import TensorProto, helper, parser
from test_onnx_node_cases import CACHE_CASES, CASES

from gatherum.onnx import backend

PUBLISHED = sorted([*CASES, *CACHE_CASES])
X = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture(scope="module")
def node_tests() -> Any:
    """Return ONNX's runner over the backend. Its import of all operators' cases warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test import BackendTest

        exactly = {name: {"rtol": 0.0, "atol": 0.0} for name in PUBLISHED}
        return BackendTest(backend, __name__, exactly).test_cases["OnnxBackendNodeModelTest"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_node_in_onnx_own_runner(node_tests: Any, name: str) -> None:
    result = unittest.TestResult()
    node_tests(f"{name}_cpu").run(result)
    assert (result.testsRun, result.skipped) == (1, [])
    assert result.errors == []
    assert result.failures == []


def test_the_runner_has_no_other_case_of_the_family(node_tests: Any) -> None:
    family = ("test_gather", "test_scatter", "test_tensorscatter")
    named = [n for n in dir(node_tests) if n.startswith(family) and n.endswith("_cpu")]
    assert named == sorted(f"{name}_cpu" for name in PUBLISHED)


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model('<ir_version: 8, opset_import: ["": 18]>' + text)


PICK_AND_NEGATE = model(
    "pick (float[3,2] x, int64[n] ids) => (float[n,2] y, float[n,2] z) "
    "<int64[1] unused = {0}> { y = Gather(x, ids)  z = Neg(y) }"
)


def test_a_model_runs_prepared() -> None:
    prepared = backend.prepare(PICK_AND_NEGATE)
    ids = np.array([2, 0])
    for inputs in ([X, ids], (X, ids), {"x": X, "ids": ids}):
        outputs = prepared.run(inputs)
        assert outputs[0].tolist() == [[4, 5], [0, 1]]
        assert outputs["z"].tolist() == [[-4, -5], [0, -1]]
    assert backend.run_model(PICK_AND_NEGATE, [X, ids])["y"].tolist() == [[4, 5], [0, 1]]


def test_one_input_may_come_bare() -> None:
    flat = model("f (float[3,2] x) => (float[1,2] y) <int64[1] i = {-1}> { y = Gather(x, i) }")
    assert backend.prepare(flat, "CPU:0").run(X)[0].tolist() == [[4, 5]]


def test_inputs_are_counted() -> None:
    prepared = backend.prepare(PICK_AND_NEGATE)
    with pytest.raises(ValueError, match=r"^there must be 2 inputs \['x', 'ids'\], got 1$"):
        prepared.run([X])
    with pytest.raises(ValueError, match=r"^the inputs \['ids'\] are missing; given are \['x'\]$"):
        prepared.run({"x": X})


def test_a_node_runs_at_an_opset() -> None:
    gather = helper.make_node("Gather", ["x", "i"], ["y"], axis=-1)
    last = backend.run_node(gather, [X, np.array(-1)])
    assert last.y.tolist() == [1, 3, 5]
    with pytest.raises(IndexError, match=r"negative indices begin with opset 11$"):
        backend.run_node(gather, [X, np.array(-1)], opset_version=10)


def test_a_node_of_another_operator_runs() -> None:
    twice = helper.make_node("Add", ["x", "x"], ["y"])
    assert backend.run_node(twice, [X])[0].tolist() == (2 * X).tolist()
    clip = helper.make_node("Clip", ["x", "", "high"], ["y"])
    assert backend.run_node(clip, [X, np.float32(3)[...]]).y.max() == 3


def test_models_are_checked_by_onnx_rules() -> None:
    broken = onnx.ModelProto()
    broken.CopyFrom(PICK_AND_NEGATE)
    broken.graph.node[0].op_type = "Scatter"
    with pytest.raises(onnx.checker.ValidationError, match="deprecated"):
        backend.prepare(broken)
    with pytest.raises(onnx.checker.ValidationError):
        backend.run_node(helper.make_node("Gather", ["x"], ["y"]), [X])


def test_devices() -> None:
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA:1")
    message = "must be 'CPU', got 'CUDA'"
    with pytest.raises(ValueError, match=re.escape(f"prepare: `device` {message}")):
        backend.prepare(PICK_AND_NEGATE, "CUDA")
    gather = helper.make_node("Gather", ["x", "i"], ["y"])
    with pytest.raises(ValueError, match=re.escape(f"run_node: `device` {message}")):
        backend.run_node(gather, [X, np.array(0)], "CUDA")


def test_compatibility() -> None:
    assert backend.is_compatible(PICK_AND_NEGATE)
    assert not backend.is_compatible(PICK_AND_NEGATE, "CUDA")
    foreign = helper.make_model(
        helper.make_graph(
            [helper.make_node("Swirl", ["x"], ["y"], domain="somewhere.else")], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        ),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("somewhere.else", 1)],
    )  # fmt: skip
    assert not backend.is_compatible(foreign)


def test_without_onnx(python: Any) -> None:
    done = python("import sys; sys.modules['onnx'] = None; import gatherum.onnx")
    assert done.stderr.splitlines()[-1] == (
        "ImportError: gatherum.onnx needs onnx: pip install onnx"
    )


def test_onnx_and_numpy_are_all_that_it_needs(python: Any) -> None:
    """No optional package is imported: not rich, a runtime, or ONNX's test machinery."""
    done = python(
        "import sys, onnx, onnx.reference, onnx.backend.base; before = set(sys.modules)\n"
        "import gatherum.onnx\n"
        "print(sorted({n.split('.')[0] for n in set(sys.modules) - before}\n"
        "      - set(sys.stdlib_module_names) - {'gatherum', 'onnx', 'numpy'}))"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
