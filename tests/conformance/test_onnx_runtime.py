"""ONNX Runtime on the CPU: equal answers if they are defined, and the known differences.

Every difference that docs/onnx.md lists is a test here.
"""

from __future__ import annotations

import platform
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("onnx", reason="install onnx to compare with ONNX Runtime")
pytest.importorskip(
    "onnxruntime", reason="install onnxruntime to compare with it: pip install onnxruntime"
)

import onnxruntime as ort
from onnx import TensorProto, helper

import gatherum
from gatherum.onnx import Evaluator

NAMES = ("data", "indices", "updates")
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
# Types for which ONNX Runtime has kernels.
MOVED = [*INTEGERS, "bool", "float16", "float32", "float64", "O"]
REDUCED = {
    "add": [*INTEGERS, "bool", "float32", "float64"],
    "mul": [*INTEGERS, "bool", "float32", "float64"],
    "max": [*INTEGERS, "float32", "float64"],
    "min": [*INTEGERS, "float32", "float64"],
}
VERSIONS = {
    "Gather": [7, 11, 13, 21],
    "GatherElements": [11, 13, 21],
    "GatherND": [11, 12, 13, 21],
    "Scatter": [9, 10],
    "ScatterElements": [11, 13, 16, 18, 21],
    "ScatterND": [11, 13, 16, 18, 21],
}


def model_of(op_type: str, opset: int, operands: list[Any], **attributes: Any) -> Any:
    inputs = [
        helper.make_tensor_value_info(
            name,
            TensorProto.STRING if o.dtype == object else helper.np_dtype_to_tensor_dtype(o.dtype),
            o.shape,
        )
        for name, o in zip(NAMES, operands, strict=False)
    ]
    output = helper.make_tensor_value_info("y", inputs[0].type.tensor_type.elem_type, None)
    names = [i.name for i in inputs]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"], **attributes)], "g", inputs, [output]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def session_of(model: Any, threads: int = 1) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run_both(op_type: str, opset: int, *operands: Any, **attributes: Any) -> tuple[Any, Any]:
    """Return ONNX Runtime's answer on one thread, and ours."""
    arrays = [np.asarray(operand) for operand in operands]
    model = model_of(op_type, opset, arrays, **attributes)
    feeds = dict(zip(NAMES, arrays, strict=False))
    return session_of(model).run(None, feeds)[0], Evaluator(model).run(None, feeds)[0]


def run_theirs(op_type: str, opset: int, *operands: Any, **attributes: Any) -> Any:
    arrays = [np.asarray(operand) for operand in operands]
    model = model_of(op_type, opset, arrays, **attributes)
    return session_of(model).run(None, dict(zip(NAMES, arrays, strict=False)))[0]


def run_ours(op_type: str, opset: int, *operands: Any, **attributes: Any) -> Any:
    arrays = [np.asarray(operand) for operand in operands]
    model = model_of(op_type, opset, arrays, **attributes)
    return Evaluator(model).run(None, dict(zip(NAMES, arrays, strict=False)))[0]


# Random models


def values(draw: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """Return small values without NaN or signed zeros, whose order of addition matters little."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    numbers = rng.integers(1, 6, shape)
    if dtype == "O":
        return numbers.astype(str).astype(object)
    if dtype.startswith("float"):
        return (numbers / rng.integers(1, 4, shape)).astype(dtype)
    return (numbers % 2).astype(dtype) if dtype == "bool" else numbers.astype(dtype)


def index_values(draw: Any, dtype: str, shape: tuple[int, ...], sizes: Any, opset: int) -> Any:
    """Return valid indices, including negative ones if the version defines them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low = -np.asarray(sizes) if opset >= 11 else 0
    return rng.integers(low, sizes, shape).astype(dtype)


def shapes() -> Any:
    """Return shapes of data.

    Callers change indexed dimensions of size 0, which have no valid index, to size 1.
    """
    return st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def axis_cases(draw: Any) -> Any:
    op_type = draw(st.sampled_from(["Gather", "GatherElements", "Scatter", "ScatterElements"]))
    opset = draw(st.sampled_from(VERSIONS[op_type]))
    shape = draw(shapes())
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    shape = tuple(max(n, int(d == axis % len(shape))) for d, n in enumerate(shape))
    if op_type == "Gather":
        extent = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    else:
        extent = tuple(draw(st.integers(0, 4 if d == axis % len(shape) else n))
                       for d, n in enumerate(shape))  # fmt: skip
    attributes = {"axis": axis}
    indices = index_values(
        draw, draw(st.sampled_from(["int32", "int64"])), extent, shape[axis], opset
    )
    if not op_type.startswith("Scatter"):
        words = op_type != "Gather" or np.prod(shape[axis:][1:]) <= 1  # see the list below
        data = values(draw, draw(st.sampled_from(MOVED if words else MOVED[:-1])), shape)
        return op_type, opset, [data, indices], attributes
    reduction = draw(reductions(op_type, opset))
    dtype = draw(st.sampled_from(REDUCED.get(reduction, MOVED)))
    if reduction != "none":
        attributes["reduction"] = reduction
    operands = [values(draw, dtype, shape), indices, values(draw, dtype, extent)]
    return op_type, opset, operands, attributes


@st.composite
def tuple_cases(draw: Any) -> Any:
    op_type = draw(st.sampled_from(["GatherND", "ScatterND"]))
    opset = draw(st.sampled_from(VERSIONS[op_type]))
    shape = draw(shapes())
    batches = 0
    if op_type == "GatherND" and opset >= 12:
        batches = draw(st.integers(0, len(shape) - 1))
    k = draw(st.integers(1, len(shape) - batches))
    shape = tuple(max(n, int(batches <= d < batches + k)) for d, n in enumerate(shape))
    lead = shape[:batches] + tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    sizes = shape[batches : batches + k]
    indices = index_values(draw, "int64", (*lead, k), sizes, opset)
    if op_type == "GatherND":
        data = values(draw, draw(st.sampled_from(MOVED)), shape)
        return op_type, opset, [data, indices], {"batch_dims": batches} if batches else {}
    reduction = draw(reductions(op_type, opset))
    dtype = draw(st.sampled_from(REDUCED.get(reduction, MOVED)))
    updates = values(draw, dtype, lead + shape[k:])
    attributes = {} if reduction == "none" else {"reduction": reduction}
    return op_type, opset, [values(draw, dtype, shape), indices, updates], attributes


def reductions(op_type: str, opset: int) -> Any:
    names = ["none"]
    if op_type != "Scatter" and opset >= 16:
        names += ["add", "mul"]
    if op_type != "Scatter" and opset >= 18:
        names += ["max", "min"]
    return st.sampled_from(names)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(axis_cases(), tuple_cases()))
def test_random_models(case: Any) -> None:
    """On one thread, duplicates are also ordered: ONNX Runtime's order is row-major."""
    op_type, opset, operands, attributes = case
    theirs, ours = run_both(op_type, opset, *operands, **attributes)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if ours.dtype == object:
        assert ours.tolist() == theirs.tolist()
    else:
        assert ours.tobytes() == theirs.tobytes()


BAD = [
    ("Gather", [np.ones((3, 2), np.float32), [3]]),
    ("Gather", [np.ones((3, 0), np.float32), [3]]),
    ("GatherElements", [np.ones((3, 2), np.float32), [[0, -4]]]),
    ("GatherND", [np.ones((3, 2), np.float32), [[0, 2]]]),
    ("ScatterElements", [np.ones((3, 2), np.float32), [[3, 0]], np.ones((1, 2), np.float32)]),
    ("ScatterND", [np.ones((3, 2), np.float32), [[-4]], np.ones((1, 2), np.float32)]),
]


@pytest.mark.parametrize(("op_type", "operands"), BAD)
def test_both_refuse_an_index_out_of_bounds(op_type: str, operands: list[Any]) -> None:
    with pytest.raises(IndexError, match=r"is out of bounds for axis \d of size \d"):
        run_ours(op_type, 18, *operands)
    with pytest.raises(Exception, match=r"(?i)ONNXRuntimeError.*ind"):
        run_theirs(op_type, 18, *operands)


# The list in docs/onnx.md, in its order

D = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.skipif(
    gatherum.get_num_threads() < 2,
    reason="a race needs two processors: let this process use at least two",
)
@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_scatter_nd_races_on_duplicates(reduction: str) -> None:
    count, width = 100_000, 16
    indices = np.random.default_rng(0).integers(0, 2, (count, 1))
    updates = np.arange(count * width).reshape(count, width)
    data = np.zeros((2, width), np.int64)
    model = model_of("ScatterND", 18, [data, indices, updates], reduction=reduction)
    feeds = {"data": data, "indices": indices, "updates": updates}
    expected = Evaluator(model).run(None, feeds)[0]
    assert np.array_equal(session_of(model, 1).run(None, feeds)[0], expected)
    racing = session_of(model, 4)
    answers = (racing.run(None, feeds)[0] for _ in range(500))
    assert any(not np.array_equal(answer, expected) for answer in answers)


def test_gather_nd_takes_batches_that_differ() -> None:
    indices = np.zeros((6, 1), np.int64)
    assert run_theirs("GatherND", 13, D, indices, batch_dims=1).tolist() == [0, 0, 2, 2, 4, 4]
    message = re.escape("must have the batch dimensions of `data`, (3,), got (6,)")
    with pytest.raises(ValueError, match=message):
        run_ours("GatherND", 13, D, indices, batch_dims=1)


def test_tuples_without_components_are_taken() -> None:
    none = np.zeros((1, 0), np.int64)
    assert run_theirs("GatherND", 13, D, none).tolist() == [D.tolist()]
    assert run_theirs("ScatterND", 18, D, none, D[None] + 1).tolist() == (D + 1).tolist()
    with pytest.raises(ValueError, match=r"a last dimension of 1 to 2, got 0$"):
        run_ours("GatherND", 13, D, none)
    with pytest.raises(ValueError, match=r"a last dimension of 1 to 2, got 0$"):
        run_ours("ScatterND", 18, D, none, D[None] + 1)


def test_negative_indices_are_taken_before_opset_11() -> None:
    assert run_theirs("Gather", 10, D, [-1]).tolist() == [[4, 5]]
    ones = np.ones((1, 2), np.float32)
    scattered = run_theirs("Scatter", 10, D, [[-1, 0]], ones)
    assert scattered.tolist() == [[0, 1], [2, 3], [1, 5]]
    with pytest.raises(IndexError, match=r"negative indices begin with opset 11$"):
        run_ours("Gather", 10, D, [-1])
    with pytest.raises(IndexError, match=r"negative indices begin with opset 11$"):
        run_ours("Scatter", 10, D, [[-1, 0]], ones)


@pytest.mark.parametrize("opset", [7, 11, 13, 21])
def test_gather_loses_all_but_the_first_string_of_a_slice(opset: int) -> None:
    words = np.array([["a", "b", "c"], ["d", "e", "f"]], object)
    theirs, ours = run_both("Gather", opset, words, [1, 0])
    assert ours.tolist() == [["d", "e", "f"], ["a", "b", "c"]]
    assert theirs.tolist() == [["d", "", ""], ["a", "", ""]]


def test_gather_nd_checks_no_index_when_the_slices_are_empty() -> None:
    empty = np.zeros((3, 0), np.float32)
    assert run_theirs("GatherND", 13, empty, [[7]]).shape == (1, 0)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 of size 3"):
        run_ours("GatherND", 13, empty, [[7]])


@pytest.mark.parametrize(("op_type", "indices"), [("ScatterElements", [0, 1, 2, 3]),
                                                  ("ScatterND", [[0], [1], [2], [3]])])  # fmt: skip
def test_max_and_min_know_neither_nan_nor_the_sign_of_zero(op_type: str, indices: Any) -> None:
    data = np.array([-0.0, 0.0, np.nan, 1], np.float32)
    updates = np.array([0.0, -0.0, 1, np.nan], np.float32)
    for reduction, signs in (("max", [False, False]), ("min", [True, True])):
        theirs, ours = run_both(op_type, 18, data, indices, updates, reduction=reduction)
        assert np.isnan(ours).tolist() == [False, False, True, True]
        assert np.isnan(theirs).tolist() == [False, False, False, True]
        assert np.signbit(ours[:2]).tolist() == signs
        assert np.signbit(theirs[:2]).tolist() == [False, True]


def test_a_nan_that_a_reduction_makes_has_the_sign_of_the_processor() -> None:
    data, updates = np.array([np.inf], np.float32), np.array([-np.inf], np.float32)
    theirs, ours = run_both("ScatterElements", 18, data, [0], updates, reduction="add")
    assert ours.view(np.uint32).tolist() == [0x7FC00000]
    negative = platform.machine() in ("x86_64", "AMD64")
    assert theirs.view(np.uint32).tolist() == [0xFFC00000 if negative else 0x7FC00000]


@pytest.mark.parametrize(("op_type", "indices"), [("ScatterElements", [0]), ("ScatterND", [[0]])])
def test_strings_are_joined_by_add(op_type: str, indices: Any) -> None:
    words, updates = np.array(["a"], object), np.array(["b"], object)
    assert run_theirs(op_type, 18, words, indices, updates, reduction="add").tolist() == ["ab"]
    with pytest.raises(TypeError, match=r"`reduction` 'add' is not defined for string$"):
        run_ours(op_type, 18, words, indices, updates, reduction="add")


@pytest.mark.parametrize(
    ("op_type", "dtype", "reduction"),
    [
        ("ScatterElements", "bool", "max"), ("ScatterND", "bool", "min"),
        ("ScatterElements", "float16", "add"), ("ScatterND", "float16", "add"),
        ("ScatterND", "float16", "max"),
    ],
)  # fmt: skip
def test_reductions_that_it_lacks(op_type: str, dtype: str, reduction: str) -> None:
    data, indices = np.ones(2, dtype), [1] if op_type == "ScatterElements" else [[1]]
    updates = np.ones(1, dtype)
    with pytest.raises(Exception, match=r"data type is not supported with Scatter"):
        run_theirs(op_type, 18, data, indices, updates, reduction=reduction)
    result = run_ours(op_type, 18, data, indices, updates, reduction=reduction)
    assert result.tolist() == [1, 2 if reduction == "add" else 1]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_tensors_that_it_lacks(dtype: str) -> None:
    data = np.array([1, 2j], dtype)
    with pytest.raises(Exception, match=f"MLDataType for: tensor\\({dtype}\\)"):
        run_theirs("Gather", 13, data, [1])
    assert run_ours("Gather", 13, data, [1]).tolist() == [2j]
