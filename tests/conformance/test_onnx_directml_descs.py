"""Models that `check_model` accepts run on the DirectML layer, and equal the ONNX node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="install onnx to check ONNX models")

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from gatherum.directml import Device, FeatureLevel, TensorDataType
from gatherum.onnx import Evaluator, check_model
from gatherum.onnx.directml_descs import NodeCall, desc_of, objections

OPERATORS = {
    "Gather": "gather",
    "GatherElements": "gather_elements",
    "GatherND": "gather_nd",
    "ScatterElements": "scatter_elements",
    "ScatterND": "scatter_nd",
}
LEVELS = [FeatureLevel(level) for level in ("2_1", "3_0", "6_4")]
NAMES = ("data", "indices", "updates")


@st.composite
def nodes(draw: Any) -> Any:
    """Draw an operator, its attribute and fitting operands, in bounds and without duplicates."""
    op_type = draw(st.sampled_from(sorted(OPERATORS)))
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=5)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    data = rng.integers(0, 99, shape).astype(np.float32)
    if op_type.endswith("ND"):
        b = draw(st.integers(0, len(shape) - 1)) if op_type == "GatherND" else 0
        k = draw(st.integers(1, len(shape) - b))
        lead = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
        sizes = shape[b : b + k]
        indices = rng.integers(0, sizes, (*shape[:b], *lead, k))
        if op_type == "ScatterND":  # one write to each element, in any order
            places = rng.permutation(np.prod(sizes))[: draw(st.integers(1, 4))]
            indices = np.stack(np.unravel_index(places, sizes), axis=-1)
        moved = indices.shape[:-1] + shape[b + k :]
        return op_type, b, data, indices, rng.integers(0, 99, moved).astype(np.float32)
    axis = draw(st.integers(0, len(shape) - 1))
    if op_type == "Gather":
        indices = rng.integers(0, shape[axis], draw(st.lists(st.integers(1, 3), max_size=3)))
    else:
        smaller = draw(st.booleans())
        lead = tuple(n if d == axis else max(1, n - smaller) for d, n in enumerate(shape))
        indices = np.argsort(rng.random(lead), axis=axis)
    axis -= len(shape) * draw(st.booleans())
    updates = rng.integers(0, 99, indices.shape).astype(np.float32)
    return op_type, axis, data, indices, updates


def model_of(node: Any, hidden: Any = frozenset()) -> Any:
    """Make a model. `hidden` lists the omitted sizes as (operand, dimension)."""
    op_type, axis, *operands = node
    operands = operands if op_type.startswith("Scatter") else operands[:2]
    inputs = []
    for name, operand in zip(NAMES, operands, strict=False):
        element_type = TensorProto.FLOAT if operand.dtype == np.float32 else TensorProto.INT64
        sizes = [None if (name, d) in hidden else n for d, n in enumerate(operand.shape)]
        inputs.append(helper.make_tensor_value_info(name, element_type, sizes))
    attributes = {} if op_type == "ScatterND" else {"axis": axis}
    if op_type == "GatherND":
        attributes = {"batch_dims": axis}
    graph_node = helper.make_node(op_type, [i.name for i in inputs], ["y"], **attributes)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([graph_node], "g", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@settings(max_examples=150, deadline=None)
@given(nodes(), st.sampled_from(LEVELS))
def test_accepted_nodes_run_at_their_feature_level(node: Any, level: FeatureLevel) -> None:
    op_type, axis, *operands = node
    operands = operands if op_type.startswith("Scatter") else operands[:2]
    index = "uint32" if level < FeatureLevel("3_0") else "int64"
    arrays = {
        name: operand.astype(index) if name == "indices" else operand
        for name, operand in zip(NAMES, operands, strict=False)
    }
    types = {name: TensorDataType.from_dtype(array.dtype) for name, array in arrays.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    call = NodeCall(OPERATORS[op_type], axis, types, shapes)
    assume(objections(call, level) == [])
    desc = desc_of(call, level).with_inferred_output()
    padded = [
        array.reshape(tensor.sizes)
        for array, tensor in zip(arrays.values(), desc.tensors.values(), strict=False)
    ]
    result = Device(level).compile(desc)(*padded)
    feeds = dict(zip(NAMES, operands, strict=False))
    (expected,) = Evaluator(model_of(node)).run(None, feeds)
    assert result.size == expected.size
    assert result.reshape(expected.shape).tobytes() == expected.tobytes()


@settings(max_examples=150, deadline=None)
@given(nodes(), st.sampled_from(LEVELS), st.data())
def test_hidden_sizes_never_change_a_certain_answer(
    node: Any, level: FeatureLevel, data: Any
) -> None:
    op_type, _, *operands = node
    operands = operands if op_type.startswith("Scatter") else operands[:2]
    places = [
        (name, d)
        for name, operand in zip(NAMES, operands, strict=False)
        for d in range(operand.ndim)
    ]
    hidden = data.draw(st.sets(st.sampled_from(places), min_size=1))
    (known,) = check_model(model_of(node), level)
    (guess,) = check_model(model_of(node, hidden), level)
    assert known.accepted is not None
    assert guess.accepted is not True
    if guess.accepted is False:
        assert known.accepted is False
    else:
        assert len(guess.reasons) == len(hidden)
    if known.first_level is not None:
        assert guess.first_level is not None
        assert guess.first_level <= known.first_level
