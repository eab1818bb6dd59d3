"""ONNX's own node tests of the six gather and scatter names, through the functions."""

import importlib
import pkgutil
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

import gatherum

pytest.importorskip("onnx", reason="install onnx to run its node tests: pip install onnx")

OPERATORS = {
    "Gather": "gather",
    "GatherElements": "gather_elements",
    "GatherND": "gather_nd",
    "Scatter": "scatter_elements",
    "ScatterElements": "scatter_elements",
    "ScatterND": "scatter_nd",
}
NAMES_OF_ONNX_1_23 = [
    "test_gather_0",
    "test_gather_1",
    "test_gather_2d_indices",
    "test_gather_elements_0",
    "test_gather_elements_1",
    "test_gather_elements_negative_indices",
    "test_gather_negative_indices",
    "test_gathernd_example_float32",
    "test_gathernd_example_int32",
    "test_gathernd_example_int32_batch_dim1",
    "test_scatter_elements_with_axis",
    "test_scatter_elements_with_duplicate_indices",
    "test_scatter_elements_with_negative_indices",
    "test_scatter_elements_with_reduction_max",
    "test_scatter_elements_with_reduction_min",
    "test_scatter_elements_with_reduction_mul",
    "test_scatter_elements_without_axis",
    "test_scatter_with_axis",
    "test_scatter_without_axis",
    "test_scatternd",
    "test_scatternd_add",
    "test_scatternd_max",
    "test_scatternd_max_with_element_indices",
    "test_scatternd_min",
    "test_scatternd_min_with_element_indices",
    "test_scatternd_multiply",
]


def collected(operators: Collection[str]) -> dict[str, Any]:
    """Collect by name: importing the modules of other operators takes seconds and warns."""
    node = importlib.import_module("onnx.backend.test.case.node")
    for module in pkgutil.iter_modules(node.__path__):
        if module.name.startswith(("gather", "scatter", "tensorscatter")):
            importlib.import_module(f"{node.__name__}.{module.name}")
    return {
        case.name: case
        for case in node._NodeTestCases
        if [n.op_type in operators for n in case.model.graph.node] == [True]
    }


CASES = collected(OPERATORS)
CACHE_CASES = collected(["TensorScatter"])  # none before onnx 1.19


def test_the_cases_of_onnx_1_23_are_collected() -> None:
    assert len(NAMES_OF_ONNX_1_23) == 26
    assert len(CASES) >= 26, sorted(CASES)
    assert sorted(set(NAMES_OF_ONNX_1_23) - set(CASES)) == []


@pytest.mark.parametrize("name", sorted(CASES))
def test_node(name: str) -> None:
    onnx = importlib.import_module("onnx")
    case = CASES[name]
    (node,) = case.model.graph.node
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if "reduction" in attributes:
        attributes["reduction"] = attributes["reduction"].decode()
    ((inputs, (expected,)),) = case.data_sets
    result = getattr(gatherum, OPERATORS[node.op_type])(*inputs, **attributes)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    assert result.tobytes() == np.ascontiguousarray(expected).tobytes()
