"""ONNX nodes that a DirectML feature level supports, and the report of `check_model`."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx", reason="install onnx to check ONNX models")

import onnx
from onnx import TensorProto, helper, parser

from gatherum._model.reductions import known_to_onnx
from gatherum.directml import FeatureLevel
from gatherum.onnx import check_model, report_lines, report_table, reports_to_json

LEVELS = [str(level) for level in FeatureLevel]


def graph(text: str, opset: int = 18) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')


def one(text: str, level: str = "6_4", opset: int = 18, **options: Any) -> Any:
    """Check a model of one gather or scatter."""
    (report,) = check_model(graph(text, opset), level, **options)
    return report


def answers(text: str) -> dict[str, list[str]]:
    """Return the levels, grouped by answer."""
    levels: dict[str, list[str]] = {}
    for level in LEVELS:
        levels.setdefault(one(text, level).answer, []).append(level)
    return levels


FROM_3_0 = [level for level in LEVELS if level >= "3_0"]
FROM_4_1 = [level for level in LEVELS if level >= "4_1"]

ACCEPTED = {
    "Gather": "g (float[5,3] x, int64[2] i) => (y) { y = Gather(x, i) }",
    "Gather, one index": "g (float[5,3] x, int32 i) => (y) { y = Gather <axis = -1> (x, i) }",
    "Gather, many indices": "g (int8[9] x, int32[2,3,4] i) => (y) { y = Gather(x, i) }",
    "GatherElements": "g (float16[5,3] x, int64[2,3] i) => (y) { y = GatherElements(x, i) }",
    "GatherND": "g (uint8[5,3,2] x, int64[4,1,2] i) => (y) { y = GatherND(x, i) }",
    "GatherND, batches":
        "g (float[5,3,2] x, int64[5,4,1] i) => (y) { y = GatherND <batch_dims = 1> (x, i) }",
    "ScatterElements":
        "g (float[5,3] x, int64[5,2] i, float[5,2] u) => (y) "
        "{ y = ScatterElements <axis = -1> (x, i, u) }",
    "ScatterND":
        "g (float[5,3] x, int64[2,1] i, float[2,3] u) => (y) { y = ScatterND(x, i, u) }",
    "eight dimensions":
        "g (float[1,1,1,1,1,1,5,3] x, int64[1] i) => (y) { y = Gather <axis = 6> (x, i) }",
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED)
def test_signed_indices_are_taken_from_3_0(case: str) -> None:
    assert answers(ACCEPTED[case]) == {
        "rejected": [level for level in LEVELS if level < "3_0"], "accepted": FROM_3_0,
    }  # fmt: skip
    rejected, accepted = one(ACCEPTED[case], "2_1"), one(ACCEPTED[case], "3_0")
    assert rejected.first_level is accepted.first_level is FeatureLevel("3_0")
    assert rejected.accepted is False
    assert accepted.accepted is True
    assert accepted.reasons == ()


@pytest.mark.parametrize(
    ("case", "operator"),
    [
        ("Gather", "GATHER"), ("GatherElements", "GATHER_ELEMENTS"), ("GatherND", "GATHER_ND"),
        ("GatherND, batches", "GATHER_ND1"), ("ScatterElements", "SCATTER"),
        ("ScatterND", "SCATTER_ND"),
    ],
)  # fmt: skip
def test_the_operator_that_a_node_becomes(case: str, operator: str) -> None:
    assert one(ACCEPTED[case]).operator == operator


def test_scatter_of_opset_9_becomes_scatter() -> None:
    text = "g (float[3] x, int64[2] i, float[2] u) => (y) { y = Scatter(x, i, u) }"
    report = one(text, opset=9)
    assert (report.operator, report.accepted, report.opset) == ("SCATTER", True, 9)


def test_index_types_before_3_0() -> None:
    report = one(ACCEPTED["Gather"], "2_1")
    assert report.reasons == (
        "`IndicesTensor.DataType` must be UINT32 at feature level 2_1, got INT64; "
        "first accepted at 3_0",
    )


@pytest.mark.parametrize("type_name", ["double", "int64", "uint64"])
def test_wide_data_before_4_1(type_name: str) -> None:
    text = f"g ({type_name}[5,3] x, int64[2] i) => (y) {{ y = Gather(x, i) }}"
    assert answers(text)["accepted"] == FROM_4_1
    directml = {"double": "FLOAT64"}.get(type_name, type_name.upper())
    report = one(text, "4_0")
    assert report.first_level is FeatureLevel("4_1")
    assert report.reasons == (
        "`InputTensor.DataType` must be one of FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, "
        f"UINT16, UINT8 at feature level 4_0, got {directml}; first accepted at 4_1",
    )


@pytest.mark.parametrize("type_name", ["bool", "bfloat16", "complex64", "string"])
def test_types_that_directml_lacks(type_name: str) -> None:
    text = f"g ({type_name}[5,3] x, int64[2] i) => (y) {{ y = Gather(x, i) }}"
    assert answers(text) == {"rejected": LEVELS}
    report = one(text)
    assert report.first_level is None
    assert report.reasons == (
        f"`data` ('x') is {type_name.upper()}, a type that DirectML does not have",
    )


@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize("reduction", known_to_onnx(18)[1:])
def test_reductions(op_type: str, reduction: str) -> None:
    shape = "2,3" if op_type == "ScatterND" else "2,1"
    text = (
        f"g (float[5,3] x, int64[2,1] i, float[{shape}] u) => (y) "
        f'{{ y = {op_type} <reduction = "{reduction}"> (x, i, u) }}'
    )
    report = one(text)
    assert (report.accepted, report.first_level) == (False, None)
    assert report.reasons[0] == (
        f"DirectML's scatter operators have no reduction, the node's is {reduction!r}"
    )


def test_smaller_sizes_off_the_axis() -> None:
    report = one("g (float[5,3] x, int64[2,2] i) => (y) { y = GatherElements(x, i) }")
    assert (report.accepted, report.first_level) == (False, None)
    assert report.reasons == (
        "`IndicesTensor.Sizes` must equal InputTensor.Sizes = {5,3} on every dimension but "
        "Axis = 0, got {2,2}",
    )
    scatter = one(
        "g (float[5,3] x, int64[2,2] i, float[2,2] u) => (y) { y = ScatterElements(x, i, u) }"
    )
    assert scatter.reasons == report.reasons


def test_dimension_counts() -> None:
    five = "g (float[1,1,1,5,3] x, int64[1] i) => (y) { y = Gather(x, i) }"
    report = one(five, "2_1")
    assert report.reasons[0] == (
        "`InputTensor.DimensionCount` must be 4 at feature level 2_1, got 5; first accepted at 3_0"
    )
    assert one(five, "3_0").accepted is True
    nine = one("g (float[5,3,2,2,2] x, int64[1,1,1,1,1] i) => (y) { y = Gather(x, i) }")
    assert nine.accepted is False
    assert nine.first_level is None
    assert nine.reasons[0] == (
        "`InputTensor.DimensionCount` must be 1 to 8 at feature level 6_4, got 9; "
        "no feature level accepts it"
    )


def test_the_result_counts_among_the_ranks() -> None:
    """Data of rank 3 and indices of rank 3 produce a result of rank 5: too much below 3_0."""
    text = "g (float[4,3,2] x, int64[1,1,2] i) => (y) { y = Gather(x, i) }"
    reasons = one(text, "2_1").reasons
    assert any("`InputTensor.DimensionCount` must be 4" in reason for reason in reasons)
    assert one(text, "3_0").accepted is True


def test_operators_before_their_level() -> None:
    report = one(ACCEPTED["GatherND, batches"], "2_1")
    assert report.reasons[0] == (
        "`Type` must be an operator of feature level 2_1, got DML_OPERATOR_GATHER_ND1; "
        "first accepted at 3_0"
    )


def test_empty_tensors() -> None:
    report = one("g (float[5,3] x, int64[0] i) => (y) { y = Gather(x, i) }")
    assert report.accepted is False
    assert report.reasons[0] == "`IndicesTensor.Sizes` must be sizes of 1 to 4294967295, got {1,0}"


def test_a_result_too_large() -> None:
    report = one("g (float[9,65536] x, int64[65536] i) => (y) { y = Gather(x, i) }")
    assert report.accepted is False
    assert any("have at most 4294967295 elements" in reason for reason in report.reasons)


# Unknown sizes and types


def test_unknown_sizes() -> None:
    text = "g (float[batch,3] x, int64[?] i) => (y) { y = Gather(x, i) }"
    report = one(text)
    assert report.accepted is None
    assert report.answer == "unknown"
    assert report.reasons == (
        "unknown: the size of `data` ('x') on dimension 0, 'batch'",
        "unknown: the size of `indices` ('i') on dimension 0",
    )
    assert report.first_level is FeatureLevel("3_0")
    assert one(text, "2_1").accepted is False


def test_sizes_can_be_given() -> None:
    text = "g (float[batch,3] x, int64[n] i) => (y) { y = Gather(x, i) }"
    assert one(text, sizes={"batch": 8}).reasons == (
        "unknown: the size of `indices` ('i') on dimension 0, 'n'",
    )
    assert one(text, sizes={"batch": 8, "n": 2}).accepted is True
    assert one(text, sizes={"batch": 0, "n": 2}).accepted is False


def test_only_names_that_can_be_given_are_shown() -> None:
    """ONNX's inference makes up names for sizes, whose numbers change with the model."""
    model = graph(
        "g (float[5,unk__0] x, int64[u] i, int64[v] j, bool b) => (y, z) {"
        " k = Concat <axis = 0> (i, j)  y = Gather(x, k)"
        " z = If (b) <"
        "  then_branch = t () => (s) { m = Concat <axis = 0> (k, j)  s = Gather(x, m) },"
        "  else_branch = e () => (r) { r = Gather(x, j) }> }"
    )
    data = "unknown: the size of `data` ('x') on dimension 1, 'unk__0'"
    indices = "unknown: the size of `indices` ({!r}) on dimension 0"
    free = check_model(model)
    assert [r.reasons for r in free] == [
        (data, indices.format("k")), (data, indices.format("m")),
        (data, indices.format("j") + ", 'v'"),
    ]  # fmt: skip
    sized = check_model(model, sizes={"u": 3})
    assert [r.reasons for r in sized] == [r.reasons for r in free]
    sizes = {"u": 3, "v": 2, "unk__0": 4}
    assert [r.accepted for r in check_model(model, sizes=sizes)] == [True] * 3


def test_names_in_functions_can_be_given() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 18, "local": 1]>
        g (float[unk__0,5] x, int64[u] i) => (y) { y = local.f(x, i) }
        <domain: "local", opset_import: ["": 18]>
        f (x, i) => (y) { c = Concat <axis = 0> (i, i)  k = Where(b, c, c)  y = Gather(x, k) }"""
    )
    function = model.functions[0]
    function.input.append("b")
    model.graph.node[0].input.append("")
    function.value_info.append(helper.make_tensor_value_info("k", TensorProto.INT64, ["w"]))
    (report,) = check_model(model, "4_1")
    assert report.reasons == (
        "unknown: the size of `data` ('x') on dimension 0, 'unk__0'",
        "unknown: the size of `indices` ('k') on dimension 0, 'w'",
    )
    assert check_model(model, "4_1", sizes={"unk__0": 2, "w": 3})[0].accepted is True


@pytest.mark.parametrize(
    "inputs",
    [
        "float[n,5] x, int64[n,2] i", "float[4,5] x, int64[n,2] i", "float[n,5] x, int64[4,2] i",
        "float[n,5] x, int64[m,2] i",
    ],
)  # fmt: skip
def test_unknown_sizes_that_may_agree(inputs: str) -> None:
    report = one(f"g ({inputs}) => (y) {{ y = GatherElements <axis = 1> (x, i) }}")
    assert report.accepted is None
    report = one(f"g ({inputs}) => (y) {{ y = GatherND <batch_dims = 1> (x, i) }}")
    assert report.accepted is False  # tuples of two, one dimension left
    assert report.reasons == (
        "no valid ONNX: the last dimension of `indices` must be at most 1, the dimensions of "
        "`data` that are not batch dimensions, got 2",
    )


def test_unknown_sizes_that_cannot_help() -> None:
    report = one(
        "g (float[n,5,6] x, int64[n,2,5] i) => (y) { y = GatherElements <axis = 1> (x, i) }"
    )
    assert report.accepted is False
    assert report.reasons == (
        "`IndicesTensor.Sizes` must equal InputTensor.Sizes = {1,5,6} on every dimension but "
        "Axis = 1, got {1,2,5} (unknown sizes count as 1)",
    )
    assert report.first_level is None
    updates = one("g (float[n,5] x, int64[m,1] i, float[3,4] u) => (y) { y = ScatterND(x, i, u) }")
    assert updates.accepted is False
    assert updates.reasons == (
        "`UpdatesTensor.Sizes` must be {3,5} (the indices' array of tuples, then the input's sizes "
        "after D - R + k), got {3,4} (unknown sizes count as 1)",
    )


def test_unknown_tuples() -> None:
    text = "g (float[5,3] x, int64[2,k] i) => (y) { y = GatherND(x, i) }"
    assert one(text).accepted is None
    assert one(text).reasons == ("unknown: the size of `indices` ('i') on dimension 1, 'k'",)
    assert one(text, sizes={"k": 1}).accepted is True
    wide = one(text.replace("float", "double"), "4_0")
    assert wide.accepted is False
    assert wide.first_level is FeatureLevel("4_1")


@pytest.mark.parametrize("op_type", ["Gather", "GatherElements", "GatherND"])
def test_unknown_shapes(op_type: str) -> None:
    tensor_type = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    inputs = [
        helper.make_value_info("x", tensor_type),
        helper.make_tensor_value_info("i", TensorProto.INT64, [2, 1]),
    ]
    node = helper.make_node(op_type, ["x", "i"], ["y"])
    output = helper.make_value_info("y", tensor_type)
    model = helper.make_model(helper.make_graph([node], "g", inputs, [output]))
    (report,) = check_model(model, "4_1")
    assert report.accepted is None
    assert report.reasons == ("unknown: the shape of `data` ('x')",)
    assert report.first_level is FeatureLevel("3_0")
    assert check_model(model, "2_1")[0].accepted is False


def test_unknown_types() -> None:
    """Inference cannot find the type of a foreign operator's result."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18, "elsewhere": 1]>'
        "g (float[5,3] x, int64[2,1] i, float[2,3] u) => (float[5,3] y) "
        "{ z = elsewhere.Swirl(x)  y = ScatterND(z, i, u) }"
    )
    (report,) = check_model(model)
    assert report.accepted is None
    assert report.reasons == (
        "unknown: the type of `data` ('z')", "unknown: the shape of `data` ('z')",
    )  # fmt: skip


def test_invalid_nodes() -> None:
    early = one("g (float[5,3] x, int64[2,1] i) => (y) { y = GatherND(x, i) }", opset=10)
    assert early.accepted is False
    assert early.reasons == ("no valid ONNX: GatherND begins with opset 11, opset 10 is imported",)
    two = one("g (float[3] x, int64[2] i) => (y) { y = ScatterElements(x, i) }")
    assert two.reasons == ("no valid ONNX: the inputs must be data, indices, updates",)
    old = one('g (float[3] x, int64[2] i, float[2] u) => (y) '
              '{ y = ScatterElements <reduction = "add"> (x, i, u) }', opset=13)  # fmt: skip
    assert old.reasons == (
        "no valid ONNX: has no attribute `reduction` in version 13 (axis)",
        "DirectML's scatter operators have no reduction, the node's is 'add'",
    )
    report = one("g (float[3] x, int64[2] i) => (y) { y = Gather <axis = 0.5> (x, i) }")
    assert report.reasons == ("no valid ONNX: `axis` must be INT, got FLOAT",)
    axis = one("g (float[3] x, int64[2] i) => (y) { y = GatherElements <axis = 2> (x, i) }")
    assert axis.reasons == ("no valid ONNX: `axis` must be in [-1, 1), got 2",)
    assert (axis.first_level, axis.operator) == (None, "")


@pytest.mark.parametrize("batch_dims", [-(2**63), 2**62])
def test_a_batch_dims_without_end_is_refused_at_once(batch_dims: int) -> None:
    node = f"GatherND <batch_dims = {batch_dims}> (x, i)"
    report = one(f"g (float[5,3] x, int64[2,1] i) => (y) {{ y = {node} }}")
    assert report.reasons == (f"no valid ONNX: `batch_dims` must be in [0, 2), got {batch_dims}",)


# Positions of nodes

NESTED = """
<ir_version: 8, opset_import: ["" : 16, "local" : 1]>
nested (float[5,3] x, int64[2] i, bool flag, int64 trips) => (float[2,3] y, r, float[2,3] z)
<int64[2] shape = {5, 3}>
{
  [choose] y = If (flag) <
    then_branch = yes () => (float[2,3] a) { a = Gather(x, i) },
    else_branch = no () => (float[2,3] b) { n = Neg(x)  [other] b = Gather(n, i) }
  >
  [repeat] r = Loop (trips, flag, x) <
    body = once (int64 trip, bool on, state) => (bool on_out, next)
    { on_out = Identity(on)  picked = Gather(state, i)  next = Concat <axis = 0> (state, picked) }
  >
  [call] z = local.outer <where = 0> (x, i, shape)
}
<domain: "local", opset_import: ["" : 13, "local" : 1]>
outer <where> (p, q, s) => (o)
{
  r = Reshape(p, s)
  [inner] o = local.pick <axis: int = @where> (r, q)
}
<domain: "local", opset_import: ["" : 11]>
pick <axis> (p, q) => (r) { r = Gather <axis: int = @axis> (p, q) }
"""


def test_subgraphs_and_functions() -> None:
    reports = check_model(parser.parse_model(NESTED), "3_0")
    assert [(r.path, r.title, r.opset, r.accepted) for r in reports] == [
        ("graph/If 'choose'.then_branch", "Gather -> 'a'", 16, True),
        ("graph/If 'choose'.else_branch", "Gather 'other'", 16, True),
        ("graph/Loop 'repeat'.body", "Gather -> 'picked'", 16, None),
        ("graph/outer 'call'/pick 'inner'", "Gather -> 'r'", 11, True),
    ]
    assert reports[2].reasons[0].startswith("unknown: ")


@pytest.mark.parametrize("callee", ["f", "g"])
def test_a_function_that_calls_itself(callee: str) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18, "local": 1]>'
        "m (float[3] x) => (y) { [call] y = local.f(x) }"
        '<domain: "local", opset_import: ["": 18, "local": 1]>'
        f"f (p) => (r) {{ r = local.{callee}(p) }}"
        '<domain: "local", opset_import: ["": 18, "local": 1]>'
        "g (p) => (r) { r = local.f(p) }"
    )
    with pytest.raises(ValueError, match=r"^check_model: the function 'f' calls itself$"):
        check_model(model)


# Inputs and outputs


def test_paths_bytes_and_protos(tmp_path: Path) -> None:
    model = graph(ACCEPTED["Gather"])
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    expected = check_model(model, "3_0")
    assert check_model(path, "3_0") == expected
    assert check_model(str(path), FeatureLevel("3_0")) == expected
    assert check_model(model.SerializeToString(), 0x3000) == expected


@pytest.mark.parametrize("suffix", ["onnx", "textproto", "json", "unknown"])
def test_the_suffix_says_in_which_form_a_model_is_written(tmp_path: Path, suffix: str) -> None:
    model = graph("g (float[4] t, int64[2] i) => (y) { y = Gather(t, i) }")
    path = tmp_path / f"model.{suffix}"
    onnx.save(model, path)
    assert check_model(path) == check_model(model)


def test_weights_kept_elsewhere_are_not_needed(tmp_path: Path) -> None:
    model = graph("g (int64[2] i) => (y) <float[2,2] t = {1, 2, 3, 4}> { y = Gather(t, i) }")
    model.graph.initializer[0].raw_data = bytes(16)
    del model.graph.initializer[0].float_data[:]
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "weights").unlink()
    assert check_model(path, "3_0")[0].accepted is True


def test_values_that_are_not_models_raise(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with pytest.raises(FileNotFoundError):
        check_model(path)
    path.write_bytes(b"")
    where = re.escape(f"check_model: no ONNX model in {str(path)!r}: ")
    with pytest.raises(ValueError, match=f"^{where}it has no graph$"):
        check_model(path)
    path.write_bytes(b"\x93NUMPY and more")
    with pytest.raises(ValueError, match=f"^{where}"):
        check_model(path)
    with pytest.raises(ValueError, match=r"^check_model: no ONNX model in the bytes: it has no gr"):
        check_model(b"")
    with pytest.raises(ValueError, match="feature level must be one of"):
        check_model(graph(ACCEPTED["Gather"]), "9_9")


def test_names_that_are_not_utf_8() -> None:
    plain = graph('g (float[3] x, int64[1] i, float[1] u) => (yy) '
                  '{ [name] yy = ScatterElements <reduction = "add"> (x, i, u) }')  # fmt: skip
    broken = plain.SerializeToString().replace(b"name", b"n\xffme").replace(b"add", b"a\xffd")
    reports = check_model(broken)
    assert json.loads(reports_to_json(reports))["nodes"][0]["name"] == "n\ufffdme"
    assert reports[0].reasons == (
        "DirectML's scatter operators have no reduction, the node's is 'a\ufffdd'",
    )


def test_a_function_with_names_that_are_not_utf_8() -> None:
    nested = parser.parse_model(NESTED).SerializeToString()
    broken = nested.replace(b"outer", b"out\xffr")
    with pytest.raises(ValueError, match=r"^check_model: .*'utf-8' codec can't decode"):
        check_model(broken)


def test_an_element_type_that_onnx_does_not_have() -> None:
    model = graph(ACCEPTED["Gather"])
    model.graph.input[0].type.tensor_type.elem_type = 99
    (report,) = check_model(model)
    assert report.reasons == ("`data` ('x') is type 99, a type that DirectML does not have",)


def test_a_model_that_inference_refuses() -> None:
    model = graph(ACCEPTED["Gather"])
    del model.opset_import[:]
    with pytest.raises(ValueError, match=r"^check_model: shapes cannot be inferred: .*opset"):
        check_model(model)


def test_a_model_without_the_family() -> None:
    reports = check_model(graph("g (float[3] x) => (y) { y = Neg(x) }"))
    assert reports == []
    assert report_lines(reports) == ["no gather or scatter node"]


MIXED = """g (float[5,3] x, int64[2,1] i, float[2,3] u, double[n] d) => (y, z, w)
{ [write] y = ScatterND(x, i, u)  [sum] z = ScatterND <reduction = "add"> (x, i, u)
  w = Gather(d, i) }"""


def test_the_table_for_people() -> None:
    assert report_lines(check_model(graph(MIXED), "4_1")) == [
        "node               where  DirectML    answer           from level",
        "ScatterND 'write'  graph  SCATTER_ND  accepted by 4_1  3_0",
        "ScatterND 'sum'    graph  SCATTER_ND  rejected by 4_1  none",
        "    DirectML's scatter operators have no reduction, the node's is 'add'",
        "Gather -> 'w'      graph  GATHER      unknown for 4_1  4_1",
        "    unknown: the size of `data` ('d') on dimension 0, 'n'",
        "3 gather or scatter nodes: 1 accepted, 1 rejected, 1 unknown; other nodes are not judged",
    ]


def test_the_table_of_rich() -> None:
    console = pytest.importorskip("rich.console", reason="install rich for its tables")
    table = report_table(check_model(graph(MIXED), "4_1"))
    output = console.Console(width=200, record=True, file=io.StringIO())
    output.print(table)
    text = output.export_text()
    assert "ScatterND 'sum'" in text
    assert "DirectML's scatter operators have no reduction, the node's is 'add'" in text
    assert "unknown: the size of `data` ('d') on dimension 0, 'n'" in text
    assert (
        "3 gather or scatter nodes: 1 accepted, 1 rejected, 1 unknown; other nodes are not judged"
        in text
    )


def test_json_for_machines() -> None:
    answer = json.loads(reports_to_json(check_model(graph(MIXED), "4_1")))
    assert answer["accepted"] is False
    assert [node["accepted"] for node in answer["nodes"]] == [True, False, None]
    assert answer["nodes"][2] == {
        "name": "", "op_type": "Gather", "path": "graph", "output": "w", "opset": 18,
        "operator": "GATHER", "feature_level": "4_1", "accepted": None,
        "reasons": ["unknown: the size of `data` ('d') on dimension 0, 'n'"],
        "first_level": "4_1",
    }  # fmt: skip
    some = [r for r in check_model(graph(MIXED), "4_1") if r.accepted is not False]
    assert json.loads(reports_to_json(some))["accepted"] is None
    assert json.loads(reports_to_json(some[:1]))["accepted"] is True


def test_a_report_prints() -> None:
    write, total, pick = check_model(graph(MIXED), "4_0")
    assert str(write) == "accepted by 4_0: ScatterND 'write' as SCATTER_ND (graph)"
    assert str(total) == (
        "rejected by 4_0, by no level: ScatterND 'sum' as SCATTER_ND (graph)\n"
        "    DirectML's scatter operators have no reduction, the node's is 'add'"
    )
    assert str(pick).splitlines()[0] == (
        "rejected by 4_0, first accepted by 4_1: Gather -> 'w' as GATHER (graph)"
    )
