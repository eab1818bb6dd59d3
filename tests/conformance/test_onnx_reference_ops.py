"""The six operators in ONNX's reference evaluator: versions, limits, messages, string tensors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="install onnx to test the ONNX operators")

import onnx
from onnx import TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator
from test_onnx_node_cases import CASES

from gatherum.onnx import Evaluator, reference_ops
from gatherum.onnx.reference_ops import FAMILY

T = np.arange(6, dtype=np.float32).reshape(3, 2)
ONES = np.ones((1, 2), np.float32)


def evaluator(op_type: str, opset: int, inputs: str = "data indices", **attributes: Any) -> Any:
    """Make a model of one node whose inputs have no declared types."""
    node = helper.make_node(op_type, inputs.split(), ["y"], name="lookup", **attributes)
    function = helper.make_function(
        "local", "f", inputs.split(), ["y"], [node], [helper.make_opsetid("", opset)]
    )
    return Evaluator(function)


def run(op_type: str, opset: int, *operands: Any, **attributes: Any) -> Any:
    names = ["data", "indices", "updates"][: len(operands)]
    session = evaluator(op_type, opset, " ".join(names), **attributes)
    return session.run(None, dict(zip(names, operands, strict=True)), attributes={})[0]


def says(error: type[Exception], message: str) -> Any:
    return pytest.raises(error, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize("name", sorted(CASES))
def test_node_in_the_evaluator(name: str) -> None:
    case = CASES[name]
    session = ReferenceEvaluator(case.model, new_ops=reference_ops())
    assert isinstance(session.rt_nodes_[0], tuple(reference_ops()))
    for inputs, (expected,) in case.data_sets:
        names = [i.name for i in case.model.graph.input]
        (result,) = session.run(None, dict(zip(names, inputs, strict=True)))
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        assert result.tobytes() == np.ascontiguousarray(expected).tobytes()


# Versions


def test_every_version_that_onnx_knows_is_there() -> None:
    history: dict[str, list[int]] = {name: [] for name in FAMILY}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.name in FAMILY:
            history[schema.name].append(schema.since_version)
    assert {name: sorted(FAMILY[name].versions()) for name in FAMILY} == {
        name: sorted(versions) for name, versions in history.items()
    }
    assert history["Scatter"] == [9, 11]
    newer = ["TensorScatter"] if onnx.defs.has("TensorScatter") else []
    assert [op.__name__ for op in reference_ops()] == [*FAMILY, *newer, "GatherBlockQuantized"]


@pytest.mark.parametrize(
    ("op_type", "opset", "version"),
    [
        ("Gather", 1, 1), ("Gather", 10, 1), ("Gather", 11, 11), ("Gather", 12, 11),
        ("Gather", 13, 13), ("Gather", 21, 13),
        ("GatherElements", 12, 11), ("GatherElements", 13, 13),
        ("GatherND", 11, 11), ("GatherND", 12, 12), ("GatherND", 20, 13),
        ("Scatter", 9, 9), ("Scatter", 10, 9), ("Scatter", 11, 11), ("Scatter", 18, 11),
        ("ScatterElements", 11, 11), ("ScatterElements", 15, 13), ("ScatterElements", 17, 16),
        ("ScatterElements", 18, 18),
        ("ScatterND", 12, 11), ("ScatterND", 13, 13), ("ScatterND", 16, 16), ("ScatterND", 23, 18),
    ],
)  # fmt: skip
def test_the_opset_chooses_the_version(op_type: str, opset: int, version: int) -> None:
    inputs = "data indices updates" if op_type.startswith("Scatter") else "data indices"
    session = evaluator(op_type, opset, inputs)
    assert type(session.rt_nodes_[0]).__name__ == f"{op_type}_{version}"


def test_before_its_first_version() -> None:
    with says(
        ValueError,
        "GatherND (node 'lookup', output 'y'): begins with opset 11, the model imports opset 10",
    ):
        evaluator("GatherND", 10)


def test_a_version_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(FAMILY["Gather"].versions())
    del known[13]
    monkeypatch.setattr(FAMILY["Gather"], "versions", classmethod(lambda cls: known))
    with says(
        ValueError,
        "Gather (node 'lookup', output 'y'): version 13 is not known, only 1, 11",
    ):
        evaluator("Gather", 18)


@pytest.mark.parametrize(
    ("op_type", "opset", "attribute", "value", "message"),
    [
        ("GatherND", 11, "batch_dims", 1, "has no attribute `batch_dims` in version 11 (none)"),
        ("ScatterND", 13, "reduction", "add", "has no attribute `reduction` in version 13 (none)"),
        (
            "ScatterElements", 15, "reduction", "add",
            "has no attribute `reduction` in version 13 (axis)",
        ),
        ("Scatter", 10, "reduction", "add", "has no attribute `reduction` in version 9 (axis)"),
        ("Gather", 13, "axis", 1.0, "`axis` must be INT, got FLOAT"),
    ],
)  # fmt: skip
def test_attributes_of_the_version(
    op_type: str, opset: int, attribute: str, value: Any, message: str
) -> None:
    inputs = "data indices updates" if op_type.startswith("Scatter") else "data indices"
    with says(ValueError, f"{op_type} (node 'lookup', output 'y'): {message}"):
        evaluator(op_type, opset, inputs, **{attribute: value})


def test_the_number_of_inputs() -> None:
    with says(
        ValueError,
        "ScatterND (node 'lookup', output 'y'): must have 3 inputs (data, indices, updates), "
        "got ['data', 'indices']",
    ):
        evaluator("ScatterND", 18)


@pytest.mark.parametrize(("op_type", "opset"), [("Gather", 10), ("Scatter", 10)])
def test_negative_indices_before_opset_11(op_type: str, opset: int) -> None:
    operands = [T, np.array([[-1, 0]])]
    if op_type == "Scatter":
        operands.append(ONES)
    with says(
        IndexError,
        f"{op_type} (node 'lookup', output 'y'): input `indices` ('indices'): index -1 is out of "
        "bounds for axis 0 of size 3 (indices[0, 0]); negative indices begin with opset 11",
    ):
        run(op_type, opset, *operands)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_negative_indices_from_opset_11(opset: int) -> None:
    assert run("Gather", opset, T, np.array(-1)).tolist() == [4, 5]
    assert run("GatherElements", opset, T, np.array([[-1, -3]])).tolist() == [[4, 1]]
    assert run("GatherND", opset, T, np.array([[-1, -2]])).tolist() == [4]
    scattered = run("ScatterElements", opset, T, np.array([[-1, -3]]), ONES)
    assert scattered.tolist() == [[0, 1], [2, 3], [1, 5]]
    assert run("Scatter", opset, T, np.array([[-1, -3]]), ONES).tolist() == scattered.tolist()
    written = run("ScatterND", opset, T, np.array([[-1]]), ONES)
    assert written.tolist() == [[0, 1], [2, 3], [1, 1]]


@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
def test_reductions_of_the_version(op_type: str) -> None:
    indices = np.array([[0, 0]]) if op_type == "ScatterElements" else np.array([[0]])
    data, updates = T + 2, np.array([[3, 2]], np.float32)
    expected = {"none": [3, 2], "add": [5, 5], "mul": [6, 6], "max": [3, 3], "min": [2, 2]}
    for reduction, first in expected.items():
        result = run(op_type, 18, data, indices, updates, reduction=reduction)
        assert result.tolist() == [first, [4, 5], [6, 7]]
    assert run(op_type, 16, data, indices, updates, reduction="mul")[0].tolist() == [6, 6]
    with says(
        ValueError,
        f"{op_type} (node 'lookup', output 'y'): `reduction` must be one of 'none', 'add', 'mul' "
        "in version 16, got 'max'",
    ):
        run(op_type, 16, data, indices, updates, reduction="max")
    with says(
        ValueError,
        f"{op_type} (node 'lookup', output 'y'): `reduction` must be one of 'none', 'add', 'mul', "
        "'max', 'min' in version 18, got 'mean'",
    ):
        run(op_type, 18, data, indices, updates, reduction="mean")


# Types


@pytest.mark.parametrize("index_type", ["int32", "int64"])
def test_index_types_of_the_axis_operators(index_type: str) -> None:
    assert run("Gather", 13, T, np.array([2], index_type)).tolist() == [[4, 5]]
    assert run("GatherElements", 13, T, np.array([[2, 0]], index_type)).tolist() == [[4, 1]]


@pytest.mark.parametrize("op_type", ["Gather", "GatherElements", "Scatter", "ScatterElements"])
@pytest.mark.parametrize("index_type", ["int8", "int16", "uint32", "uint64", "float32", "bool"])
def test_other_index_types_of_the_axis_operators(op_type: str, index_type: str) -> None:
    operands = [T, np.zeros((1, 2), index_type)]
    if op_type.startswith("Scatter"):
        operands.append(ONES)
    name = {"float32": "float"}.get(index_type, index_type)
    with says(
        TypeError,
        f"{op_type} (node 'lookup', output 'y'): input `indices` ('indices') must be "
        f"int32 or int64, got {name}",
    ):
        run(op_type, 13, *operands)


@pytest.mark.parametrize("op_type", ["GatherND", "ScatterND"])
@pytest.mark.parametrize("index_type", ["int32", "uint64", "float64"])
def test_other_index_types_of_the_tuple_operators(op_type: str, index_type: str) -> None:
    operands = [T, np.zeros((1, 1), index_type)]
    if op_type == "ScatterND":
        operands.append(ONES)
    name = {"float64": "double"}.get(index_type, index_type)
    with says(
        TypeError,
        f"{op_type} (node 'lookup', output 'y'): input `indices` ('indices') must be "
        f"int64, got {name}",
    ):
        run(op_type, 13, *operands)


ALL_TYPES = (
    "uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float, double, "
    "string, bool, complex64, complex128"
)


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float16", "float64", "complex64"])
def test_data_types_move(name: str) -> None:
    data = np.array([0, 1, 1]).astype(name)
    result = run("Gather", 1, data, np.array([2, 0]))
    assert result.dtype == data.dtype
    assert result.tolist() == [data[2], data[0]]


def test_bfloat16_from_opset_13() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for bfloat16")
    data = np.array([1.5, 2.5], ml_dtypes.bfloat16)
    assert run("Gather", 13, data, np.array([1])).tolist() == [2.5]
    with says(
        TypeError,
        "Gather (node 'lookup', output 'y'): input `data` ('data') must be one of "
        f"{ALL_TYPES}, got bfloat16",
    ):
        run("Gather", 12, data, np.array([1]))


def test_types_outside_the_text() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for float8")
    with pytest.raises(TypeError, match=r"must be one of .*, got float8e4m3fn$"):
        run("Gather", 21, np.zeros(3, ml_dtypes.float8_e4m3fn), np.array([1]))
    with pytest.raises(TypeError, match=r"must be one of .*, got datetime64\[s\]$"):
        run("Gather", 21, np.zeros(3, "M8[s]"), np.array([1]))
    tagged = np.dtype((np.uint16, {"bfloat16": (np.uint16, 0)}))
    with pytest.raises(TypeError, match=r"must be one of .*, got .*bfloat16"):
        run("Gather", 21, np.zeros(3, tagged), np.array([1]))


def test_data_that_is_not_a_tensor() -> None:
    with says(
        TypeError,
        "Gather (node 'lookup', output 'y'): input `data` ('data') must be a tensor, got list",
    ):
        run("Gather", 13, [1, 2], np.array([1]))


def test_updates_of_another_type() -> None:
    with says(
        TypeError,
        "ScatterND (node 'lookup', output 'y'): input `updates` ('updates') must have the type "
        "of `data`, float, got double",
    ):
        run("ScatterND", 18, T, np.array([[0]]), ONES.astype(np.float64))


# Shapes and attributes


def test_tuples_have_a_component() -> None:
    where = "(node 'lookup', output 'y'): input `indices` ('indices')"
    with says(ValueError, f"GatherND {where} must have a last dimension of 1 to 2, got 0"):
        run("GatherND", 13, T, np.zeros((2, 0), np.int64))
    with says(ValueError, f"ScatterND {where} must have a last dimension of 1 to 2, got 3"):
        run("ScatterND", 13, T, np.zeros((1, 3), np.int64), ONES)
    with says(ValueError, f"GatherND {where} must have a last dimension of 1 to 1, got 2"):
        run("GatherND", 13, T, np.zeros((3, 2), np.int64), batch_dims=1)
    with says(ValueError, f"GatherND {where} must have at least 1 dimension, got 0"):
        run("GatherND", 13, T, np.array(0))
    with says(
        ValueError,
        "GatherND (node 'lookup', output 'y'): input `data` ('data') must have at least "
        "1 dimension, got 0",
    ):
        run("GatherND", 13, np.float32(1)[...], np.zeros((1, 0), np.int64))


@pytest.mark.parametrize("batch_dims", [-1, 2])
def test_batch_dims(batch_dims: int) -> None:
    with says(
        ValueError,
        f"GatherND (node 'lookup', output 'y'): `batch_dims` must be in [0, 2), got {batch_dims}",
    ):
        run("GatherND", 13, T, np.zeros((3, 1), np.int64), batch_dims=batch_dims)


def test_batch_sizes_are_equal() -> None:
    with says(
        ValueError,
        "GatherND (node 'lookup', output 'y'): input `indices` ('indices') must have the batch "
        "dimensions of `data`, (3,), got (1,)",
    ):
        run("GatherND", 13, T, np.zeros((1, 1), np.int64), batch_dims=1)


def test_updates_are_not_broadcast() -> None:
    where = "(node 'lookup', output 'y'): input `updates` ('updates') must have shape"
    with says(ValueError, f"ScatterND {where} (2, 2), got (1, 2)"):
        run("ScatterND", 18, T, np.array([[0], [1]]), ONES)
    with says(ValueError, f"ScatterElements {where} (2, 2), got (1, 2)"):
        run("ScatterElements", 18, T, np.zeros((2, 2), np.int64), ONES)
    with says(ValueError, f"Scatter {where} (2, 2), got (1, 2)"):
        run("Scatter", 10, T, np.zeros((2, 2), np.int64), ONES)


@pytest.mark.parametrize("axis", [-3, 2])
@pytest.mark.parametrize("op_type", ["Gather", "GatherElements", "Scatter", "ScatterElements"])
def test_axis(op_type: str, axis: int) -> None:
    operands = [T, np.zeros((1, 2), np.int64)]
    if op_type.startswith("Scatter"):
        operands.append(ONES)
    with says(
        ValueError,
        f"{op_type} (node 'lookup', output 'y'): `axis` must be in [-2, 2), got {axis}",
    ):
        run(op_type, 11, *operands, axis=axis)


def test_ranks() -> None:
    with says(
        ValueError,
        "GatherElements (node 'lookup', output 'y'): input `indices` ('indices') must have as "
        "many dimensions as `data`, 2, got 1",
    ):
        run("GatherElements", 13, T, np.array([0]))
    with says(
        ValueError,
        "Gather (node 'lookup', output 'y'): input `data` ('data') must have at least "
        "1 dimension, got 0",
    ):
        run("Gather", 13, np.float32(1)[...], np.array([0]))


def test_an_index_out_of_bounds_without_a_node_name() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]>'
        "g (float[3,2] t, int64[1,2] ids) => (y) { y = GatherND(t, ids) }"
    )
    session = ReferenceEvaluator(model, new_ops=reference_ops())
    with says(
        IndexError,
        "GatherND (output 'y'): input `indices` ('ids'): index 2 is out of bounds for axis 1 of "
        "size 2 (indices[0, 1])",
    ):
        session.run(None, {"t": T, "ids": np.array([[0, 2]])})


# Strings

WORDS = np.array([["a", "bb"], ["ccc", "d"], ["e", "ff"]], object)


@pytest.mark.parametrize("text_dtype", [object, "U3"])
def test_strings_are_gathered(text_dtype: Any) -> None:
    words = WORDS.astype(text_dtype)
    for opset in (1, 13):
        assert run("Gather", opset, words, np.array(1)).tolist() == ["ccc", "d"]
    assert run("Gather", 13, words[:, 0], np.array(1)).tolist() == "ccc"
    assert run("GatherElements", 13, words, np.array([[2, 0]])).tolist() == [["e", "bb"]]
    assert run("GatherND", 13, words, np.array([[1, 0], [-1, 1]])).tolist() == ["ccc", "ff"]
    batched = run("GatherND", 13, words, np.array([[0], [1], [0]]), batch_dims=1)
    assert batched.tolist() == ["a", "d", "e"]
    assert batched.dtype == words.dtype


@pytest.mark.parametrize("text_dtype", [object, "U7"])
def test_strings_are_scattered(text_dtype: Any) -> None:
    words, updates = WORDS.astype(text_dtype), np.array([["longer!", "x"]], text_dtype)
    before = words.copy()
    expected = [["a", "x"], ["ccc", "d"], ["longer!", "ff"]]
    for op_type, opset in (("Scatter", 10), ("ScatterElements", 18)):
        assert run(op_type, opset, words, np.array([[2, 0]]), updates).tolist() == expected
    rows = run("ScatterND", 18, words, np.array([[1]]), updates)
    assert rows.tolist() == [["a", "bb"], ["longer!", "x"], ["e", "ff"]]
    assert words.tolist() == before.tolist()


def test_fixed_width_strings_widen() -> None:
    result = run("ScatterND", 18, WORDS.astype("U3"), np.array([[0, 0]]), np.array(["longer"]))
    assert result[0].tolist() == ["longer", "bb"]


def test_strings_keep_the_limits() -> None:
    with says(
        IndexError,
        "Gather (node 'lookup', output 'y'): input `indices` ('indices'): index 3 is out of "
        "bounds for axis 0 of size 3 (indices[0])",
    ):
        run("Gather", 13, WORDS, np.array([3]))
    with says(
        TypeError,
        "ScatterND (node 'lookup', output 'y'): `reduction` 'add' is not defined for string",
    ):
        run("ScatterND", 18, WORDS, np.array([[0]]), WORDS[:1], reduction="add")
    with pytest.raises(TypeError, match=r"must have the type of `data`, string, got float$"):
        run("ScatterND", 18, WORDS, np.array([[0]]), ONES)


# Whole models

NESTED = """
<ir_version: 8, opset_import: ["" : 16, "local" : 1]>
nested (float[3,2] t, int64[1] ids, bool flag) => (float[1,2] y, float[1,2] z)
{
  y = If (flag) <
    then_branch = yes () => (float[1,2] a) { a = Gather(t, ids) },
    else_branch = no () => (float[1,2] b) { c = Neg(t)  b = Gather(c, ids) }
  >
  z = local.pick <axis = 0> (t, ids)
}
<domain: "local", opset_import: ["" : 10]>
pick <axis> (p, q) => (r) { r = Gather <axis: int = @axis> (p, q) }
"""


def test_subgraphs_are_reached() -> None:
    session = ReferenceEvaluator(parser.parse_model(NESTED), new_ops=reference_ops())
    feeds = {"t": T, "ids": np.array([3]), "flag": np.array(True)}
    with pytest.raises(IndexError, match=r"^Gather \(output 'a'\): input `indices` \('ids'\)"):
        session.run(None, feeds)


def test_only_the_evaluator_reaches_functions() -> None:
    model = parser.parse_model(NESTED)
    feeds = {"t": T, "ids": np.array([-1]), "flag": np.array(False)}
    y, z = ReferenceEvaluator(model, new_ops=reference_ops()).run(None, feeds)
    assert y.tolist() == [[-4, -5]]
    assert z.tolist() == [[4, 5]], "onnx hands new_ops on to functions now: say so in the docs"
    with says(
        IndexError,
        "Gather (output 'r'): input `indices` ('q'): index -1 is out of bounds for axis 0 of "
        "size 3 (indices[0]); negative indices begin with opset 11",
    ):
        Evaluator(model).run(None, feeds)
    assert Evaluator(model).run(None, feeds | {"ids": np.array([2])})[1].tolist() == [[4, 5]]


def test_more_operators_come_before() -> None:
    class Gather(onnx.reference.op_run.OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, data: Any, indices: Any, axis: Any = None) -> Any:
            return (data * 0,)

    node = helper.make_node("Gather", ["t", "i"], ["y"])
    session = Evaluator(node, new_ops=[Gather])
    assert session.run(None, {"t": T, "i": np.array([1])})[0].tolist() == (T * 0).tolist()


def test_a_class_evaluates_by_itself() -> None:
    by_name = {op.__name__: op for op in reference_ops()}
    assert by_name["GatherND"].eval(T, np.array([[1, 1]])).tolist() == [3]
    assert by_name["Gather"].versions()[11].eval(T, np.array([-1]), axis=1).tolist() == [
        [1], [3], [5],
    ]  # fmt: skip


def test_half_floats_round_once() -> None:
    """ONNX's reference rounds at each step: 2048 + 1 stays 2048 there."""
    data, indices = np.array([2048], np.float16), np.array([[0], [0]])
    updates = np.ones(2, np.float16)
    node = helper.make_node("ScatterND", ["d", "i", "u"], ["y"], reduction="add")
    feeds = {"d": data, "i": indices, "u": updates}
    assert Evaluator(node).run(None, feeds)[0].tolist() == [2050]
    assert ReferenceEvaluator(node).run(None, feeds)[0].tolist() == [2048]


def test_signed_zeros_and_nan_are_ordered() -> None:
    """ONNX's ScatterElements reference keeps the value that Python's max sees first."""
    data, indices = np.array([-0.0, np.nan], np.float32), np.array([0, 1])
    updates = np.array([0.0, 1.0], np.float32)
    node = helper.make_node("ScatterElements", ["d", "i", "u"], ["y"], reduction="max")
    feeds = {"d": data, "i": indices, "u": updates}
    ours, theirs = (s(node).run(None, feeds)[0] for s in (Evaluator, ReferenceEvaluator))
    assert np.signbit(ours).tolist() == [False, False]
    assert np.isnan(ours).tolist() == [False, True]
    assert np.signbit(theirs).tolist() == [True, False]


def test_onnx_reference_has_no_scatter_implementation() -> None:
    node = helper.make_node("Scatter", ["d", "i", "u"], ["y"])
    model = helper.make_model(
        helper.make_graph(
            [node], "g",
            [
                helper.make_tensor_value_info("d", TensorProto.FLOAT, [3]),
                helper.make_tensor_value_info("i", TensorProto.INT64, [1]),
                helper.make_tensor_value_info("u", TensorProto.FLOAT, [1]),
            ],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
        ),
        opset_imports=[helper.make_opsetid("", 10)],
    )  # fmt: skip
    with pytest.raises(onnx.reference.op_run.RuntimeImplementationError):
        ReferenceEvaluator(model)
    feeds = {"d": T[:, 0], "i": np.array([1]), "u": np.array([9], np.float32)}
    assert ReferenceEvaluator(model, new_ops=reference_ops()).run(None, feeds)[0].tolist() == [
        0, 9, 4,
    ]  # fmt: skip
